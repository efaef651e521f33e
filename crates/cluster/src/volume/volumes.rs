//! The controller of volumes: says whether they are free, and what becomes of them when their claim is gone.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, ObjectKey, Reconciler,
    k8s_openapi::{
        api::core::v1::{PersistentVolume, PersistentVolumeClaim},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    rbac,
    serde_json::json,
};

use super::{
    annotation,
    class::PROVISIONER,
    provision::{PROTECTION, PROVISIONED_BY},
};
use crate::pods;

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Volumes> {
    Controller::new(Volumes)
        .name("persistentvolume-controller")
        .core_events("persistentvolume-controller")
        .watches::<PersistentVolumeClaim, _>(|claim, _| {
            let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
            volume.map(ObjectKey::cluster).into_iter().collect()
        })
        .permits([rbac::rule("", ["persistentvolumes"], ["delete"])])
}

/// Reconciles volumes.
pub(crate) struct Volumes;

/// The claim of a volume.
#[derive(PartialEq, Eq)]
enum Claim {
    None,
    /// Named by hand, and not bound yet.
    Reserved,
    There,
    Gone,
}

impl Reconciler for Volumes {
    type Resource = PersistentVolume;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        volume: Arc<PersistentVolume>,
        ctx: &Context<PersistentVolume>,
    ) -> Result<Action, windlass::Error> {
        let done = Box::pin(reconcile(&volume, ctx)).await;
        crate::retry_conflicts(done.map(|()| Action::await_change()))
    }
}

async fn reconcile(volume: &PersistentVolume, ctx: &Context<PersistentVolume>) -> windlass::Result<()> {
    let claim = claim(volume, ctx).await?;
    if pods::is_terminating(&volume.metadata) {
        return if claim == Claim::There { Ok(()) } else { unprotect(volume, ctx).await };
    }
    match claim {
        Claim::There => Ok(()),
        Claim::None | Claim::Reserved => note(volume, "Available", ctx).await,
        Claim::Gone => {
            note(volume, "Released", ctx).await?;
            let policy =
                volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
            let own = annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER);
            if policy == Some("Delete") && own { ctx.delete(volume).await } else { Ok(()) }
        }
    }
}

async fn claim(volume: &PersistentVolume, ctx: &Context<PersistentVolume>) -> windlass::Result<Claim> {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
        return Ok(Claim::None);
    };
    if reference.uid.is_none() {
        return Ok(Claim::Reserved);
    }
    let (namespace, name) = (reference.namespace.as_deref(), reference.name.as_deref().unwrap_or_default());
    let same = |claim: &PersistentVolumeClaim| claim.metadata.uid == reference.uid;
    if ctx.get::<PersistentVolumeClaim>(namespace, name)?.is_some_and(|claim| same(&claim)) {
        return Ok(Claim::There);
    }
    // The cache may lag behind, and a volume that is released cannot be taken back.
    let live = ctx.fetch::<PersistentVolumeClaim>(namespace, name).await?;
    Ok(if live.is_some_and(|claim| same(&claim)) { Claim::There } else { Claim::Gone })
}

async fn note(
    volume: &PersistentVolume,
    phase: &str,
    ctx: &Context<PersistentVolume>,
) -> windlass::Result<()> {
    if volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase) {
        return Ok(());
    }
    let status = json!({ "phase": phase, "lastPhaseTransitionTime": Time(ctx.now()) });
    ctx.patch_status(volume, &status).await.map(drop)
}

async fn unprotect(volume: &PersistentVolume, ctx: &Context<PersistentVolume>) -> windlass::Result<()> {
    let removed = ctx.modify(volume, |volume| {
        volume.metadata.finalizers.iter_mut().for_each(|all| all.retain(|one| one != PROTECTION));
    });
    match removed.await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
