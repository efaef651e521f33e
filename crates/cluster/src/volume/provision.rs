//! Making a volume for a claim.

use std::sync::Arc;

use windlass::{
    Context, Event,
    k8s_openapi::{
        api::{
            core::v1::{
                CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
            },
            storage::v1::StorageClass,
        },
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};

use super::{
    binding,
    class::{DRIVER, PROVISIONER},
};

/// Kept by a volume that a claim has.
pub(super) const PROTECTION: &str = "kubernetes.io/pv-protection";
/// Says who made a volume.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

const STORAGE_PROVISIONER: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

/// Makes the volume of a claim, bound to it from the start.
pub(super) async fn provision(
    claim: &Arc<PersistentVolumeClaim>,
    class: &StorageClass,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<Arc<PersistentVolume>> {
    let claim = ctx
        .modify(&**claim, |claim| {
            let annotations = claim.metadata.annotations.get_or_insert_default();
            for key in STORAGE_PROVISIONER {
                annotations.insert(key.to_owned(), PROVISIONER.to_owned());
            }
        })
        .await?;
    let note = format!("External provisioner is provisioning volume for claim \"{}\"", ctx.key());
    ctx.event(Event::normal("Provisioning", note).action("Provision"));
    let volume = build(&claim, class);
    let name = volume.metadata.name.clone().unwrap_or_default();
    let made = match ctx.create(volume).await {
        // A run before this one was interrupted.
        Err(error) if error.is_already_exists() => {
            ctx.fetch::<PersistentVolume>(None, &name).await?.map(Arc::new).ok_or(error)?
        }
        other => other?,
    };
    let note = format!("Successfully provisioned volume {name}");
    ctx.event(Event::normal("ProvisioningSucceeded", note).action("Provision"));
    Ok(made)
}

fn build(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let requests = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
    let capacity = requests.into_iter().filter(|(resource, _)| resource == "storage").collect();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            finalizers: Some(vec![PROTECTION.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: Some(capacity),
            claim_ref: Some(binding::reference(claim)),
            csi: Some(CSIPersistentVolumeSource {
                driver: DRIVER.into(),
                volume_handle: name,
                ..CSIPersistentVolumeSource::default()
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".into())),
            storage_class_name: class.metadata.name.clone(),
            volume_mode: spec.volume_mode.or(Some("Filesystem".into())),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}
