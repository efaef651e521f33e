//! The status of a StatefulSet, from what was observed. Pure.

use std::{sync::Arc, time::Duration};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::{
        apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus},
        core::v1::Pod,
    },
};

use super::identity;
use crate::pods;

/// What the status depends on besides the Pods.
pub(super) struct Inputs<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) spec: &'a StatefulSetSpec,
    pub(super) current: &'a str,
    pub(super) update: &'a str,
    pub(super) collisions: i32,
}

/// The status as it should be.
pub(super) fn observed(inputs: &Inputs<'_>, all: &[Arc<Pod>], now: Timestamp) -> StatefulSetStatus {
    let min_ready = inputs.spec.min_ready_seconds.unwrap_or(0);
    let count = |test: &dyn Fn(&Pod) -> bool| all.iter().filter(|pod| test(pod)).count() as i32;
    let running_and_ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let available =
        |pod: &Pod| running_and_ready(pod) && pods::available_in(pod, min_ready, now) == Some(Duration::ZERO);
    let of = |revision: &str| {
        count(&|pod: &Pod| !pods::is_terminating(&pod.metadata) && identity::revision(pod) == revision)
    };
    StatefulSetStatus {
        observed_generation: inputs.set.metadata.generation,
        replicas: all.len() as i32,
        ready_replicas: some(count(&running_and_ready)),
        available_replicas: Some(count(&available)),
        current_replicas: some(of(inputs.current)),
        updated_replicas: some(of(inputs.update)),
        current_revision: Some(inputs.current.to_owned()),
        update_revision: Some(inputs.update.to_owned()),
        collision_count: Some(inputs.collisions),
        conditions: inputs.set.status.as_ref().and_then(|status| status.conditions.clone()),
    }
}

/// Once all Pods are of the new revision, it is the current one.
pub(super) fn completed(spec: &StatefulSetSpec, mut status: StatefulSetStatus) -> StatefulSetStatus {
    let wanted = spec.replicas.unwrap_or(1);
    let all = status.updated_replicas.unwrap_or(0) == wanted
        && status.ready_replicas.unwrap_or(0) == wanted
        && status.replicas == wanted;
    if all {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status.current_replicas = status.current_replicas.filter(|count| *count != 0);
    status
}

/// Kubernetes leaves out counts that are zero.
fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        history,
        pods::tests::{PodFixture, at},
    };

    #[test]
    fn pods_are_counted_by_revision_and_an_update_completes() {
        let spec = StatefulSetSpec { replicas: Some(2), min_ready_seconds: Some(5), ..Default::default() };
        let set = StatefulSet::default();
        let inputs = Inputs { set: &set, spec: &spec, current: "a", update: "b", collisions: 0 };
        let pod = |name: &str, revision: &str| {
            Pod::test(name).phase("Running").ready_at(100).labelled(history::HASH, revision)
        };
        let mixed = [Arc::new(pod("s-0", "a")), Arc::new(pod("s-1", "b"))];
        let status = completed(&spec, observed(&inputs, &mixed, at(103)));
        assert_eq!((status.current_replicas, status.updated_replicas), (Some(1), Some(1)));
        assert_eq!((status.ready_replicas, status.available_replicas), (Some(2), Some(0)));
        assert_eq!(status.current_revision.as_deref(), Some("a"));
        let new = [Arc::new(pod("s-0", "b")), Arc::new(pod("s-1", "b"))];
        let status = completed(&spec, observed(&inputs, &new, at(105)));
        assert_eq!(status.current_revision.as_deref(), Some("b"));
        assert_eq!((status.current_replicas, status.available_replicas), (Some(2), Some(2)));
    }
}
