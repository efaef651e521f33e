//! The controller of claims: finds or makes their volumes, lets them grow, and keeps them while Pods use them.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Reader, Reconciler,
    k8s_openapi::{
        api::{
            core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod},
            storage::v1::StorageClass,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
    owner, rbac,
    serde_json::json,
};

use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, CLAIM_USERS, SELECTED_NODE, annotation, binding, capacity,
    claim_users, class::PROVISIONER, class_of, expansion, is_bound, provision, unused, waits_for_consumer,
};
use crate::pods;

const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Claims> {
    Controller::new(Claims)
        .name("persistentvolume-binder-controller")
        .core_events("persistentvolume-controller")
        .watches::<PersistentVolume, _>(|volume, cache| {
            match volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref()) {
                Some(claim) => {
                    vec![ObjectKey::new(
                        claim.namespace.as_deref(),
                        claim.name.as_deref().unwrap_or_default(),
                    )]
                }
                None => unbound(cache),
            }
        })
        .watches::<StorageClass, _>(|_, cache| unbound(cache))
        .watches::<Pod, _>(|pod, _| {
            let namespace = pod.metadata.namespace.as_deref();
            super::claim_names(pod).iter().map(|claim| ObjectKey::new(namespace, claim)).collect()
        })
        .reads::<Node>()
        .index::<Pod>(CLAIM_USERS, claim_users)
        .concurrency(4)
        .permits([rbac::rule("", ["persistentvolumes"], ["create", "patch"])])
}

/// The claims that have no volume yet.
fn unbound(cache: &Reader) -> Vec<ObjectKey> {
    let claims = cache.list::<PersistentVolumeClaim>(None).unwrap_or_default();
    claims.iter().filter(|claim| !is_bound(claim)).map(|claim| ObjectKey::of(&**claim)).collect()
}

/// Reconciles claims.
pub(crate) struct Claims;

impl Reconciler for Claims {
    type Resource = PersistentVolumeClaim;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        claim: Arc<PersistentVolumeClaim>,
        ctx: &Context<PersistentVolumeClaim>,
    ) -> Result<Action, windlass::Error> {
        let done = Box::pin(reconcile(claim, ctx)).await;
        crate::retry_conflicts(done.map(|()| Action::await_change()))
    }
}

async fn reconcile(
    claim: Arc<PersistentVolumeClaim>,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<()> {
    let users = ctx.indexed::<Pod>(CLAIM_USERS, &ctx.key().to_string())?;
    let in_use = users.iter().any(|pod| holds(pod, &claim));
    if pods::is_terminating(&claim.metadata) {
        return if in_use { Ok(()) } else { unprotect(&claim, ctx).await };
    }
    let claim = protect(&claim, ctx).await?;
    let volume = match claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) {
        Some(name) => match ctx.get::<PersistentVolume>(None, name)? {
            Some(volume) => usable(&claim, volume, ctx),
            None => return lose(&claim, ctx).await,
        },
        None => find(&claim, ctx).await?,
    };
    let Some(volume) = volume else { return pend(&claim, ctx).await };
    let claim = bind(&claim, &volume, ctx).await?;
    let claim = unused::note(claim, &users, ctx).await?;
    let mounted = users.iter().any(|pod| pods::phase(pod) == "Running");
    expansion::expand(&claim, &volume, mounted, ctx).await
}

/// Whether a Pod keeps a claim from going: one that nobody has started yet does not, and one that has ended does, as long
/// as it is there. A claim that was made for the Pod goes when the Pod does.
fn holds(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let gone = pods::is_terminating(&pod.metadata) && pod.metadata.deletion_grace_period_seconds == Some(0);
    pods::node(pod).is_some()
        && super::claims_of(pod).iter().any(|(used, made)| {
            used == name && (!made || !gone && owner::is_controlled_by(&claim.metadata, pods::uid(pod)))
        })
}

/// The volume that a claim asks for by name, if it can have it.
fn usable(
    claim: &PersistentVolumeClaim,
    volume: Arc<PersistentVolume>,
    ctx: &Context<PersistentVolumeClaim>,
) -> Option<Arc<PersistentVolume>> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let why = match binding::is_for(&volume, claim) {
        Some(true) => return Some(volume),
        Some(false) => {
            Event::warning("FailedBinding", format!("volume \"{name}\" already bound to a different claim."))
        }
        None => match binding::mismatch(&volume, claim) {
            None => return Some(volume),
            Some(why) => {
                let note = format!("Cannot bind to requested volume \"{name}\": {why}");
                Event::warning("VolumeMismatch", note)
            }
        },
    };
    // A claim that has lost its volume to another is told so elsewhere.
    if !is_bound(claim) {
        ctx.event(why.action("Bind"));
    }
    None
}

/// Pods that use a claim keep it from going.
async fn protect(
    claim: &Arc<PersistentVolumeClaim>,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<Arc<PersistentVolumeClaim>> {
    if claim.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == PROTECTION) {
        return Ok(claim.clone());
    }
    let add = |claim: &mut PersistentVolumeClaim| {
        claim.metadata.finalizers.get_or_insert_default().push(PROTECTION.to_owned());
    };
    ctx.modify(&**claim, add).await
}

