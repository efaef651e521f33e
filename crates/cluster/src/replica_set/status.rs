//! The status of a ReplicaSet, from what was observed. Pure.

use std::{sync::Arc, time::Duration};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus},
            core::v1::Pod,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use crate::{pod_control::reason, pods, selector};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The Pods that the status counts.
pub(super) struct Pods<'a> {
    pub(super) active: &'a [Arc<Pod>],
    pub(super) terminating: usize,
}

/// Why replicas could not be created or deleted.
pub(super) struct Failure {
    reason: &'static str,
    message: String,
}

/// Describes a failure of the run.
pub(super) fn failure(error: &windlass::Error, active: &[Arc<Pod>], spec: &ReplicaSetSpec) -> Failure {
    let missing = active.len() < usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    Failure { reason: if missing { "FailedCreate" } else { "FailedDelete" }, message: reason(error) }
}

/// The status as it should be.
pub(super) fn observed(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    pods: &Pods<'_>,
    failure: Option<Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let labels = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let count = |test: &dyn Fn(&Pod) -> bool| pods.active.iter().filter(|pod| test(pod)).count() as i32;
    let available = |pod: &Pod| pods::available_in(pod, min_ready, now) == Some(Duration::ZERO);
    let old = set.status.clone().unwrap_or_default();
    ReplicaSetStatus {
        replicas: pods.active.len() as i32,
        fully_labeled_replicas: some(count(&|pod| selector::contains(labels, pod.metadata.labels.as_ref()))),
        ready_replicas: some(count(&pods::is_ready)),
        available_replicas: some(count(&available)),
        terminating_replicas: Some(pods.terminating as i32),
        observed_generation: set.metadata.generation,
        conditions: conditions(old.conditions, failure, now),
    }
}

/// Kubernetes leaves out counts that are zero.
fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

fn conditions(
    old: Option<Vec<ReplicaSetCondition>>,
    failure: Option<Failure>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = old.unwrap_or_default();
    match failure {
        None => conditions.retain(|condition| condition.type_.as_deref() != Some(REPLICA_FAILURE)),
        // The first failure stays until it is over: its message would change with every retry.
        Some(_) if conditions.iter().any(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE)) => {
        }
        Some(failure) => conditions.push(ReplicaSetCondition {
            type_: Some(REPLICA_FAILURE.into()),
            status: Some("True".into()),
            reason: Some(failure.reason.into()),
            message: Some(failure.message),
            last_transition_time: Some(Time(now)),
        }),
    }
    (!conditions.is_empty()).then_some(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn spec(min_ready_seconds: i32) -> ReplicaSetSpec {
        let mut spec = ReplicaSetSpec { replicas: Some(3), ..ReplicaSetSpec::default() };
        spec.min_ready_seconds = Some(min_ready_seconds);
        let meta = spec.template.get_or_insert_default().metadata.get_or_insert_default();
        meta.labels = Some([("app".to_owned(), "web".to_owned())].into());
        spec
    }

    #[test]
    fn ready_available_and_fully_labelled_pods_are_counted_apart() {
        let active = [
            Arc::new(Pod::test("a").labelled("app", "web").ready_at(100)),
            Arc::new(Pod::test("b").labelled("app", "web").ready_at(109)),
            Arc::new(Pod::test("c")),
        ];
        let mut set = ReplicaSet::default();
        set.metadata.generation = Some(4);
        let pods = Pods { active: &active, terminating: 2 };
        let status = observed(&set, &spec(5), &pods, None, at(110));
        assert_eq!(status.replicas, 3);
        assert_eq!(status.fully_labeled_replicas, Some(2));
        assert_eq!(status.ready_replicas, Some(2));
        assert_eq!(status.available_replicas, Some(1));
        assert_eq!(status.terminating_replicas, Some(2));
        assert_eq!(status.observed_generation, Some(4));
        assert_eq!(status.conditions, None);
    }

    #[test]
    fn the_first_failure_stands_until_it_is_over() {
        let fail = |message: &str| Some(Failure { reason: "FailedCreate", message: message.into() });
        let first = conditions(None, fail("quota"), at(1)).unwrap();
        let second = conditions(Some(first.clone()), fail("other"), at(2)).unwrap();
        assert_eq!(first, second);
        assert_eq!(conditions(Some(second), None, at(3)), None);
    }
}
