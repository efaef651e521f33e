//! Which Pods go first when there are too many. Pure.
//!
//! Kubernetes' own order: those without a node, pending, not ready, of a low deletion cost, on crowded nodes, ready
//! for the shortest time, restarted most often, and made last.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::pods;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Some Pods in the order in which they are to go.
pub(super) fn sorted(candidates: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let mut crowd: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in candidates {
        *crowd.entry(node(pod)).or_default() += 1;
    }
    let rank = |pod: &Pod| crowd.get(node(pod)).copied().unwrap_or(0);
    let mut sorted = candidates.to_vec();
    sorted.sort_by(|a, b| compare(a, b, &rank));
    sorted
}

/// The Pod that is `Less` goes first.
fn compare(a: &Pod, b: &Pod, rank: &dyn Fn(&Pod) -> usize) -> Ordering {
    let assigned = |pod: &Pod| !node(pod).is_empty();
    assigned(a)
        .cmp(&assigned(b))
        .then_with(|| running(a).cmp(&running(b)))
        .then_with(|| pods::is_ready(a).cmp(&pods::is_ready(b)))
        .then_with(|| cost(a).cmp(&cost(b)))
        .then_with(|| rank(b).cmp(&rank(a)))
        .then_with(|| pods::ready_since(b).cmp(&pods::ready_since(a)))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| b.creation_timestamp().cmp(&a.creation_timestamp()))
        // Made within one second: the last name, so that the choice is always the same.
        .then_with(|| b.name_any().cmp(&a.name_any()))
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

fn running(pod: &Pod) -> u8 {
    match pods::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn cost(pod: &Pod) -> i32 {
    pod.annotations().get(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    pods::container_statuses(pod).map(|status| status.restart_count).max().unwrap_or(0)
}
