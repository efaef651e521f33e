//! What is reported about a Database. Pure: what was seen comes in, a status leaves.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::StatefulSet,
        batch::v1::{CronJob, Job, JobCondition},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use windlass::{
    apimachinery::cron::Schedule,
    conditions::{self, DEGRADED, PROGRESSING, READY, is_false, is_true, is_unknown},
    jiff::{SignedDuration, Timestamp, tz::TimeZone},
};

use super::{
    api::{Database, DatabaseBackup, DatabaseStatus, Phase, Services},
    build,
    credentials::Credentials,
    cron, quantity,
};
use crate::workload::{Problem, known, pods, reasons};

/// Whether the last backup succeeded.
pub(super) const BACKUP_HEALTHY: &str = "BackupHealthy";
/// Whether a volume grows.
pub(super) const STORAGE_RESIZING: &str = "StorageResizing";

/// Whether the server accepts what the Secret says.
pub(super) const CREDENTIALS_SYNCED: &str = "CredentialsSynced";

/// The reason while the server is being brought in line with other credentials.
const SYNCING: &str = "SyncingCredentials";

/// What is there of a Database.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    pub(super) set: Option<Arc<StatefulSet>>,
    pub(super) claim: Option<Arc<PersistentVolumeClaim>>,
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) schedule: Option<Arc<CronJob>>,
    /// The Jobs of this Database: scheduled backups and the restore.
    pub(super) jobs: Vec<Arc<Job>>,
    pub(super) backups: Vec<Arc<DatabaseBackup>>,
    /// How the server stands to its credentials, where that was looked at.
    pub(super) credentials: Option<Credentials>,
    /// What keeps the Database from being what it should be.
    pub(super) problem: Option<Problem>,
    /// Why no server is made, as the cluster's own events say.
    pub(super) refusal: Option<Problem>,
    /// What it waits for, if nothing is wrong.
    pub(super) waiting: Option<Problem>,
}

/// The status of a Database.
pub(super) fn observed(db: &Database, seen: &Observed, now: Timestamp) -> DatabaseStatus {
    let old = db.status.clone().unwrap_or_default();
    let ready = seen.pods.iter().filter(|pod| pods::is_ready(pod)).count() as i32;
    let since = scheduled_since(db, &old, now);
    let mut status = DatabaseStatus {
        observed_generation: db.metadata.generation,
        instances: seen.pods.iter().filter(|pod| pods::is_active(pod)).count() as i32,
        ready_instances: ready,
        initialized: old.initialized || ready > 0,
        // A server that answers has opened the data: from here on it is of this version.
        version: old.version.clone().or_else(|| (ready > 0).then(|| db.spec.version.clone())),
        storage_size: capacity(seen).or(old.storage_size),
        services: Some(Services { rw: build::read_write(db), ro: build::read_only(db) }),
        secret_name: Some(build::secret_name(db)),
        last_successful_backup: last_backup(seen).max(old.last_successful_backup.clone()),
        next_backup: next_backup(db, seen, now),
        schedule: schedule_text(db),
        scheduled_since: since,
        selector: build::selector(db),
        conditions: known(db).to_vec(),
        ..old
    };
    let judged = [
        ready_condition(ready, seen),
        progressing(db, ready, seen),
        degraded(seen),
        backup_healthy(db, seen, &status, now),
    ];
    for condition in judged {
        conditions::set(&mut status.conditions, condition, db, now);
    }
    if let Some(found) = &seen.credentials {
        conditions::set(&mut status.conditions, credentials_synced(db, found), db, now);
    }
    if let Some(Credentials::Synced(accepted)) = &seen.credentials {
        status.credentials = Some(accepted.clone());
    }
    resizing(db, &mut status, now);
    status
}

fn credentials_synced(db: &Database, found: &Credentials) -> Condition {
    let secret = build::secret_name(db);
    match found {
        Credentials::Synced(_) => {
            let message = format!("the server accepts the credentials of the Secret {secret}");
            is_true(CREDENTIALS_SYNCED, "LoginSucceeded", message)
        }
        Credentials::Waiting => {
            let message = format!("no server runs that could be asked about the Secret {secret}");
            is_false(CREDENTIALS_SYNCED, "WaitingForServer", message)
        }
        Credentials::Syncing(_) => is_false(CREDENTIALS_SYNCED, SYNCING, syncing(db)),
        Credentials::Failed(_, problem) => is_false(CREDENTIALS_SYNCED, problem.reason, &problem.message),
    }
}

fn syncing(db: &Database) -> String {
    format!("the server is being brought in line with the Secret {}", build::secret_name(db))
}

