//! What is reported about a WebServer. Pure: the spec and its Deployment come in, a status leaves.
//!
//! | | Ready | Progressing | Degraded |
//! |-|-|-|-|
//! | enough replicas serve | `True` Available | | |
//! | too few replicas serve | `False` ReplicasUnavailable | | |
//! | a rollout is under way | as its replicas are | `True` RollingOut | |
//! | nothing to roll out | | `False` RolloutComplete | `False` AsExpected |
//! | a rollout is stuck | as its replicas are | `False` ProgressDeadlineExceeded | `True` the same |
//! | Pods cannot be made (quota, policy) | as its replicas are | | `True` FailedCreate |
//! | a child cannot be applied | as its replicas are | `False`, the reason | `True`, the reason |
//!
//! A WebServer whose new version is stuck while the old one serves is Ready and Degraded.

use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentCondition},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use windlass::{
    ReconcileError,
    conditions::{self, DEGRADED, PROGRESSING, READY, is_false, is_true},
    jiff::Timestamp,
};

use super::{
    api::{WebServer, WebServerStatus},
    build,
};

pub(super) mod reasons {
    pub(in crate::webserver) const AVAILABLE: &str = "Available";
    pub(in crate::webserver) const REPLICAS_UNAVAILABLE: &str = "ReplicasUnavailable";
    pub(in crate::webserver) const ROLLING_OUT: &str = "RollingOut";
    pub(in crate::webserver) const ROLLOUT_COMPLETE: &str = "RolloutComplete";
    pub(in crate::webserver) const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    pub(in crate::webserver) const FAILED_CREATE: &str = "FailedCreate";
    pub(in crate::webserver) const AS_EXPECTED: &str = "AsExpected";
    pub(in crate::webserver) const INVALID_NAME: &str = "InvalidName";
}

/// Something that a person has to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Problem {
    /// The problem behind a failed apply, if a person can do something about it. Other failures are retried, and
    /// to report each would make the status flicker.
    pub(super) fn of(error: &windlass::Error) -> Option<Self> {
        let refused = error.status().is_some_and(|status| status.is_invalid() || status.is_forbidden());
        if !refused && !matches!(error, windlass::Error::NameConflict { .. }) {
            return None;
        }
        let message = match error.status() {
            Some(status) => format!("{error}: {}", status.message),
            None => error.to_string(),
        };
        Some(Self { reason: error.category(), message })
    }
}

/// The status of a WebServer whose children are in place.
pub(super) fn observed(web: &WebServer, deployment: &Deployment, now: Timestamp) -> WebServerStatus {
    let mut status = counted(web, Some(deployment));
    let mut set = |condition| conditions::set(&mut status.conditions, condition, web, now);
    if let Some(ready) = ready(web, deployment) {
        set(ready);
    }
    set(progressing(web, deployment));
    set(degraded(deployment));
    status
}

/// The status of a WebServer whose children cannot be applied. `serving` is its Deployment, if all children are
/// there in an older form.
pub(super) fn failed(
    web: &WebServer,
    serving: Option<&Deployment>,
    problem: &Problem,
    now: Timestamp,
) -> WebServerStatus {
    let mut status = counted(web, serving);
    let mut set = |condition| conditions::set(&mut status.conditions, condition, web, now);
    match serving {
        Some(deployment) => ready(web, deployment).map(&mut set),
        None => Some(set(is_false(READY, problem.reason, &problem.message))),
    };
    set(is_false(PROGRESSING, problem.reason, &problem.message));
    set(is_true(DEGRADED, problem.reason, &problem.message));
    status
}

fn counted(web: &WebServer, deployment: Option<&Deployment>) -> WebServerStatus {
    let seen = deployment.and_then(|deployment| deployment.status.clone()).unwrap_or_default();
    WebServerStatus {
        observed_generation: web.metadata.generation,
        replicas: seen.replicas.unwrap_or(0),
        ready_replicas: seen.ready_replicas.unwrap_or(0),
        updated_replicas: seen.updated_replicas.unwrap_or(0),
        available_replicas: seen.available_replicas.unwrap_or(0),
        selector: build::selector(web),
        conditions: web.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
    }
}

/// Ready follows the Deployment's own judgement, `Available`.
///
/// `None` leaves the condition as it is: before the Deployment's controller has looked at the new spec, all that is
/// known is what held for the old one, and the condition's observedGeneration goes on saying so.
fn ready(web: &WebServer, deployment: &Deployment) -> Option<Condition> {
    let known = web.status.as_ref().and_then(|status| conditions::find(&status.conditions, READY));
    if is_stale(deployment) && known.is_some() {
        return None;
    }
    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let message = format!("{ready} of {} replicas are ready", web.spec.replicas);
    let available = condition(deployment, "Available").is_some_and(|found| has_status(found, "True"));
    Some(if available {
        is_true(READY, reasons::AVAILABLE, message)
    } else {
        is_false(READY, reasons::REPLICAS_UNAVAILABLE, message)
    })
}

fn progressing(web: &WebServer, deployment: &Deployment) -> Condition {
    if let Some(stuck) = stuck(deployment) {
        return is_false(PROGRESSING, reasons::PROGRESS_DEADLINE_EXCEEDED, message_of(stuck));
    }
    let seen = deployment.status.clone().unwrap_or_default();
    let (wanted, updated) = (web.spec.replicas, seen.updated_replicas.unwrap_or(0));
    let complete = !is_stale(deployment)
        && updated == wanted
        && seen.replicas.unwrap_or(0) == wanted
        && seen.available_replicas.unwrap_or(0) == wanted;
    if complete {
        let message = format!("all {wanted} replicas run the current spec");
        is_false(PROGRESSING, reasons::ROLLOUT_COMPLETE, message)
    } else {
        let message = format!("{updated} of {wanted} replicas run the current spec");
        is_true(PROGRESSING, reasons::ROLLING_OUT, message)
    }
}

fn degraded(deployment: &Deployment) -> Condition {
    let failure = condition(deployment, "ReplicaFailure").filter(|found| has_status(found, "True"));
    if let Some(failure) = failure {
        return is_true(DEGRADED, reasons::FAILED_CREATE, message_of(failure));
    }
    match stuck(deployment) {
        Some(stuck) => is_true(DEGRADED, reasons::PROGRESS_DEADLINE_EXCEEDED, message_of(stuck)),
        None => is_false(DEGRADED, reasons::AS_EXPECTED, ""),
    }
}

/// Whether the Deployment's status describes an older spec than the one it has.
fn is_stale(deployment: &Deployment) -> bool {
    let observed = deployment.status.as_ref().and_then(|status| status.observed_generation);
    observed < deployment.metadata.generation
}

/// The condition that says that the current rollout has not moved for too long.
fn stuck(deployment: &Deployment) -> Option<&DeploymentCondition> {
    let reason = Some(reasons::PROGRESS_DEADLINE_EXCEEDED);
    condition(deployment, "Progressing")
        .filter(|found| has_status(found, "False") && found.reason.as_deref() == reason)
        .filter(|_| !is_stale(deployment))
}

fn condition<'a>(deployment: &'a Deployment, type_: &str) -> Option<&'a DeploymentCondition> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_.as_deref() == Some(type_))
}

fn has_status(condition: &DeploymentCondition, status: &str) -> bool {
    condition.status.as_deref() == Some(status)
}

fn message_of(condition: &DeploymentCondition) -> String {
    condition.message.clone().unwrap_or_default()
}
