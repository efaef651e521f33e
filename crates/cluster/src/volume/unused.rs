//! Whether a bound claim is used: a condition of it, that says since when nobody refers to it.

use std::sync::Arc;

use windlass::{
    Context,
    k8s_openapi::{
        api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    owner,
};

use crate::pods;

const UNUSED: &str = "Unused";

/// Whether a Pod that has not ended refers to a claim; one that is not scheduled does too.
fn refers(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let own = || owner::is_controlled_by(&claim.metadata, pods::uid(pod));
    !pods::is_finished(pod)
        && super::claims_of(pod).iter().any(|(used, made)| used == name && (!made || own()))
}

/// Keeps the condition of a bound claim.
pub(super) async fn note(
    claim: Arc<PersistentVolumeClaim>,
    users: &[Arc<Pod>],
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<Arc<PersistentVolumeClaim>> {
    let used = users.iter().any(|pod| refers(pod, &claim));
    let (status, reason, message) = if used {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    } else {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    };
    let mut new = claim.status.clone().unwrap_or_default();
    let conditions = new.conditions.get_or_insert_default();
    if conditions.iter().any(|one| one.type_ == UNUSED && one.status == status) {
        return Ok(claim);
    }
    let condition = PersistentVolumeClaimCondition {
        type_: UNUSED.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_transition_time: Some(Time(ctx.now())),
        ..PersistentVolumeClaimCondition::default()
    };
    match conditions.iter_mut().find(|one| one.type_ == UNUSED) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    ctx.patch_status(&*claim, &new).await
}
