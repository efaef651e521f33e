//! Generic ephemeral volumes: a claim for each, made from the template in the Pod and gone with it.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, Event, Predicate, Reconciler,
    k8s_openapi::{
        api::core::v1::{PersistentVolumeClaim, Pod, Volume},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
    owner, rbac,
};

use crate::{pod_control, pods};

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<EphemeralVolumes> {
    Controller::new(EphemeralVolumes)
        .name("ephemeral-volume-controller")
        .core_events("ephemeral_volume")
        .filter(Predicate::new(|_: &Pod, new: &Pod| volumes(new).next().is_some()))
        .owns::<PersistentVolumeClaim>()
        .permits([rbac::rule("", ["persistentvolumeclaims"], ["create"])])
}

/// The claim of an ephemeral volume.
pub(crate) fn claim_name(pod: &Pod, volume: &Volume) -> String {
    format!("{}-{}", pod.metadata.name.as_deref().unwrap_or_default(), volume.name)
}

fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let all = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    all.filter(|volume| volume.ephemeral.is_some())
}

/// Makes claims for Pods.
pub(crate) struct EphemeralVolumes;

impl Reconciler for EphemeralVolumes {
    type Resource = Pod;
    type Error = windlass::Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> windlass::Result<Action> {
        if pods::is_terminating(&pod.metadata) {
            return Ok(Action::await_change());
        }
        for volume in volumes(&pod) {
            let name = claim_name(&pod, volume);
            let there = ctx.get::<PersistentVolumeClaim>(ctx.key().namespace(), &name)?;
            match there {
                Some(claim) if owner::is_controlled_by(&claim.metadata, pods::uid(&pod)) => {}
                Some(_) => {
                    let namespace = ctx.key().namespace().unwrap_or_default();
                    let key = ctx.key();
                    warn(
                        volume,
                        &format!("PVC {namespace}/{name} was not created for pod {key} (pod is not owner)"),
                        ctx,
                    );
                }
                None => create(name, volume, ctx).await?,
            }
        }
        Ok(Action::await_change())
    }
}

fn warn(volume: &Volume, why: &str, ctx: &Context<Pod>) {
    let note = format!("ephemeral volume {}: {why}", volume.name);
    ctx.event(Event::warning("FailedBinding", note).action("CreateClaim"));
}

async fn create(name: String, volume: &Volume, ctx: &Context<Pod>) -> windlass::Result<()> {
    let template = volume.ephemeral.as_ref().and_then(|source| source.volume_claim_template.clone());
    let template = template.unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let claim = PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: meta.labels,
            annotations: meta.annotations,
            ..ObjectMeta::default()
        },
        spec: Some(template.spec),
        status: None,
    };
    match ctx.create_child(claim).await {
        // The cache was late, or somebody was faster: the watch leads back here.
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) if pod_control::namespace_is_terminating(&error) => Ok(()),
        Err(error) => {
            warn(volume, &format!("create PVC {name}: {}", pod_control::reason(&error)), ctx);
            Err(error)
        }
        Ok(_) => Ok(()),
    }
}
