//! Pods that an operator makes itself: which to make, which to remove, and what is said of them.
//!
//! [`plan`] and [`observe`] are pure; [`create`] is the slow start. Nothing is remembered between runs: how often a
//! Pod's place has failed stands on the Pod.

use std::{future::Future, sync::Arc, time::Duration};

use futures::future::join_all;
use k8s_openapi::{
    api::core::v1::{Pod, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Resource, ResourceExt};
use windlass::{
    Action,
    conditions::{self, DEGRADED, PROGRESSING, READY, is_false, is_true},
    jiff::Timestamp,
};

use super::{Problem, digest, pods, reasons, victims};

/// The label of Pods that tells which template they were made from.
pub(crate) const HASH: &str = "windlass.dev/template-hash";
/// The annotation that tells how many Pods in this one's place have failed in a row.
pub(crate) const FAILURES: &str = "windlass.dev/failures";

/// The delay before the first replacement of a Pod that failed.
const FIRST_DELAY: Duration = Duration::from_secs(10);
/// The longest delay.
const LONGEST_DELAY: Duration = Duration::from_mins(5);
/// A Pod that ran this long before it failed starts the count anew.
const GOOD_LIFE: Duration = Duration::from_mins(10);
/// How long a new Pod may take to become ready before the rollout counts as stuck.
const DEADLINE: Duration = Duration::from_mins(10);

/// How many Pods one run makes, and how many it removes. What is left is for the next one, which follows at once: so the
/// status tells how far it is, a change of the spec counts, and other objects have their turn.
pub(crate) const BURST: usize = 100;

/// What to do.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// How many failures each new Pod's place has seen: one entry for each Pod to make.
    pub(crate) create: Vec<u32>,
    /// Pods that are too many, or of an old template.
    pub(crate) delete: Vec<Arc<Pod>>,
    /// Pods that have ended.
    pub(crate) clear: Vec<Arc<Pod>>,
    /// When to look again for a Pod whose replacement has to wait.
    pub(crate) wait: Option<Duration>,
    /// Whether there is more to do than one run does.
    pub(crate) more: bool,
}

impl Plan {
    /// What follows a run that has carried this out.
    pub(crate) fn next(&self) -> Action {
        let wait = if self.more { Some(Duration::ZERO) } else { self.wait };
        wait.map_or_else(Action::await_change, Action::requeue)
    }

    /// How many Pods go, and how many are made.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.clear.len() + self.delete.len(), self.create.len())
    }

    /// The part of the plan that is for one run.
    fn for_one_run(mut self) -> Self {
        let (gone, made) = self.size();
        if gone > BURST {
            self.clear.truncate(BURST);
            self.delete.truncate(BURST - self.clear.len());
            // These were counted upon to be gone.
            self.create.clear();
        }
        self.create.truncate(BURST);
        self.more = gone > BURST || made > BURST;
        self
    }
}

/// The hash of a template, which its Pods carry.
pub(crate) fn hash(template: &PodTemplateSpec) -> String {
    // The account's old name says nothing that its new one does not: Pods from before it was set stay.
    let mut template = template.clone();
    if let Some(pod) = &mut template.spec {
        pod.service_account = None;
    }
    digest::of(&template)
}

fn has_hash(pod: &Pod, hash: &str) -> bool {
    pod.labels().get(HASH).map(String::as_str) == Some(hash)
}

