//! Whether a Job is over, and why. Pure: the Job and its Pods enter, a condition leaves.

use std::{sync::Arc, time::Duration};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            batch::v1::{JobCondition, JobSpec, JobStatus},
            core::v1::Pod,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use super::{
    TRACKING, holds,
    indexes::{self, Indexes},
    policy::{self, Failure},
};
use crate::pods;

pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";
/// The Job has failed, and its Pods are being stopped.
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
/// The Job has succeeded, and its Pods are being stopped.
pub(super) const SUCCESS: &str = "SuccessCriteriaMet";

/// The annotation that counts the failures of an index.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// What the Pods of a Job show.
pub(super) struct Facts {
    pub(super) indexed: bool,
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) succeeded_indexes: Indexes,
    /// Only with a back-off limit for each index.
    pub(super) failed_indexes: Option<Indexes>,
    /// The indexes that were counted as succeeded before.
    pub(super) counted_indexes: Indexes,
}

impl Facts {
    pub(super) fn of(spec: &JobSpec, status: &JobStatus, pods: &[Arc<Pod>]) -> Self {
        let indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let succeeded_before = uncounted.succeeded.unwrap_or_default();
        let failed_before = uncounted.failed.unwrap_or_default();
        let news = |known: &[String], test: &dyn Fn(&Pod) -> bool| {
            let new =
                |pod: &&Arc<Pod>| is_tracked(pod) && test(pod) && !known.iter().any(|k| k == pods::uid(pod));
            i32::try_from(pods.iter().filter(new).count() + known.len()).unwrap_or(i32::MAX)
        };
        let mut facts = Self {
            indexed,
            active: pods.iter().filter(|pod| pods::is_active(pod)).cloned().collect(),
            succeeded: (status.succeeded.unwrap_or(0))
                .saturating_add(news(&succeeded_before, &|pod| pods::phase(pod) == "Succeeded")),
            failed: (status.failed.unwrap_or(0))
                .saturating_add(news(&failed_before, &|pod| counts_as_failure(spec, pod))),
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            counted_indexes: Indexes::default(),
        };
        if indexed {
            facts.count_indexes(spec, status, pods);
        }
        facts
    }

    fn count_indexes(&mut self, spec: &JobSpec, status: &JobStatus, pods: &[Arc<Pod>]) {
        let completions = spec.completions.unwrap_or(0);
        let known = |text: &Option<String>| Indexes::parse(text.as_deref().unwrap_or_default(), completions);
        let new = |test: &dyn Fn(&Pod) -> bool| -> Vec<i32> {
            let matching = pods.iter().filter(|pod| is_tracked(pod) && test(pod));
            matching.filter_map(|pod| indexes::of(pod, spec)).collect()
        };
        self.counted_indexes = known(&status.completed_indexes);
        self.succeeded_indexes = self.counted_indexes.clone();
        self.succeeded_indexes.extend(new(&|pod| pods::phase(pod) == "Succeeded"));
        self.succeeded = self.succeeded_indexes.len();
        if let Some(limit) = spec.backoff_limit_per_index {
            let mut failed = known(&status.failed_indexes);
            failed.extend(new(&|pod| fails_index(spec, pod, limit)));
            self.failed_indexes = Some(failed);
        }
    }
}

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING)
}

/// Whether the Pod has failed, or goes without having succeeded.
pub(super) fn is_failed(spec: &JobSpec, pod: &Pod) -> bool {
    match pods::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => replaces_early(spec) && pods::is_terminating(&pod.metadata),
    }
}

/// Whether a Pod is replaced as soon as it goes, not only when it is gone.
pub(super) fn replaces_early(spec: &JobSpec) -> bool {
    spec.pod_replacement_policy.as_deref() != Some("Failed")
}

pub(super) fn counts_as_failure(spec: &JobSpec, pod: &Pod) -> bool {
    is_failed(spec, pod) && policy::of_failure(spec, pod) != Failure::Ignored
}

