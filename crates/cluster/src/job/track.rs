//! Counting Pods exactly once. A Pod that ended is noted in the status by its uid, then loses its finalizer, then
//! becomes a number: whatever is interrupted goes on where it stopped.

use std::{collections::BTreeSet, sync::Arc};

use windlass::{
    Event,
    k8s_openapi::api::{
        batch::v1::{JobCondition, JobStatus},
        core::v1::Pod,
    },
};

use super::{
    Run, indexes,
    verdict::{self, COMPLETE, FAILED, FAILURE_TARGET, Facts, SUCCESS},
};
use crate::pods;

/// The most uids that the status holds.
const MOST_UNCOUNTED: usize = 500;

/// The uids of Pods that have ended and may still have their finalizer.
#[derive(Default)]
struct Uncounted {
    succeeded: Vec<String>,
    failed: Vec<String>,
}

impl Uncounted {
    fn take(status: &mut JobStatus) -> Self {
        let uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
        Self {
            succeeded: uncounted.succeeded.unwrap_or_default(),
            failed: uncounted.failed.unwrap_or_default(),
        }
    }

    fn put(self, status: &mut JobStatus) {
        let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
        uncounted.succeeded = Some(self.succeeded).filter(|all| !all.is_empty());
        uncounted.failed = Some(self.failed).filter(|all| !all.is_empty());
    }

    fn len(&self) -> usize {
        self.succeeded.len() + self.failed.len()
    }
}

/// Makes numbers of those uids whose Pods have lost their finalizer; how many are left.
fn settle(status: &mut JobStatus, tracked: &BTreeSet<String>) -> usize {
    let mut uncounted = Uncounted::take(status);
    let keep = |uids: &mut Vec<String>| {
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid));
        i32::try_from(before - uids.len()).unwrap_or(i32::MAX)
    };
    let (succeeded, failed) = (keep(&mut uncounted.succeeded), keep(&mut uncounted.failed));
    let add = |count: &mut Option<i32>, more: i32| {
        *count = Some(count.unwrap_or(0).saturating_add(more)).filter(|count| *count != 0);
    };
    add(&mut status.succeeded, succeeded);
    add(&mut status.failed, failed);
    let left = uncounted.len();
    uncounted.put(status);
    left
}

