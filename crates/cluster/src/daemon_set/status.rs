//! The status of a DaemonSet, from what was observed. Pure.

use windlass::k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};

use super::plan::{self, Scene};
use crate::pods;

/// The status as it should be.
pub(super) fn observed(set: &DaemonSet, scene: &Scene<'_>) -> DaemonSetStatus {
    let by_node = scene.by_node();
    let old = set.status.clone().unwrap_or_default();
    let mut status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        collision_count: old.collision_count,
        conditions: old.conditions,
        ..DaemonSetStatus::default()
    };
    let (mut available, mut updated) = (0, 0);
    for place in &scene.nodes {
        let first = by_node.get(place.name()).and_then(|pods| pods.first());
        if !place.may_start {
            status.number_misscheduled += i32::from(first.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(pod) = first else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pods::is_ready(pod));
        available += i32::from(scene.is_available(pod));
        updated += i32::from(plan::hash(pod) == scene.hash);
    }
    let some = |count: i32| (count != 0).then_some(count);
    status.number_available = some(available);
    status.number_unavailable = some(status.desired_number_scheduled - available);
    status.updated_number_scheduled = some(updated);
    status
}
