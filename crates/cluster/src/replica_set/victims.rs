//! Which Pods go first when there are too many. Pure: Pods and the time enter, the victims leave.
//!
//! The order is Kubernetes' own: Pods that serve least go first (no node, not running, not ready), then those
//! with the lower deletion cost, those on crowded nodes, the most recently ready, those that restart most, and
//! the youngest. Ages are compared on a logarithmic scale, so that the choice among Pods of about the same age
//! does not always hit the youngest node; among those the uid decides, which is to say chance.
//!
//! Kubernetes asks the uid as soon as two Pods were ready at different times of about the same age, and goes on to the
//! restarts if it was the same time: three Pods can then go before each other in a circle. Here every Pod has one
//! [`Rank`], and the uid comes last in it. Where Kubernetes' choice is not chance, it is the same.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::core::v1::{ContainerStatus, Pod},
};

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
    let crowd = |pod: &Pod| on_node.get(pods::node(pod).unwrap_or_default()).copied().unwrap_or(0);
    let mut sorted = active.to_vec();
    sorted.sort_by_cached_key(|pod| Rank::of(pod, crowd(pod), now));
    sorted.truncate(count);
    sorted
}

/// Where a Pod stands among those that may go. The lowest goes first; what is first here decides first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_node: bool,
    phase: u8,
    is_ready: bool,
    deletion_cost: i32,
    crowd: Reverse<usize>,
    /// A Pod that does not say since when it is ready goes before one that does.
    ready_for: Option<i64>,
    restarts: Reverse<(i32, i32)>,
    /// A Pod without a creation time goes before one that has one.
    age: Option<i64>,
    uid: Option<String>,
}

impl Rank {
    fn of(pod: &Pod, crowd: usize, now: Timestamp) -> Self {
        let age = |at: Timestamp| magnitude(now.duration_since(at).as_nanos());
        let ready = pods::condition(pod, pods::READY).filter(|condition| condition.status == "True");
        Self {
            has_node: pods::node(pod).is_some(),
            phase: phase_order(pod),
            is_ready: ready.is_some(),
            deletion_cost: deletion_cost(pod),
            crowd: Reverse(crowd),
            ready_for: ready.and_then(|ready| ready.last_transition_time.as_ref()).map(|time| age(time.0)),
            restarts: Reverse(restarts(pod)),
            age: pod.metadata.creation_timestamp.as_ref().map(|time| age(time.0)),
            uid: pod.metadata.uid.clone(),
        }
    }
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

/// The most restarts of a container, and the most of a sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: BTreeSet<&str> = init
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let most = |statuses: Option<&Vec<ContainerStatus>>, counts: &dyn Fn(&str) -> bool| {
        let counted = statuses.into_iter().flatten().filter(|status| counts(&status.name));
        counted.map(|status| status.restart_count).max().unwrap_or(0)
    };
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_ref());
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    (most(containers, &|_| true), most(init, &|name| sidecars.contains(name)))
}

/// The age's power of two; -1 for what has no age.
fn magnitude(nanoseconds: i128) -> i64 {
    if nanoseconds <= 0 { -1 } else { i64::from(nanoseconds.ilog2()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn restarts_decide_among_pods_of_about_the_same_age() {
        let restarting = |name: &str, count| {
            let mut pod = running(name).ready_at(1);
            let status = ContainerStatus { restart_count: count, ..ContainerStatus::default() };
            pod.status.get_or_insert_default().container_statuses = Some(vec![status]);
            pod
        };
        assert_eq!(first(vec![restarting("a", 0), restarting("b", 2), restarting("c", 1)]), "b");
    }

    /// Pods that differ in what the order looks at, from so few values that many are alike.
    fn some_pod() -> impl Strategy<Value = Arc<Pod>> {
        let node = prop::sample::select(vec!["", "n1", "n2"]);
        let phase = prop::sample::select(vec!["Pending", "Running", "Unknown"]);
        let ready = prop::option::of(990..1003_i64);
        let created = prop::option::of(990..1003_i64);
        (0..1000_u32, node, phase, ready, created, -1..2_i32, 0..3_i32).prop_map(
            |(name, node, phase, ready, created, cost, restarts)| {
                let mut pod = Pod::test(&format!("p{name}")).phase(phase);
                pod = if node.is_empty() { pod } else { pod.on(node) };
                pod = if let Some(second) = ready { pod.ready_at(second) } else { pod };
                pod = if let Some(second) = created { pod.created_at(second) } else { pod };
                let status = ContainerStatus { restart_count: restarts, ..ContainerStatus::default() };
                pod.status.get_or_insert_default().container_statuses = Some(vec![status]);
                Arc::new(pod.annotated(DELETION_COST, &cost.to_string()))
            },
        )
    }

    proptest! {
        /// Whoever lists the Pods in whichever order, the same ones go, in the same order; and of three Pods no two
        /// ever go before each other in a circle, at which the sort would panic.
        #[test]
        fn the_choice_depends_on_the_pods_alone(
            (all, shuffled) in prop::collection::vec(some_pod(), 1..80)
                .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
            count in 0..80_usize,
        ) {
            let uids = |pods: &[Arc<Pod>]| -> Vec<String> {
                choose(pods, &all, count, at(1000)).iter().map(|pod| pods::uid(pod).to_owned()).collect()
            };
            prop_assert_eq!(uids(&all), uids(&shuffled));
            prop_assert_eq!(uids(&all).len(), count.min(all.len()));
        }
    }
}