impl Run<'_> {
    /// Counts the Pods that have ended, writes the status, and ends the Job if it is over.
    pub(super) async fn track(&mut self, facts: &Facts, end: Option<JobCondition>) -> windlass::Result<()> {
        let mut tracked: BTreeSet<String> = self
            .pods
            .iter()
            .filter(|pod| verdict::is_tracked(pod))
            .map(|pod| pods::uid(pod).to_owned())
            .collect();
        settle(&mut self.status, &tracked);
        let (released, all) = self.note_ended(facts, end.as_ref());
        let end = end.map(|end| self.announce(end));
        self.ctx.patch_status(&*self.job, &self.status).await?;
        for pod in &released {
            self.release(pod).await?;
            tracked.remove(pods::uid(pod));
        }
        let left = settle(&mut self.status, &tracked);
        let stopping = self.status.terminating.unwrap_or(0) > 0;
        let end = end.filter(|_| all && left == 0 && !stopping);
        if let Some(end) = &end {
            verdict::put(&mut self.status, end.clone());
            if end.type_ == COMPLETE {
                self.status.completion_time.clone_from(&end.last_transition_time);
            }
            self.next = None;
        }
        self.ctx.patch_status(&*self.job, &self.status).await?;
        if let Some(end) = &end {
            self.report(end);
        }
        Ok(())
    }

    /// Notes the Pods that have ended; returns those whose finalizer can go, and whether these are all.
    fn note_ended(&mut self, facts: &Facts, end: Option<&JobCondition>) -> (Vec<Arc<Pod>>, bool) {
        let mut uncounted = Uncounted::take(&mut self.status);
        let delayed = self.delayed(facts);
        let going = pods::is_terminating(&self.job.metadata);
        // When a Job has failed, every Pod that has not succeeded has failed with it. When it has succeeded, those that
        // were cut short have not failed.
        let all_failed = end.is_some_and(|end| end.type_ != SUCCESS);
        let cut_short =
            |pod: &Pod| end.is_some_and(|end| end.type_ == SUCCESS) && pods::is_terminating(&pod.metadata);
        let mut released = Vec::new();
        let mut new_indexes = 0;
        let mut pods: Vec<Arc<Pod>> =
            self.pods.iter().filter(|pod| verdict::is_tracked(pod)).cloned().collect();
        if facts.indexed {
            pods.sort_by_key(|pod| (indexes::of(pod, &self.spec), pod.metadata.name.clone()));
        }
        for pod in pods {
            let (uid, index) = (pods::uid(&pod), indexes::of(&pod, &self.spec));
            let succeeded = pods::phase(&pod) == "Succeeded";
            let failed = verdict::is_failed(&self.spec, &pod);
            let kept = index.and_then(|index| delayed.get(&index)).is_some_and(|kept| pods::uid(kept) == uid);
            if !(going || end.is_some() || succeeded || failed && !kept) {
                continue;
            }
            if succeeded && !uncounted.failed.iter().any(|known| known == uid) {
                // A succeeded index is known by itself.
                if facts.indexed {
                    new_indexes += usize::from(index.is_some_and(|index| !facts.counted_indexes.has(index)));
                } else if !uncounted.succeeded.iter().any(|known| known == uid) {
                    uncounted.succeeded.push(uid.to_owned());
                }
            } else if failed && !cut_short(&pod) || all_failed {
                let counts = !failed || verdict::counts_as_failure(&self.spec, &pod);
                let valid = !facts.indexed || index.is_some();
                if counts && valid && !uncounted.failed.iter().any(|known| known == uid) {
                    uncounted.failed.push(uid.to_owned());
                }
            }
            released.push(pod);
            if uncounted.len() + new_indexes >= MOST_UNCOUNTED {
                uncounted.put(&mut self.status);
                return (released, false);
            }
        }
        uncounted.put(&mut self.status);
        (released, true)
    }

    /// Writes down that the Job is about to end, and returns how it will.
    fn announce(&mut self, end: JobCondition) -> JobCondition {
        let type_ = match end.type_.as_str() {
            SUCCESS => COMPLETE,
            FAILURE_TARGET => FAILED,
            _ => return end,
        };
        let last = JobCondition { type_: type_.to_owned(), ..end.clone() };
        verdict::put(&mut self.status, end);
        let now = windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.ctx.now());
        JobCondition { last_probe_time: Some(now.clone()), last_transition_time: Some(now), ..last }
    }

    fn report(&self, end: &JobCondition) {
        if end.type_ != COMPLETE {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            self.ctx.event(Event::warning(text(&end.reason), text(&end.message)).action("Fail"));
            return;
        }
        let succeeded = self.status.succeeded.unwrap_or(0);
        if self.spec.completions.is_some_and(|completions| succeeded > completions) {
            let note = "Too many succeeded pods running after completion count reached";
            self.ctx.event(Event::warning("TooManySucceededPods", note).action("Complete"));
        }
        self.ctx.event(Event::normal("Completed", "Job completed").action("Complete"));
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_pod_becomes_a_number_when_its_finalizer_is_gone() {
        let mut status: JobStatus = from_value(json!({
            "succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["a", "b"], "failed": ["c"]}
        }))
        .unwrap();
        assert_eq!(settle(&mut status, &["b".to_owned()].into()), 1);
        assert_eq!(
            to_value(&status).unwrap(),
            json!({"succeeded": 2, "failed": 1, "uncountedTerminatedPods": {"succeeded": ["b"]}})
        );
        assert_eq!(settle(&mut status, &BTreeSet::new()), 0);
        assert_eq!(
            to_value(&status).unwrap(),
            json!({"succeeded": 3, "failed": 1, "uncountedTerminatedPods": {}})
        );
    }
}