fn fails_index(spec: &JobSpec, pod: &Pod, limit: i32) -> bool {
    if !is_failed(spec, pod) {
        return false;
    }
    match policy::of_failure(spec, pod) {
        Failure::FailsIndex => true,
        Failure::Ignored => false,
        _ => index_failures(pod) >= limit,
    }
}

/// How often the index of a Pod failed before this Pod.
pub(super) fn index_failures(pod: &Pod) -> i32 {
    pods::annotation(pod, INDEX_FAILURES).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// A condition as of now.
pub(super) fn condition(
    type_: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> JobCondition {
    JobCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// Adds or replaces a condition; whether that changed something. A condition that never held is not added.
pub(super) fn put(status: &mut JobStatus, condition: JobCondition) -> bool {
    let conditions = status.conditions.get_or_insert_default();
    let changed = match conditions.iter_mut().find(|old| old.type_ == condition.type_) {
        Some(old) => {
            let same = (&old.status, &old.reason, &old.message)
                == (&condition.status, &condition.reason, &condition.message);
            if !same {
                *old = condition;
            }
            !same
        }
        None if condition.status == "True" => {
            conditions.push(condition);
            true
        }
        None => false,
    };
    if conditions.is_empty() {
        status.conditions = None;
    }
    changed
}

/// That enough Pods have succeeded.
pub(super) fn success(now: Timestamp) -> JobCondition {
    condition(SUCCESS, "True", "CompletionsReached", "Reached expected number of succeeded pods", now)
}

/// Whether enough Pods have succeeded and none runs any more.
pub(super) fn is_complete(spec: &JobSpec, facts: &Facts) -> bool {
    let enough = match spec.completions {
        // Without a number one success is enough.
        None => facts.succeeded > 0,
        Some(completions) => facts.succeeded >= completions,
    };
    enough && facts.active.is_empty()
}

/// How a Job ends whose Pods need not all have succeeded: it failed, or its success policy is satisfied.
pub(super) fn end(
    spec: &JobSpec,
    status: &JobStatus,
    pods: &[Arc<Pod>],
    facts: &Facts,
    now: Timestamp,
) -> Option<JobCondition> {
    // What was decided before is not decided again.
    if let Some(met) = holds(status, SUCCESS) {
        return Some(met.clone());
    }
    if let Some(target) = holds(status, FAILURE_TARGET) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        return Some(condition(FAILED, "True", &text(&target.reason), &text(&target.message), now));
    }
    let fail = |reason: &str, message: &str| Some(condition(FAILURE_TARGET, "True", reason, message, now));
    let failing = pods.iter().filter(|pod| is_failed(spec, pod)).find_map(|pod| {
        if let Failure::FailsJob(why) = policy::of_failure(spec, pod) { Some(why) } else { None }
    });
    if let Some(why) = failing {
        return fail("PodFailurePolicy", &why);
    }
    let limit = spec.backoff_limit.unwrap_or(6);
    if facts.failed > limit || restarts_exceed(spec, limit, pods) {
        return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline_passed(spec, status, now) {
        return fail("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    if let Some(failed) = &facts.failed_indexes {
        if spec.max_failed_indexes.is_some_and(|most| failed.len() > most) {
            let why = "Job has exceeded the specified maximal number of failed indexes";
            return fail("MaxFailedIndexesExceeded", why);
        }
        let ended = failed.len().saturating_add(facts.succeeded_indexes.len());
        if failed.len() > 0 && ended >= spec.completions.unwrap_or(0) {
            return fail("FailedIndexes", "Job has failed indexes");
        }
    }
    let met = policy::satisfied(spec, &facts.succeeded_indexes).filter(|_| facts.indexed)?;
    Some(condition(SUCCESS, "True", "SuccessPolicy", &met, now))
}

/// Where containers are restarted in place, their restarts count instead of failed Pods.
fn restarts_exceed(spec: &JobSpec, limit: i32, pods: &[Arc<Pod>]) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let running = pods.iter().filter(|pod| matches!(pods::phase(pod), "Running" | "Pending"));
    let statuses = running
        .filter_map(|pod| pod.status.as_ref())
        .flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses).flatten());
    let restarts: i64 = statuses.map(|container| i64::from(container.restart_count)).sum();
    restarts >= i64::from(limit.max(1))
}

fn deadline_passed(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> bool {
    let Some(deadline) = spec.active_deadline_seconds.filter(|_| spec.suspend != Some(true)) else {
        return false;
    };
    let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
    let start = status.start_time.as_ref().map(|time| time.0);
    start.is_some_and(|start| Duration::try_from(now.duration_since(start)).unwrap_or_default() >= deadline)
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn spec(fields: Value) -> JobSpec {
        let mut spec = json!({"template": {"spec": {"containers": []}}, "completions": 2, "backoffLimit": 1});
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        from_value(spec).unwrap()
    }

    fn tracked(name: &str, phase: &str) -> Arc<Pod> {
        let mut pod = Pod::test(name).phase(phase);
        pod.metadata.finalizers = Some(vec![TRACKING.into()]);
        Arc::new(pod)
    }

    fn reason(spec: &JobSpec, status: &JobStatus, pods: &[Arc<Pod>], second: i64) -> Option<String> {
        let facts = Facts::of(spec, status, pods);
        end(spec, status, pods, &facts, at(second)).and_then(|condition| condition.reason)
    }

    #[test]
    fn counted_and_uncounted_pods_are_added_up() {
        let status: JobStatus = from_value(json!({
            "succeeded": 1, "failed": 2, "uncountedTerminatedPods": {"succeeded": ["uid-a"], "failed": ["uid-gone"]}
        }))
        .unwrap();
        let untracked = Arc::new(Pod::test("old").phase("Succeeded"));
        let pods = [tracked("a", "Succeeded"), tracked("b", "Succeeded"), tracked("c", "Failed"), untracked];
        let facts = Facts::of(&spec(json!({})), &status, &pods);
        assert_eq!((facts.succeeded, facts.failed), (3, 4));
    }

    #[test]
    fn too_many_failures_end_a_job() {
        let failed = [tracked("a", "Failed"), tracked("b", "Failed")];
        let none = JobStatus::default();
        assert_eq!(reason(&spec(json!({})), &none, &failed[..1], 0), None);
        assert_eq!(reason(&spec(json!({})), &none, &failed, 0).as_deref(), Some("BackoffLimitExceeded"));
    }

    #[test]
    fn a_deadline_ends_a_job_unless_it_is_suspended() {
        let started: JobStatus = from_value(json!({"startTime": "1970-01-01T00:01:40Z"})).unwrap();
        let limited = spec(json!({"activeDeadlineSeconds": 10}));
        assert_eq!(reason(&limited, &started, &[], 109), None);
        assert_eq!(reason(&limited, &started, &[], 110).as_deref(), Some("DeadlineExceeded"));
        let suspended = spec(json!({"activeDeadlineSeconds": 10, "suspend": true}));
        assert_eq!(reason(&suspended, &started, &[], 110), None);
    }

    #[test]
    fn an_index_fails_by_its_own_limit() {
        let spec = spec(json!({"completionMode": "Indexed", "backoffLimitPerIndex": 1, "backoffLimit": 100}));
        let at_index = |name: &str, phase: &str, index: &str, failures: &str| {
            let pod = Pod::clone(&tracked(name, phase));
            Arc::new(pod.annotated(indexes::INDEX, index).annotated(INDEX_FAILURES, failures))
        };
        let first = [at_index("a", "Failed", "0", "0")];
        assert_eq!(reason(&spec, &JobStatus::default(), &first, 0), None);
        let both = [at_index("a", "Failed", "0", "1"), at_index("b", "Succeeded", "1", "0")];
        assert_eq!(reason(&spec, &JobStatus::default(), &both, 0).as_deref(), Some("FailedIndexes"));
    }
}
