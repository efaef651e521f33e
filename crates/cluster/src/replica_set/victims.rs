//! Which Pods go first when there are too many. Pure: Pods and the time enter, the victims leave.
//!
//! The order is Kubernetes' own: Pods that serve least go first (no node, not running, not ready), then those
//! with the lower deletion cost, those on crowded nodes, the most recently ready, those that restart most, and
//! the youngest. Ages are compared on a logarithmic scale, so that the choice among Pods of about the same age
//! does not always hit the youngest node.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use windlass::{jiff::Timestamp, k8s_openapi::api::core::v1::Pod};

use crate::pods;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Chooses `count` Pods out of `active`. `related` are the Pods that make a node crowded.
pub(crate) fn choose(
    active: &[Arc<Pod>],
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| pods::is_active(pod)) {
        *on_node.entry(pods::node(pod).unwrap_or_default()).or_default() += 1;
    }
    let rank = |pod: &Pod| on_node.get(pods::node(pod).unwrap_or_default()).copied().unwrap_or(0);
    let mut sorted = active.to_vec();
    sorted.sort_by(|a, b| compare(a, b, now, &rank));
    sorted.truncate(count);
    sorted
}

/// The Pod that is `Less` goes first.
fn compare(a: &Pod, b: &Pod, now: Timestamp, rank: &dyn Fn(&Pod) -> usize) -> Ordering {
    let (ready_a, ready_b) = (pods::ready_since(a), pods::ready_since(b));
    pods::node(a)
        .is_some()
        .cmp(&pods::node(b).is_some())
        .then_with(|| phase_order(a).cmp(&phase_order(b)))
        .then_with(|| ready_a.is_some().cmp(&ready_b.is_some()))
        .then_with(|| deletion_cost(a).cmp(&deletion_cost(b)))
        .then_with(|| rank(b).cmp(&rank(a)))
        .then_with(|| match (ready_a, ready_b) {
            (Some(a_since), Some(b_since)) => younger_first(a_since, b_since, a, b, now),
            _ => Ordering::Equal,
        })
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| match (created(a), created(b)) {
            (Some(a_at), Some(b_at)) => younger_first(a_at, b_at, a, b, now),
            (a_at, b_at) => a_at.is_some().cmp(&b_at.is_some()),
        })
}

fn phase_order(pod: &Pod) -> u8 {
    match pods::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DELETION_COST));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|status| status.restart_count).max().unwrap_or(0)
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn younger_first(a_at: Timestamp, b_at: Timestamp, a: &Pod, b: &Pod, now: Timestamp) -> Ordering {
    if a_at == b_at {
        return Ordering::Equal;
    }
    let age = |at: Timestamp| magnitude(now.duration_since(at).as_nanos());
    age(a_at).cmp(&age(b_at)).then_with(|| a.metadata.uid.cmp(&b.metadata.uid))
}

/// The age's power of two; -1 for what has no age.
fn magnitude(nanoseconds: i128) -> i64 {
    if nanoseconds <= 0 { -1 } else { i64::from(nanoseconds.ilog2()) }
}

#[cfg(test)]
mod tests {
    use windlass::k8s_openapi::api::core::v1::ContainerStatus;

    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn names(pods: Vec<Arc<Pod>>) -> Vec<String> {
        pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    fn first(pods: Vec<Pod>) -> String {
        let pods: Vec<Arc<Pod>> = pods.into_iter().map(Arc::new).collect();
        names(choose(&pods, &pods, 1, at(1000))).remove(0)
    }

    fn running(name: &str) -> Pod {
        Pod::test(name).on("n1").phase("Running")
    }

    #[test]
    fn pods_that_serve_least_go_first() {
        assert_eq!(first(vec![running("a").ready_at(1), Pod::test("unassigned")]), "unassigned");
        assert_eq!(first(vec![running("a"), Pod::test("pending").on("n1")]), "pending");
        assert_eq!(first(vec![running("a").ready_at(1), running("unready")]), "unready");
    }

    #[test]
    fn a_lower_deletion_cost_goes_first() {
        let cheap = running("cheap").ready_at(1).annotated(DELETION_COST, "-5");
        assert_eq!(first(vec![running("a").ready_at(999), cheap]), "cheap");
    }

    #[test]
    fn a_crowded_node_loses_first() {
        let pods =
            vec![running("a").on("n2").ready_at(5), running("b").ready_at(5), running("c").ready_at(5)];
        assert_eq!(first(pods), "b");
    }

    #[test]
    fn the_most_recently_ready_goes_first_on_a_logarithmic_scale() {
        assert_eq!(first(vec![running("old").ready_at(1), running("young").ready_at(990)]), "young");
        // Both are about as old: the uid decides.
        assert_eq!(first(vec![running("b").ready_at(1), running("a").ready_at(2)]), "a");
    }

    #[test]
    fn pods_that_restart_more_go_before_younger_ones() {
        let mut restarting = running("restarting").created_at(1);
        restarting.status.get_or_insert_default().container_statuses =
            Some(vec![ContainerStatus { restart_count: 3, ..ContainerStatus::default() }]);
        assert_eq!(first(vec![running("young").created_at(999), restarting]), "restarting");
        assert_eq!(first(vec![running("young").created_at(999), running("old").created_at(1)]), "young");
    }
}