/// Decides what to do about an object's Pods, so that `wanted` of the template with this hash will serve.
///
/// A new template is rolled out with one Pod more than wanted, so that never fewer than wanted serve on its account.
pub(crate) fn plan(owned: &[Arc<Pod>], wanted: usize, hash: &str, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut failures = Vec::new();
    let mut waiting = 0;
    for pod in owned.iter().filter(|pod| !pods::is_terminating(pod) && pods::is_finished(pod)) {
        let (count, delay) = delay(pod, now);
        // A template that has changed deserves an attempt at once.
        let delay = delay.filter(|_| has_hash(pod, hash));
        match delay {
            Some(delay) => {
                waiting += 1;
                plan.wait = Some(plan.wait.map_or(delay, |wait| wait.min(delay)));
            }
            None => {
                plan.clear.push(pod.clone());
                failures.push(if has_hash(pod, hash) { count } else { 0 });
            }
        }
    }
    let active: Vec<Arc<Pod>> = owned.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let (new, old): (Vec<_>, Vec<_>) = active.iter().cloned().partition(|pod| has_hash(pod, hash));
    plan.delete = surplus(&new, &old, wanted);
    let kept = active.len() - plan.delete.len();
    let kept_new = new.len() - plan.delete.iter().filter(|pod| has_hash(pod, hash)).count();
    // One more while old Pods are replaced, but not beside one that is still on its way out.
    let at_rest = plan.delete.is_empty() && owned.iter().all(|pod| !pods::is_terminating(pod));
    let surge = usize::from(kept > kept_new && at_rest);
    let room = (wanted + surge).saturating_sub(kept + waiting);
    let missing = wanted.saturating_sub(kept_new + waiting);
    // One more than a run makes, so that it is known that there are more.
    failures.resize(room.min(missing).min(BURST + 1), 0);
    plan.create = failures;
    plan.for_one_run()
}

/// The Pods that must go: old ones that do not serve, old ones that are no longer needed, new ones beyond the number.
fn surplus(new: &[Arc<Pod>], old: &[Arc<Pod>], wanted: usize) -> Vec<Arc<Pod>> {
    let ready = |pods: &[Arc<Pod>]| pods.iter().filter(|pod| pods::is_ready(pod)).count();
    let (idle, serving): (Vec<_>, Vec<_>) = old.iter().cloned().partition(|pod| !pods::is_ready(pod));
    let mut gone = idle;
    let spare = (ready(new) + serving.len()).saturating_sub(wanted).min(serving.len());
    gone.extend(victims::sorted(&serving).into_iter().take(spare));
    gone.extend(victims::sorted(new).into_iter().take(new.len().saturating_sub(wanted)));
    gone
}

/// How often the place of a Pod that ended has failed, this time included, and how long its replacement must wait yet.
fn delay(pod: &Pod, now: Timestamp) -> (u32, Option<Duration>) {
    if pods::phase(pod) == "Succeeded" {
        return (0, None);
    }
    let before = pod.annotations().get(FAILURES).and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    let Some(ended) = pods::finished_at(pod) else { return (before + 1, None) };
    let lived = pod.creation_timestamp().map(|created| between(created.0, ended)).unwrap_or_default();
    let before = if lived >= GOOD_LIFE { 0 } else { before };
    let whole = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(before)).min(LONGEST_DELAY);
    let left = whole.saturating_sub(between(ended, now));
    (before + 1, Some(left).filter(|left| !left.is_zero()))
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Makes Pods in batches of 1, 2, 4, …, and stops at the first batch with a failure: a server that refuses one Pod
/// refuses a thousand just as well. Returns the first failure.
pub(crate) async fn create<T, F, E>(wanted: Vec<T>, make: impl Fn(T) -> F) -> Result<(), E>
where
    F: Future<Output = Result<(), E>>,
{
    let (mut left, mut batch) = (wanted.into_iter(), 1);
    loop {
        let results = join_all(left.by_ref().take(batch).map(&make)).await;
        if results.is_empty() {
            return Ok(());
        }
        results.into_iter().collect::<Result<Vec<()>, E>>()?;
        batch *= 2;
    }
}

/// What is there of an object's Pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Pods that run or are going to.
    pub(crate) active: i32,
    /// Of these, those that serve.
    pub(crate) ready: i32,
    /// Of the active ones, those of the current template.
    pub(crate) updated: i32,
}

impl Counts {
    pub(crate) fn of(owned: &[Arc<Pod>], hash: &str) -> Self {
        let count = |test: &dyn Fn(&Pod) -> bool| owned.iter().filter(|pod| test(pod)).count() as i32;
        Self {
            active: count(&pods::is_active),
            ready: count(&pods::is_ready),
            updated: count(&|pod| pods::is_active(pod) && has_hash(pod, hash)),
        }
    }
}

