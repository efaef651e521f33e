//! The Job controller: runs Pods until enough of them have succeeded, or too many have failed.
//!
//! Enters: a Job and its Pods. Leaves: Pods created and deleted, and a status that counts every Pod exactly once:
//! a Pod keeps a finalizer until it is counted ([`track`]). When a Job is over ([`verdict`]), how long it waits
//! after a failure ([`backoff`]) and what a failure means ([`policy`]) are pure functions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Reader, Reconciler,
    k8s_openapi::{
        api::{
            batch::v1::{Job, JobCondition, JobSpec, JobStatus},
            core::v1::Pod,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
    owner, rbac,
};

use crate::{
    claim::{self, Claim},
    pods, selector,
};

mod backoff;
mod indexes;
mod manage;
pub(crate) mod orphan;
mod policy;
mod track;
pub(crate) mod ttl;
mod verdict;

/// Keeps a Pod until it is counted.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The value of `managedBy` that means this controller.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Jobs> {
    Controller::new(Jobs)
        .name("job-controller")
        .core_events("job-controller")
        .owns::<Pod>()
        .watches::<Pod, _>(adopters)
        .index::<Pod>(claim::ORPHANS, claim::orphans)
        .concurrency(4)
        .permits([rbac::rule("", ["pods"], ["create", "delete", "patch"])])
}

/// The Jobs that may want a Pod that nobody controls.
fn adopters(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    if owner::controller_of(&pod.metadata).is_some() || pod.metadata.labels.is_none() {
        return Vec::new();
    }
    let jobs = cache.list::<Job>(pod.metadata.namespace.as_deref()).unwrap_or_default();
    let matching = jobs.iter().filter(|job| job.spec.as_ref().is_some_and(|spec| wants(spec, pod)));
    matching.map(|job| ObjectKey::of(&**job)).collect()
}

fn wants(spec: &JobSpec, pod: &Pod) -> bool {
    spec.selector.as_ref().is_some_and(|selector| selector::matches(selector, pod.metadata.labels.as_ref()))
}

/// The condition of a type, if it holds.
fn holds<'a>(status: &'a JobStatus, type_: &str) -> Option<&'a JobCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Whether a Job has succeeded or failed, and when.
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    let status = job.status.as_ref()?;
    holds(status, verdict::COMPLETE).or_else(|| holds(status, verdict::FAILED))
}

/// Reconciles Jobs.
pub(crate) struct Jobs;

impl Reconciler for Jobs {
    type Resource = Job;
    type Error = windlass::Error;

    async fn reconcile(&self, job: Arc<Job>, ctx: &Context<Job>) -> Result<Action, windlass::Error> {
        let Some(spec) = job.spec.clone() else { return Ok(Action::await_change()) };
        let foreign = spec.managed_by.as_deref().is_some_and(|manager| manager != MANAGER);
        if foreign || finished(&job).is_some() {
            return Ok(Action::await_change());
        }
        crate::retry_conflicts(Box::pin(Run::new(job, spec, ctx).reconcile()).await)
    }
}

/// One run: the Job, its Pods, and its status as it grows in the course of the run.
struct Run<'a> {
    ctx: &'a Context<Job>,
    job: Arc<Job>,
    spec: JobSpec,
    status: JobStatus,
    pods: Vec<Arc<Pod>>,
    next: Option<Duration>,
}

impl<'a> Run<'a> {
    fn new(job: Arc<Job>, spec: JobSpec, ctx: &'a Context<Job>) -> Self {
        let mut status = job.status.clone().unwrap_or_default();
        status.uncounted_terminated_pods.get_or_insert_default();
        Self { ctx, job, spec, status, pods: Vec::new(), next: None }
    }

