//! What a Deployment and its Pods say about the object that they stand for. Pure.
//!
//! | | Ready | Progressing | Degraded |
//! |-|-|-|-|
//! | enough replicas serve | `True` Available | | |
//! | too few replicas serve | `False` ReplicasUnavailable | | |
//! | a rollout is under way | as its replicas are | `True` RollingOut | |
//! | a rollout is held back | as its replicas are | `False` Paused | |
//! | nothing to roll out | | `False` RolloutComplete | `False` AsExpected |
//! | a rollout is stuck | as its replicas are | `False` ProgressDeadlineExceeded | `True` the same, or the Pod's |
//! | a Pod cannot run | as its replicas are | | `True` ImagePullBackOff, CrashLoopBackOff, … |
//! | Pods cannot be made (quota, policy) | as its replicas are | | `True` FailedCreate |
//! | a child cannot be applied | as its replicas are | `False`, the reason | `True`, the reason |
//!
//! An object whose new version is stuck while the old one serves is Ready and Degraded.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, DeploymentStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::Resource;
use windlass::{
    conditions::{self, DEGRADED, PROGRESSING, READY, is_false, is_true},
    jiff::Timestamp,
};

use super::{Problem, pods, reasons};

/// What is there of a Deployment.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    /// How many replicas are asked for.
    pub(crate) wanted: i32,
    pub(crate) deployment: Arc<Deployment>,
    /// All Pods that carry the object's label, ordered by name.
    pub(crate) pods: Vec<Arc<Pod>>,
}

impl Rollout {
    /// What the Deployment counts.
    pub(crate) fn counts(&self) -> DeploymentStatus {
        self.deployment.status.clone().unwrap_or_default()
    }

    /// The conditions of an object whose children are in place. `more` are judgements of the object's own, which go
    /// before those of the same type here.
    pub(crate) fn observe<K: Resource>(
        &self,
        object: &K,
        known: &[Condition],
        more: Vec<Condition>,
        now: Timestamp,
    ) -> Vec<Condition> {
        let mut judged: Vec<Condition> = self.ready(known).into_iter().collect();
        judged.extend([self.progressing(), self.degraded()]);
        // One word on each type: to say one thing and then another would move the time of the transition.
        judged.retain(|condition| more.iter().all(|own| own.type_ != condition.type_));
        judged.extend(more);
        let mut list = known.to_vec();
        for condition in judged {
            conditions::set(&mut list, condition, object, now);
        }
        list
    }

    /// The conditions of an object whose children cannot be applied. `serving` is what is there if all children
    /// are, in an older form.
    pub(crate) fn condemn<K: Resource>(
        serving: Option<&Self>,
        problem: &Problem,
        object: &K,
        known: &[Condition],
        now: Timestamp,
    ) -> Vec<Condition> {
        let mut list = known.to_vec();
        let ready = match serving {
            Some(rollout) => rollout.ready(known),
            None => Some(is_false(READY, problem.reason, &problem.message)),
        };
        let progressing = is_false(PROGRESSING, problem.reason, &problem.message);
        let degraded = is_true(DEGRADED, problem.reason, &problem.message);
        for condition in ready.into_iter().chain([progressing, degraded]) {
            conditions::set(&mut list, condition, object, now);
        }
        list
    }

    /// Ready follows the Deployment's own judgement, `Available`.
    ///
    /// `None` leaves the condition as it is: before the Deployment's controller has looked at the new spec, all that
    /// is known is what held for the old one, and the condition's observedGeneration goes on saying so.
    fn ready(&self, known: &[Condition]) -> Option<Condition> {
        if self.is_stale() && conditions::find(known, READY).is_some() {
            return None;
        }
        let ready = self.counts().ready_replicas.unwrap_or(0);
        let message = format!("{ready} of {} replicas are ready", self.wanted);
        let available = self.condition("Available").is_some_and(|found| has_status(found, "True"));
        Some(if available {
            is_true(READY, reasons::AVAILABLE, message)
        } else {
            is_false(READY, reasons::REPLICAS_UNAVAILABLE, message)
        })
    }

    fn progressing(&self) -> Condition {
        if let Some(stuck) = self.stuck() {
            return is_false(PROGRESSING, reasons::PROGRESS_DEADLINE_EXCEEDED, message_of(stuck));
        }
        let (seen, wanted) = (self.counts(), self.wanted);
        let updated = seen.updated_replicas.unwrap_or(0);
        let complete = !self.is_stale()
            && updated == wanted
            && seen.replicas.unwrap_or(0) == wanted
            && seen.available_replicas.unwrap_or(0) == wanted;
        let held = self.deployment.spec.paused == Some(true);
        if held && !complete {
            let message = format!(
                "{updated} of {wanted} replicas run the current spec; spec.paused holds the rest back"
            );
            return is_false(PROGRESSING, reasons::PAUSED, message);
        }
        if complete {
            let message = format!("all {wanted} replicas run the current spec");
            is_false(PROGRESSING, reasons::ROLLOUT_COMPLETE, message)
        } else {
            let message = format!("{updated} of {wanted} replicas run the current spec");
            is_true(PROGRESSING, reasons::ROLLING_OUT, message)
        }
    }

    fn degraded(&self) -> Condition {
        let failure = self.condition("ReplicaFailure").filter(|found| has_status(found, "True"));
        if let Some(failure) = failure {
            return is_true(DEGRADED, reasons::FAILED_CREATE, message_of(failure));
        }
        if let Some(problem) = pods::trouble(&self.pods) {
            return is_true(DEGRADED, problem.reason, problem.message);
        }
        match self.stuck() {
            Some(stuck) => is_true(DEGRADED, reasons::PROGRESS_DEADLINE_EXCEEDED, message_of(stuck)),
            None => is_false(DEGRADED, reasons::AS_EXPECTED, ""),
        }
    }

    /// Whether the Deployment's status describes an older spec than the one it has.
    fn is_stale(&self) -> bool {
        let observed = self.deployment.status.as_ref().and_then(|status| status.observed_generation);
        observed < self.deployment.metadata.generation
    }

    /// The condition that says that the current rollout has not moved for too long.
    fn stuck(&self) -> Option<&DeploymentCondition> {
        let reason = Some(reasons::PROGRESS_DEADLINE_EXCEEDED);
        self.condition("Progressing")
            .filter(|found| has_status(found, "False") && found.reason.as_deref() == reason)
            .filter(|_| !self.is_stale())
    }

    fn condition(&self, type_: &str) -> Option<&DeploymentCondition> {
        let conditions = self.deployment.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_.as_deref() == Some(type_))
    }
}

fn has_status(condition: &DeploymentCondition, status: &str) -> bool {
    condition.status.as_deref() == Some(status)
}

fn message_of(condition: &DeploymentCondition) -> String {
    condition.message.clone().unwrap_or_default()
}
