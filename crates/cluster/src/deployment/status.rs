//! The status of a Deployment and its conditions, with Kubernetes' own reasons and messages. Pure.

use std::{sync::Arc, time::Duration};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::apps::v1::{
            Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet,
            ReplicaSetCondition,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use super::{
    Sets,
    limits::{available, desired, max_unavailable, total},
};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";

const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const PAUSED: &str = "DeploymentPaused";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

fn condition(
    type_: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: Some(type_.into()),
        status: Some(status.into()),
        reason: Some(reason.into()),
        message: Some(message),
        last_transition_time: Some(Time(now)),
        last_update_time: Some(Time(now)),
    }
}

fn find<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_.as_deref() == Some(type_))
}

fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_.as_deref() != Some(type_));
    }
}

/// Sets a condition, unless it is there with the same status and reason.
fn set(status: &mut DeploymentStatus, mut wanted: DeploymentCondition) {
    let type_ = wanted.type_.clone().unwrap_or_default();
    if let Some(current) = find(status, &type_).filter(|current| current.status == wanted.status) {
        if current.reason == wanted.reason {
            return;
        }
        wanted.last_transition_time.clone_from(&current.last_transition_time);
    }
    remove(status, &type_);
    status.conditions.get_or_insert_default().push(wanted);
}

fn deadline(spec: &DeploymentSpec) -> Option<Duration> {
    let seconds = spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn is_because(condition: Option<&DeploymentCondition>, reason: &str) -> bool {
    condition.is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

/// Notes that the Deployment was paused or resumed: the time in between does not count as lack of progress. Returns
/// whether it was resumed.
pub(super) fn note_pause(status: &mut DeploymentStatus, spec: &DeploymentSpec, now: Timestamp) -> bool {
    let current = find(status, PROGRESSING);
    if deadline(spec).is_none() || is_because(current, TIMED_OUT) {
        return false;
    }
    let paused = spec.paused == Some(true);
    let known = is_because(current, PAUSED);
    if paused && !known {
        set(status, condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused".into(), now));
    } else if !paused && known {
        let message = "Deployment is resumed".into();
        set(status, condition(PROGRESSING, "Unknown", "DeploymentResumed", message, now));
    }
    !paused && known
}

/// Notes that the new ReplicaSet was there already.
pub(super) fn note_found(status: &mut DeploymentStatus, spec: &DeploymentSpec, name: &str, now: Timestamp) {
    if deadline(spec).is_some() && find(status, PROGRESSING).is_none() {
        let message = format!("Found new replica set \"{name}\"");
        set(status, condition(PROGRESSING, "True", "FoundNewReplicaSet", message, now));
    }
}

/// Notes that the new ReplicaSet was created.
pub(super) fn note_created(status: &mut DeploymentStatus, spec: &DeploymentSpec, name: &str, now: Timestamp) {
    if deadline(spec).is_some() {
        let message = format!("Created new replica set \"{name}\"");
        set(status, condition(PROGRESSING, "True", "NewReplicaSetCreated", message, now));
    }
}

/// Notes that the new ReplicaSet could not be created.
pub(super) fn note_create_failure(
    status: &mut DeploymentStatus,
    spec: &DeploymentSpec,
    message: &str,
    now: Timestamp,
) {
    if deadline(spec).is_some() {
        set(status, condition(PROGRESSING, "False", "ReplicaSetCreateError", message.into(), now));
    }
}

/// The numbers and the availability of a Deployment; other conditions are kept.
pub(super) fn counted(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    old: DeploymentStatus,
    sets: &Sets,
    now: Timestamp,
) -> DeploymentStatus {
    let all = sets.all();
    let sum = |count: &dyn Fn(&ReplicaSet) -> i32| all.iter().map(|set| count(set)).sum::<i32>();
    let ready = |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let now_available = sum(&available);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sum(&actual)),
        updated_replicas: some(sets.new.as_deref().map_or(0, actual)),
        ready_replicas: some(sum(&ready)),
        available_replicas: some(now_available),
        unavailable_replicas: some(total(&all).saturating_sub(now_available).max(0)),
        terminating_replicas: terminating(&all),
        collision_count: old.collision_count,
        conditions: old.conditions,
    };
    let wanted = if now_available >= desired(spec) - max_unavailable(spec) {
        let message = "Deployment has minimum availability.".into();
        condition(AVAILABLE, "True", "MinimumReplicasAvailable", message, now)
    } else {
        let message = "Deployment does not have minimum availability.".into();
        condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)
    };
    set(&mut status, wanted);
    status
}

/// Kubernetes leaves out counts that are zero.
fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

