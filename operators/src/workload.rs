//! What the operators of Pods have in common: how a Deployment or a set of Pods is judged, and how that is told.
//!
//! [`deployed`] is the flow of every kind that stands on a Deployment, [`fleet`] the plan of every kind that makes
//! its Pods itself. Both end in the same three conditions, with the same [`reasons`].

pub(crate) mod deployed;
pub(crate) mod digest;
pub(crate) mod draining;
pub(crate) mod fleet;
mod names;
mod options;
pub(crate) mod pods;
mod problem;
mod rollout;
mod victims;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::HasStatus;
use serde::Serialize;
use windlass::{
    Context, Event, Object, ObjectKey,
    conditions::{self, READY},
};

pub use deployed::Error;
pub(crate) use names::{is_dns_label, is_floating};
pub use options::{ImagePullPolicy, PodOptions};
pub use problem::Problem;
pub(crate) use rollout::Rollout;

/// The label with the name of the object that Pods belong to.
pub(crate) const INSTANCE: &str = "app.kubernetes.io/instance";

/// The reasons of the conditions. They are part of the API: scripts compare them.
pub mod reasons {
    /// Ready: enough replicas serve.
    pub const AVAILABLE: &str = "Available";
    /// Not ready: too few replicas serve.
    pub const REPLICAS_UNAVAILABLE: &str = "ReplicasUnavailable";
    /// Progressing: a rollout is under way.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// Not progressing: the rollout is held back by the spec.
    pub const PAUSED: &str = "Paused";
    /// Not progressing: there is nothing to roll out.
    pub const ROLLOUT_COMPLETE: &str = "RolloutComplete";
    /// Degraded: a rollout has not moved for too long.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Degraded: Pods cannot be made, for a quota or a policy.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// Degraded: an image cannot be pulled.
    pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
    /// Degraded: a container keeps ending.
    pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";
    /// Degraded: a container needed more memory than it may have.
    pub const OOM_KILLED: &str = "OOMKilled";
    /// Degraded: a container cannot be started as it is configured.
    pub const CONTAINER_CONFIG_ERROR: &str = "CreateContainerConfigError";
    /// Degraded: no node takes a Pod.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// Degraded: a Pod has failed and is replaced after a while.
    pub const POD_FAILED: &str = "PodFailed";
    /// Not degraded.
    pub const AS_EXPECTED: &str = "AsExpected";
    /// Degraded: the children cannot have the object's name.
    pub const INVALID_NAME: &str = "InvalidName";
    /// Degraded: the spec asks for something impossible.
    pub const INVALID_SPEC: &str = "InvalidSpec";
}

/// How a controller runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many objects are reconciled at the same time.
    pub concurrency: usize,
    /// How often every object is looked at without a reason.
    ///
    /// Nothing depends on it: the watches bring every change at once. But a look that finds nothing to do reads the
    /// cache only and sends no request, so the usual 30 s cost next to nothing.
    pub resync: Option<Duration>,
    /// How long one look may take before it is given up and tried again.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let (resync, timeout) = (Some(Duration::from_secs(30)), Duration::from_secs(30));
        Self { concurrency: 4, resync, timeout }
    }
}

impl Settings {
    /// Sets up a controller as these settings say.
    pub(crate) fn apply<C: windlass::Reconciler>(
        self,
        controller: windlass::Controller<C>,
    ) -> windlass::Controller<C> {
        let controller = controller.concurrency(self.concurrency).timeout(self.timeout);
        match self.resync {
            Some(period) => controller.resync(period),
            None => controller,
        }
    }
}

/// A status with conditions.
pub(crate) trait Reported {
    /// Ready, Progressing and Degraded.
    fn conditions(&self) -> &[Condition];
}

/// The conditions that an object has by now.
pub(crate) fn known<R: HasStatus<Status: Reported>>(object: &R) -> &[Condition] {
    object.status().map(Reported::conditions).unwrap_or_default()
}

/// Writes the status, and tells when the object has become ready or has ceased to be.
pub(crate) async fn report<R>(
    object: &R,
    ctx: &Context<R>,
    new: R::Status,
    ready_event: impl FnOnce(&Condition) -> Event,
) -> windlass::Result<()>
where
    R: Object + HasStatus<Status: Reported + Serialize + PartialEq>,
{
    let change = readiness_change(object, &new, ready_event);
    let news = (object.status() != Some(&new)).then(|| conditions::find(new.conditions(), READY).cloned());
    ctx.update_status(new).await?;
    if let Some(ready) = news {
        let (ready, reason) = ready.map(|ready| (ready.status, ready.reason)).unwrap_or_default();
        tracing::info!(key = %ctx.key(), ready, reason, "updated the status");
    }
    if let Some(event) = change {
        ctx.event(event);
    }
    Ok(())
}

/// Tells that an object is looked at: for everybody to read if its spec is new, else for those who debug. An object that
/// goes has a new generation and no new spec.
pub(crate) fn called<R>(object: &R, ctx: &Context<R>)
where
    R: Object + HasStatus<Status: Reported>,
{
    let generation = object.meta().generation.unwrap_or_default();
    let is_known = observed_generation(known(object)) == object.meta().generation;
    if is_known || object.meta().deletion_timestamp.is_some() {
        tracing::debug!(key = %ctx.key(), generation, "called");
    } else {
        tracing::info!(key = %ctx.key(), generation, "called for a new spec");
    }
}

/// The objects that a reconciler has seen, so that their end is told once: what they leave behind goes later, piece by
/// piece, and brings their keys back each time. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Living(Arc<Mutex<BTreeSet<ObjectKey>>>);

impl Living {
    /// Notes that an object is there.
    pub(crate) fn see(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
    }

    /// Tells that an object is gone, if it was there.
    pub(crate) fn gone(&self, key: &ObjectKey) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key) {
            tracing::info!(%key, "gone");
        }
    }
}

/// The newest generation that a status speaks of.
pub(crate) fn observed_generation(known: &[Condition]) -> Option<i64> {
    known.iter().filter_map(|condition| condition.observed_generation).max()
}

/// The event of an object that has become ready: its condition's message.
pub(crate) fn ready_event(ready: &Condition) -> Event {
    Event::normal(READY, ready.message.clone())
}

/// The event for an object that has become ready, or has ceased to be while its spec asked for nothing new.
fn readiness_change<R>(
    object: &R,
    new: &R::Status,
    ready_event: impl FnOnce(&Condition) -> Event,
) -> Option<Event>
where
    R: Object + HasStatus<Status: Reported>,
{
    let old = conditions::find(known(object), READY);
    let (was, is) = (old.is_some_and(|old| old.status == "True"), conditions::find(new.conditions(), READY)?);
    match (was, is.status == "True") {
        (false, true) => Some(ready_event(is)),
        (true, false) if old?.observed_generation == object.meta().generation => {
            Some(Event::warning("NotReady", is.message.clone()))
        }
        _ => None,
    }
}