async fn unprotect(
    claim: &PersistentVolumeClaim,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<()> {
    let removed = ctx.modify(claim, |claim| {
        claim.metadata.finalizers.iter_mut().for_each(|all| all.retain(|one| one != PROTECTION));
    });
    match removed.await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// A volume for a claim that has none: an existing one that fits, or a new one. `None` if it has to wait.
async fn find(
    claim: &Arc<PersistentVolumeClaim>,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<Option<Arc<PersistentVolume>>> {
    let class = class_of(claim, ctx.cache())?;
    let claim = assign_class(claim, class.as_deref(), ctx).await?;
    let waits = class.as_deref().is_some_and(waits_for_consumer);
    let selected = annotation(&claim.metadata, SELECTED_NODE).is_some();
    if waits && !selected {
        let note = "waiting for first consumer to be created before binding";
        ctx.event(Event::normal("WaitForFirstConsumer", note).action("Bind"));
        return Ok(None);
    }
    let volumes = ctx.list::<PersistentVolume>(None)?;
    let node = match annotation(&claim.metadata, SELECTED_NODE) {
        Some(node) => ctx.get::<Node>(None, node)?,
        None => None,
    };
    if let Some(volume) = binding::choose(&claim, &volumes, node.as_deref()) {
        return Ok(Some(volume));
    }
    match class {
        Some(class) if class.provisioner == PROVISIONER => {
            provision::provision(&claim, &class, ctx).await.map(Some)
        }
        Some(class) => {
            let note = format!(
                "Waiting for a volume to be created either by the external provisioner '{}' or manually by the \
                 system administrator. If volume creation is delayed, please verify that the provisioner is running \
                 and correctly registered.",
                class.provisioner
            );
            ctx.event(Event::normal("ExternalProvisioning", note).action("Bind"));
            Ok(None)
        }
        None => {
            explain(&claim, ctx);
            Ok(None)
        }
    }
}

/// A claim that names no class gets the default one.
async fn assign_class(
    claim: &Arc<PersistentVolumeClaim>,
    class: Option<&StorageClass>,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<Arc<PersistentVolumeClaim>> {
    let named = claim.spec.as_ref().is_some_and(|spec| spec.storage_class_name.is_some());
    let Some(class) = class.filter(|_| !named) else { return Ok(claim.clone()) };
    let name = class.metadata.name.clone();
    ctx.modify(&**claim, |claim| claim.spec.get_or_insert_default().storage_class_name = name).await
}

fn explain(claim: &PersistentVolumeClaim, ctx: &Context<PersistentVolumeClaim>) {
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or_default();
    if class.is_empty() {
        let note = "no persistent volumes available for this claim and no storage class is set";
        ctx.event(Event::normal("FailedBinding", note).action("Bind"));
    } else {
        let note = format!("storageclass.storage.k8s.io \"{class}\" not found");
        ctx.event(Event::warning("ProvisioningFailed", note).action("Provision"));
    }
}

/// Writes that the claim and the volume have each other: in the volume first, so that nobody else takes it.
async fn bind(
    claim: &Arc<PersistentVolumeClaim>,
    volume: &Arc<PersistentVolume>,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<Arc<PersistentVolumeClaim>> {
    let chosen = binding::is_for(volume, claim).is_none();
    let complete = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.uid.as_ref()).is_some();
    let mut volume = volume.clone();
    if !complete {
        volume = ctx
            .modify(&*volume, |volume| {
                if chosen {
                    let annotations = volume.metadata.annotations.get_or_insert_default();
                    annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
                }
                volume.spec.get_or_insert_default().claim_ref = Some(binding::reference(claim));
            })
            .await?;
    }
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        let status = json!({ "phase": "Bound", "lastPhaseTransitionTime": Time(ctx.now()) });
        volume = ctx.patch_status(&*volume, &status).await?;
    }
    let claim = ctx
        .modify(&**claim, |claim| {
            let spec = claim.spec.get_or_insert_default();
            let annotations = claim.metadata.annotations.get_or_insert_default();
            if spec.volume_name.is_none() {
                spec.volume_name.clone_from(&volume.metadata.name);
                annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
            }
            annotations.insert(BIND_COMPLETED.into(), "yes".into());
        })
        .await?;
    if is_bound(&claim) {
        return Ok(claim);
    }
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".into()),
        access_modes: volume.spec.as_ref().and_then(|spec| spec.access_modes.clone()),
        capacity: capacity(&volume).map(|amount| [("storage".to_owned(), amount.clone())].into()),
        ..claim.status.clone().unwrap_or_default()
    };
    ctx.patch_status(&*claim, &status).await
}

/// A claim without a volume is pending.
async fn pend(claim: &PersistentVolumeClaim, ctx: &Context<PersistentVolumeClaim>) -> windlass::Result<()> {
    let mut status = claim.status.clone().unwrap_or_default();
    status.phase = Some("Pending".into());
    ctx.patch_status(claim, &status).await.map(drop)
}

/// The volume of the claim is not there: gone if it was, or yet to come.
async fn lose(claim: &PersistentVolumeClaim, ctx: &Context<PersistentVolumeClaim>) -> windlass::Result<()> {
    if annotation(&claim.metadata, BIND_COMPLETED).is_none() {
        return pend(claim, ctx).await;
    }
    let mut status = claim.status.clone().unwrap_or_default();
    if status.phase.as_deref() != Some("Lost") {
        let note = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        ctx.event(Event::warning("ClaimLost", note).action("Bind"));
    }
    status.phase = Some("Lost".into());
    (status.capacity, status.access_modes) = (None, None);
    ctx.patch_status(claim, &status).await.map(drop)
}