/// The size of the data's volume, as the storage system says.
pub(super) fn capacity(seen: &Observed) -> Option<String> {
    let claim = seen.claim.as_ref()?;
    let actual = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    actual.and_then(|capacity| capacity.get("storage")).map(|size| size.0.clone())
}

fn ready_condition(ready: i32, seen: &Observed) -> Condition {
    if ready > 0 {
        return is_true(READY, reasons::AVAILABLE, "the server answers");
    }
    match seen.problem.as_ref().or(seen.waiting.as_ref()) {
        Some(problem) => is_false(READY, problem.reason, &problem.message),
        None => is_false(READY, reasons::REPLICAS_UNAVAILABLE, "the server does not answer"),
    }
}

fn progressing(db: &Database, ready: i32, seen: &Observed) -> Condition {
    if let Some(problem) = &seen.problem {
        return is_false(PROGRESSING, problem.reason, &problem.message);
    }
    if let Some(waiting) = &seen.waiting {
        return is_true(PROGRESSING, waiting.reason, &waiting.message);
    }
    let current = seen.set.as_ref().is_some_and(|set| seen.pods.iter().all(|pod| runs_current(set, pod)));
    // It may have come up since its credentials were looked at.
    let unsynced = matches!(seen.credentials, Some(Credentials::Syncing(_) | Credentials::Waiting));
    if ready > 0 && current && unsynced {
        is_true(PROGRESSING, SYNCING, syncing(db))
    } else if ready > 0 && current {
        let message = format!("the server runs version {} with the current settings", db.spec.version);
        is_false(PROGRESSING, reasons::ROLLOUT_COMPLETE, message)
    } else {
        is_true(PROGRESSING, reasons::ROLLING_OUT, "the server is being started or replaced")
    }
}

/// Whether a Pod runs what the spec asks of a server.
pub(super) fn runs_current(set: &StatefulSet, pod: &Pod) -> bool {
    let template = set.spec.template.metadata.as_ref();
    let wanted = template.and_then(|template| template.annotations.as_ref()?.get(build::SERVER_HASH));
    let has = pod.metadata.annotations.as_ref().and_then(|all| all.get(build::SERVER_HASH));
    wanted.is_some() && has == wanted
}

/// Whether a Pod was made from the StatefulSet's current template.
pub(super) fn is_of_revision(set: &StatefulSet, pod: &Pod) -> bool {
    let status = set.status.as_ref().filter(|status| status.observed_generation >= set.metadata.generation);
    let current = status.and_then(|status| status.update_revision.as_ref());
    let labels = pod.metadata.labels.as_ref();
    current.is_some() && labels.and_then(|labels| labels.get("controller-revision-hash")) == current
}

fn degraded(seen: &Observed) -> Condition {
    let problem = seen.problem.clone().or_else(|| seen.refusal.clone()).or_else(|| pods::trouble(&seen.pods));
    match problem {
        Some(problem) => is_true(DEGRADED, problem.reason, problem.message),
        None => is_false(DEGRADED, reasons::AS_EXPECTED, ""),
    }
}

/// When the newest backup was complete, scheduled or on demand.
fn last_backup(seen: &Observed) -> Option<Time> {
    let scheduled = seen.schedule.as_ref().and_then(|job| job.status.as_ref()?.last_successful_time.clone());
    let complete = seen.backups.iter().filter_map(|backup| backup.status.as_ref());
    let complete = complete.filter(|status| status.phase == Phase::Succeeded);
    complete.filter_map(|status| status.completion_time.clone()).chain(scheduled).max()
}

/// The schedule that is kept, and the time zone that it is meant in.
fn schedule_of(db: &Database) -> Option<(Schedule, TimeZone)> {
    let backup = db.spec.backup.as_ref().filter(|backup| !backup.suspend)?;
    Some((cron::parse(&backup.schedule).ok()?, cron::zone(&backup.time_zone)?))
}

fn schedule_text(db: &Database) -> Option<String> {
    let backup = db.spec.backup.as_ref().filter(|backup| !backup.suspend)?;
    Some(format!("{} {}", backup.schedule, backup.time_zone))
}

/// Since when the schedule is kept as it is: what another one missed is not this one's fault.
fn scheduled_since(db: &Database, old: &DatabaseStatus, now: Timestamp) -> Option<Time> {
    let text = schedule_text(db)?;
    let same = old.scheduled_since.clone().filter(|_| old.schedule.as_ref() == Some(&text));
    same.or(Some(Time(now)))
}

