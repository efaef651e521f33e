//! Growing a claim: the volume first, then the file system, for which a Pod must run with it.

use std::sync::Arc;

use windlass::{
    Context, Event,
    k8s_openapi::{
        api::core::v1::{
            PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition,
            PersistentVolumeClaimStatus,
        },
        apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time},
    },
};

use super::{capacity, requested, storage};
use crate::quantity;

const PENDING: &str = "FileSystemResizePending";

fn size(amount: Option<&Quantity>) -> i128 {
    amount.and_then(quantity::thousandths).unwrap_or(0)
}

/// Takes a bound claim that asks for more than it has as far as it can go. `mounted`: a Pod runs with it.
pub(super) async fn expand(
    claim: &Arc<PersistentVolumeClaim>,
    volume: &Arc<PersistentVolume>,
    mounted: bool,
    ctx: &Context<PersistentVolumeClaim>,
) -> windlass::Result<()> {
    let Some(wanted) = requested(claim) else { return Ok(()) };
    let mut status = claim.status.clone().unwrap_or_default();
    if size(Some(wanted)) <= size(storage(status.capacity.as_ref())) {
        return Ok(());
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if size(Some(wanted)) > size(capacity(volume)) {
        let note = format!("External resizer is resizing volume {name}");
        ctx.event(Event::normal("Resizing", note).action("Resize"));
        let amount = wanted.clone();
        ctx.modify(&**volume, |volume| {
            let spec = volume.spec.get_or_insert_default();
            spec.capacity.get_or_insert_default().insert("storage".into(), amount);
        })
        .await?;
        note_pending(&mut status, Time(ctx.now()));
        ctx.patch_status(&**claim, &status).await?;
        let note = "Require file system resize of volume on node";
        ctx.event(Event::normal("FileSystemResizeRequired", note).action("Resize"));
    }
    if mounted {
        status.conditions = status.conditions.map(|mut conditions| {
            conditions.retain(|condition| condition.type_ != PENDING);
            conditions
        });
        status.conditions = status.conditions.filter(|conditions| !conditions.is_empty());
        status.capacity.get_or_insert_default().insert("storage".into(), wanted.clone());
        ctx.patch_status(&**claim, &status).await?;
        let note = format!("MountVolume.NodeExpandVolume succeeded for volume \"{name}\"");
        ctx.event(Event::normal("FileSystemResizeSuccessful", note).action("Resize"));
    }
    Ok(())
}

fn note_pending(status: &mut PersistentVolumeClaimStatus, now: Time) {
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().any(|condition| condition.type_ == PENDING) {
        return;
    }
    conditions.push(PersistentVolumeClaimCondition {
        type_: PENDING.into(),
        status: "True".into(),
        message: Some(
            "Waiting for user to (re-)start a pod to finish file system resize of volume on node.".into(),
        ),
        last_transition_time: Some(now),
        ..PersistentVolumeClaimCondition::default()
    });
}