/// What was seen of an object's Pods.
pub(crate) struct Observed<'a> {
    pub(crate) owned: &'a [Arc<Pod>],
    pub(crate) wanted: i32,
    pub(crate) hash: &'a str,
    /// Why a Pod could not be made.
    pub(crate) failure: Option<&'a Problem>,
}

impl Observed<'_> {
    /// The conditions of the object.
    pub(crate) fn observe<K: Resource>(
        &self,
        object: &K,
        known: &[Condition],
        now: Timestamp,
    ) -> Vec<Condition> {
        let mut list = known.to_vec();
        for condition in [self.ready(), self.progressing(now), self.degraded(now)] {
            conditions::set(&mut list, condition, object, now);
        }
        list
    }

    fn ready(&self) -> Condition {
        let ready = Counts::of(self.owned, self.hash).ready;
        let message = format!("{ready} of {} replicas are ready", self.wanted);
        if ready >= self.wanted {
            is_true(READY, reasons::AVAILABLE, message)
        } else {
            is_false(READY, reasons::REPLICAS_UNAVAILABLE, message)
        }
    }

    fn progressing(&self, now: Timestamp) -> Condition {
        let (counts, wanted) = (Counts::of(self.owned, self.hash), self.wanted);
        // A spec that cannot be is not being worked on.
        if let Some(refused) = self.failure.filter(|failure| failure.reason != reasons::FAILED_CREATE) {
            return is_false(PROGRESSING, refused.reason, &refused.message);
        }
        if let Some(stuck) = self.stuck(now) {
            return is_false(PROGRESSING, reasons::PROGRESS_DEADLINE_EXCEEDED, stuck);
        }
        if counts == (Counts { active: wanted, ready: wanted, updated: wanted }) {
            let message = format!("all {wanted} replicas run the current spec");
            is_false(PROGRESSING, reasons::ROLLOUT_COMPLETE, message)
        } else {
            let message = format!("{} of {wanted} replicas run the current spec", counts.updated);
            is_true(PROGRESSING, reasons::ROLLING_OUT, message)
        }
    }

    fn degraded(&self, now: Timestamp) -> Condition {
        let failed = || {
            let mut ended = self.owned.iter().filter(|pod| pods::phase(pod) == "Failed");
            ended.next().map(|pod| Problem::new(reasons::POD_FAILED, failure_of(pod)))
        };
        let problem = self.failure.cloned().or_else(|| pods::trouble(self.owned)).or_else(failed);
        match (problem, self.stuck(now)) {
            (Some(problem), _) => is_true(DEGRADED, problem.reason, problem.message),
            (None, Some(stuck)) => is_true(DEGRADED, reasons::PROGRESS_DEADLINE_EXCEEDED, stuck),
            (None, None) => is_false(DEGRADED, reasons::AS_EXPECTED, ""),
        }
    }

    /// A Pod of the current template that has not been ready for too long.
    fn stuck(&self, now: Timestamp) -> Option<String> {
        let late = self.owned.iter().find(|pod| {
            let turned = pods::condition(pod, "Ready").and_then(|ready| ready.last_transition_time.clone());
            let since = turned.or_else(|| pod.creation_timestamp());
            let idle = since.map(|since| between(since.0, now)).unwrap_or_default();
            pods::is_active(pod) && has_hash(pod, self.hash) && !pods::is_ready(pod) && idle >= DEADLINE
        })?;
        let minutes = DEADLINE.as_secs() / 60;
        Some(format!("Pod {} has not been ready for {minutes} minutes", late.name_any()))
    }
}

fn failure_of(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let said = status.and_then(|status| status.message.clone().or_else(|| status.reason.clone()));
    let why = said.map(|said| format!(": {said}")).unwrap_or_default();
    format!("Pod {} has failed and is replaced after a while{why}", pod.name_any())
}