fn actual(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// `None` if a ReplicaSet was last observed by a controller that does not count terminating Pods.
fn terminating(sets: &[Arc<ReplicaSet>]) -> Option<i32> {
    let mut sum: i32 = 0;
    for set in sets {
        let status = set.status.clone().unwrap_or_default();
        match status.terminating_replicas {
            Some(count) => sum = sum.saturating_add(count),
            None if status.observed_generation.unwrap_or(0) == 0 => {}
            None => return None,
        }
    }
    Some(sum)
}

/// Whether all wanted Pods are of the new template and available, and no others are left.
pub(super) fn is_complete(deployment: &Deployment, spec: &DeploymentSpec, status: &DeploymentStatus) -> bool {
    let wanted = desired(spec);
    status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0)
}

fn has_progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or(0);
    let outdated =
        |status: &DeploymentStatus| count(status.replicas).saturating_sub(count(status.updated_replicas));
    count(new.updated_replicas) > count(old.updated_replicas)
        || outdated(new) < outdated(old)
        || count(new.ready_replicas) > count(old.ready_replicas)
        || count(new.available_replicas) > count(old.available_replicas)
}

fn has_timed_out(status: &DeploymentStatus, spec: &DeploymentSpec, now: Timestamp) -> bool {
    let (Some(limit), Some(current)) = (deadline(spec), find(status, PROGRESSING)) else { return false };
    match current.reason.as_deref() {
        Some(NEW_SET_AVAILABLE) => false,
        Some(TIMED_OUT) => true,
        _ => waited(current, now) > limit,
    }
}

fn waited(condition: &DeploymentCondition, now: Timestamp) -> Duration {
    let since = condition.last_update_time.as_ref().map_or(now, |time| time.0);
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// Adds what the rollout is doing: progressing, finished, or stuck; and whether Pods can be made at all.
pub(super) fn note_progress(
    status: &mut DeploymentStatus,
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    now: Timestamp,
) {
    let old = deployment.status.clone().unwrap_or_default();
    if deadline(spec).is_none() {
        remove(status, PROGRESSING);
    } else if !(status.replicas == status.updated_replicas
        && is_because(find(status, PROGRESSING), NEW_SET_AVAILABLE))
    {
        let who = match &sets.new {
            Some(new) => format!("ReplicaSet \"{}\"", new.metadata.name.as_deref().unwrap_or_default()),
            None => format!("Deployment \"{}\"", deployment.metadata.name.as_deref().unwrap_or_default()),
        };
        if is_complete(deployment, spec, status) {
            let message = format!("{who} has successfully progressed.");
            set(status, condition(PROGRESSING, "True", NEW_SET_AVAILABLE, message, now));
        } else if has_progressed(&old, status) {
            let mut wanted =
                condition(PROGRESSING, "True", "ReplicaSetUpdated", format!("{who} is progressing."), now);
            // Replaced even if the reason is the same: the update time is what the deadline counts from.
            if let Some(current) =
                find(status, PROGRESSING).filter(|current| current.status.as_deref() == Some("True"))
            {
                wanted.last_transition_time.clone_from(&current.last_transition_time);
            }
            remove(status, PROGRESSING);
            set(status, wanted);
        } else if has_timed_out(status, spec, now) {
            let message = format!("{who} has timed out progressing.");
            set(status, condition(PROGRESSING, "False", TIMED_OUT, message, now));
        }
    }
    match failure(sets) {
        Some(failure) => set(status, failure),
        None => remove(status, REPLICA_FAILURE),
    }
}

/// Why a ReplicaSet cannot make its Pods; the new one's reason counts most.
fn failure(sets: &Sets) -> Option<DeploymentCondition> {
    let failed = |set: &Arc<ReplicaSet>| -> Option<ReplicaSetCondition> {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE)).cloned()
    };
    let found = sets.new.iter().chain(&sets.old).find_map(failed)?;
    Some(DeploymentCondition {
        type_: found.type_,
        status: found.status,
        reason: found.reason,
        message: found.message,
        last_update_time: found.last_transition_time.clone(),
        last_transition_time: found.last_transition_time,
    })
}

/// How long an unfinished rollout may still go without progress.
pub(super) fn time_left(
    status: &DeploymentStatus,
    deployment: &Deployment,
    spec: &DeploymentSpec,
    now: Timestamp,
) -> Option<Duration> {
    let current = find(status, PROGRESSING)?;
    if is_complete(deployment, spec, status) || current.reason.as_deref() == Some(TIMED_OUT) {
        return None;
    }
    Some(deadline(spec)?.saturating_sub(waited(current, now)))
}

#[cfg(test)]
mod tests;