fn next_backup(db: &Database, seen: &Observed, now: Timestamp) -> Option<Time> {
    let (schedule, zone) = schedule_of(db)?;
    // An interval is counted from the last one.
    let last = seen.schedule.as_ref().and_then(|job| {
        let last = job.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
        last.or(job.metadata.creation_timestamp.as_ref()).map(|time| time.0)
    });
    let after = if schedule.period().is_some() { last.unwrap_or(now) } else { now };
    schedule.next_after(after, &zone).map(|next| Time(next.max(now)))
}

/// Until when the first backup that has been due since the last good one must be there.
fn overdue_at(db: &Database, status: &DatabaseStatus) -> Option<(Timestamp, Timestamp)> {
    let (schedule, zone) = schedule_of(db)?;
    let since = status.last_successful_backup.as_ref().max(status.scheduled_since.as_ref())?.0;
    let due = schedule.next_after(since, &zone)?;
    let patience = build::STARTING_DEADLINE + build::backup(db).active_deadline_seconds;
    Some((due, due.checked_add(SignedDuration::from_secs(patience)).ok()?))
}

/// When the status will say something else though nothing happens: a backup is due, or is overdue.
pub(super) fn look_again(db: &Database, status: &DatabaseStatus, now: Timestamp) -> Option<Duration> {
    let overdue = overdue_at(db, status).map(|(_, end)| end);
    let next = status.next_backup.as_ref().map(|next| next.0).into_iter().chain(overdue);
    let wait = next.filter(|time| *time >= now).min()?.duration_since(now);
    Some(Duration::try_from(wait).ok()? + Duration::from_secs(1))
}

/// The newest backup decides: of the Jobs of the schedule, and of the backups on demand.
fn backup_healthy(db: &Database, seen: &Observed, status: &DatabaseStatus, now: Timestamp) -> Condition {
    // A DatabaseBackup says more than its Job.
    let entered =
        |job: &Job| seen.backups.iter().any(|it| job.metadata.name == Some(build::backup_job_name(it)));
    let backups = seen.jobs.iter().filter(|job| !build::is_no_backup(db, job) && !entered(job));
    let failed_jobs = backups.filter_map(|job| job_failure(job));
    let failed = seen.backups.iter().filter_map(|backup| {
        let status = backup.status.as_ref().filter(|status| status.phase == Phase::Failed)?;
        Some((status.completion_time.clone()?, status.error.clone().unwrap_or_default()))
    });
    let last_failure = failed_jobs.chain(failed).max_by(|a, b| a.0.cmp(&b.0));
    match (last_failure, &status.last_successful_backup) {
        (Some((at, why)), last) if last.as_ref().is_none_or(|last| *last < at) => {
            is_false(BACKUP_HEALTHY, "BackupFailed", why)
        }
        _ if let Some((due, _)) = overdue_at(db, status).filter(|(_, end)| *end < now) => {
            let message = format!(
                "a backup was due at {due} and none has been completed since; look at the CronJob {} and its Jobs",
                build::schedule_name(db)
            );
            is_false(BACKUP_HEALTHY, "BackupOverdue", message)
        }
        (_, Some(_)) => is_true(BACKUP_HEALTHY, "BackupSucceeded", "the last backup succeeded"),
        (_, None) => is_unknown(BACKUP_HEALTHY, "NoBackup", "no backup has been taken yet"),
    }
}

/// When and why a Job failed, if it did.
pub(super) fn job_failure(job: &Job) -> Option<(Time, String)> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let failed = conditions.iter().find(|found| found.type_ == "Failed" && found.status == "True")?;
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let why = failed.message.clone().unwrap_or_default();
    Some((failed.last_transition_time.clone()?, format!("Job {name}: {why}")))
}

/// Whether a Job failed because its Pod said that another attempt is of no use.
pub(super) fn is_refused(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let refused = |found: &JobCondition| {
        found.type_ == "Failed"
            && found.status == "True"
            && found.reason.as_deref() == Some("PodFailurePolicy")
    };
    conditions.is_some_and(|all| all.iter().any(refused))
}

/// Whether a Job has done its work.
pub(super) fn is_complete(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|found| found.type_ == "Complete" && found.status == "True"))
}

/// A growth is over when the storage system has the size that was asked for.
fn resizing(db: &Database, status: &mut DatabaseStatus, now: Timestamp) {
    let Some(target) = status.resizing_to.clone() else { return };
    let size = status.storage_size.clone().unwrap_or_else(|| "0".into());
    let condition = if quantity::is_less(&size, &target) {
        is_true(STORAGE_RESIZING, "Growing", format!("the volume grows from {size} to {target}"))
    } else {
        status.resizing_to = None;
        is_false(STORAGE_RESIZING, "Grown", format!("the volume has {size}"))
    };
    conditions::set(&mut status.conditions, condition, db, now);
}