    async fn reconcile(mut self) -> windlass::Result<Action> {
        self.claim().await?;
        let suspended = self.spec.suspend == Some(true);
        if self.status.start_time.is_none() && !suspended {
            self.status.start_time = Some(Time(self.ctx.now()));
        }
        let mut facts = verdict::Facts::of(&self.spec, &self.status, &self.pods);
        let mut end = verdict::end(&self.spec, &self.status, &self.pods, &facts, self.ctx.now());
        let managed = if end.is_some() {
            let active = std::mem::take(&mut facts.active);
            self.delete_all(&active).await
        } else {
            self.wait_for_deadline();
            let managed = self.manage(&mut facts).await;
            if verdict::is_complete(&self.spec, &facts) {
                end = Some(verdict::success(self.ctx.now()));
            } else {
                self.note_suspension(suspended);
            }
            managed
        };
        self.refresh()?;
        self.count(&facts);
        // Pods that could not be deleted may still be running: the Job is not over.
        let end = end.filter(|_| managed.is_ok());
        self.track(&facts, end).await?;
        managed?;
        Ok(self.next.map_or_else(Action::await_change, Action::requeue))
    }

    async fn claim(&mut self) -> windlass::Result<()> {
        // A Job whose selector was not generated has the Pods that it controls.
        let matches = |pod: &Pod| self.spec.selector.is_none() || wants(&self.spec, pod);
        let claim = Claim {
            wants: &|pod| {
                let own = owner::controller_of(&pod.metadata).is_some();
                if own { matches(pod) } else { wants(&self.spec, pod) }
            },
            movable: |pod| !pods::is_terminating(&pod.metadata),
            finalizer: Some(TRACKING),
        };
        self.pods = claim.pods(&self.job.metadata, self.ctx).await?;
        Ok(())
    }

    /// Takes the newest copies of the Pods, own writes of this run included. Pods that are gone stay as they were.
    fn refresh(&mut self) -> windlass::Result<()> {
        let mut newest: BTreeMap<String, Arc<Pod>> = BTreeMap::new();
        for pod in self.ctx.owned::<Pod>()? {
            newest.insert(pods::uid(&pod).to_owned(), pod);
        }
        let known: Vec<Arc<Pod>> = self.pods.iter().filter_map(|pod| newest.remove(pods::uid(pod))).collect();
        self.pods = known.into_iter().chain(newest.into_values()).collect();
        Ok(())
    }

    /// The counts of Pods that are there.
    fn count(&mut self, facts: &verdict::Facts) {
        let active: Vec<_> = self.pods.iter().filter(|pod| pods::is_active(pod)).collect();
        let some = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        self.status.active = Some(some(active.len())).filter(|count| *count != 0);
        self.status.ready = Some(some(active.iter().filter(|pod| pods::is_ready(pod)).count()));
        self.status.terminating = Some(some(self.pods.iter().filter(|pod| pods::is_stopping(pod)).count()));
        if facts.indexed {
            self.status.succeeded = Some(facts.succeeded).filter(|count| *count != 0);
            self.status.completed_indexes =
                Some(facts.succeeded_indexes.text()).filter(|text| !text.is_empty());
            self.status.failed_indexes = facts.failed_indexes.as_ref().map(|failed| failed.text());
        }
    }

    fn wait_for_deadline(&mut self) {
        let Some(deadline) = self.spec.active_deadline_seconds.filter(|_| self.spec.suspend != Some(true))
        else {
            return;
        };
        if let Some(start) = &self.status.start_time {
            let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
            self.look_again(deadline.saturating_sub(self.ctx.since(start.0)));
        }
    }

    fn look_again(&mut self, after: Duration) {
        self.next = Some(self.next.map_or(after, |next| next.min(after)));
    }

    fn note_suspension(&mut self, suspended: bool) {
        if pods::is_terminating(&self.job.metadata) {
            return;
        }
        let now = self.ctx.now();
        let (status, reason, message) = if suspended {
            ("True", "JobSuspended", "Job suspended")
        } else {
            ("False", "JobResumed", "Job resumed")
        };
        let condition = verdict::condition("Suspended", status, reason, message, now);
        if !verdict::put(&mut self.status, condition) {
            return;
        }
        // The time in suspension does not count towards the deadline.
        self.status.start_time = if suspended { None } else { Some(Time(now)) };
        let reason = if suspended { "Suspended" } else { "Resumed" };
        self.ctx.event(Event::normal(reason, message).action(reason));
    }
}
