//! What the claims of a Pod mean for its scheduling.

use std::sync::Arc;

use windlass::{
    Context,
    k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod},
};

use crate::volume;

/// The state of a Pod's claims.
pub(super) enum Volumes {
    /// All have their volumes.
    Ready,
    /// The Pod cannot be scheduled.
    Refused(String),
    /// These get their volumes as soon as a node is chosen.
    Waiting(Vec<Arc<PersistentVolumeClaim>>),
}

/// Looks at the claims of a Pod.
pub(super) fn check(pod: &Pod, ctx: &Context<Pod>) -> windlass::Result<Volumes> {
    let mut waiting = Vec::new();
    for name in volume::claim_names(pod) {
        let Some(claim) = ctx.get::<PersistentVolumeClaim>(ctx.key().namespace(), &name)? else {
            return Ok(Volumes::Refused(format!("persistentvolumeclaim \"{name}\" not found")));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(Volumes::Refused(format!("persistentvolumeclaim \"{name}\" is being deleted")));
        }
        if volume::is_bound(&claim) {
            continue;
        }
        let class = volume::class_of(&claim, ctx.cache())?;
        if !class.is_some_and(|class| volume::waits_for_consumer(&class)) {
            return Ok(Volumes::Refused("pod has unbound immediate PersistentVolumeClaims".into()));
        }
        waiting.push(claim);
    }
    Ok(if waiting.is_empty() { Volumes::Ready } else { Volumes::Waiting(waiting) })
}

/// Asks for the volumes of a Pod that will run on a node.
pub(super) async fn select(
    claims: &[Arc<PersistentVolumeClaim>],
    node: &str,
    ctx: &Context<Pod>,
) -> windlass::Result<()> {
    for claim in claims {
        let key = volume::SELECTED_NODE.to_owned();
        let selected = ctx.modify(&**claim, |claim| {
            claim.metadata.annotations.get_or_insert_default().entry(key).or_insert_with(|| node.to_owned());
        });
        match selected.await {
            // Another Pod's claim too, or gone: the watch leads back here.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            other => drop(other?),
        }
    }
    Ok(())
}
