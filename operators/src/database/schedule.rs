//! Scheduled backups as objects: each Job of the schedule gets a DatabaseBackup of its name, by which it can be listed and
//! restored; those beyond the number that is kept are deleted, and with them their files.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::{Resource, ResourceExt};
use windlass::{Context, Event};

use super::{
    api::{Database, DatabaseBackup, Phase},
    build,
    controller::Error,
    status::Observed,
};
use crate::workload::Problem;

/// Enters what the schedule has done, and lets go what is no longer kept. What hinders that is told, and hinders nothing
/// else.
pub(super) async fn follow(
    db: &Database,
    ctx: &Context<Database>,
    seen: &Observed,
) -> Result<Option<Problem>, Error> {
    let problem = enter(db, ctx, seen).await?;
    prune(db, ctx, seen).await?;
    Ok(problem)
}

async fn enter(db: &Database, ctx: &Context<Database>, seen: &Observed) -> Result<Option<Problem>, Error> {
    let Some(schedule) = &seen.schedule else { return Ok(None) };
    let known: BTreeSet<String> = seen.backups.iter().map(|backup| backup.name_any()).collect();
    let mut new: Vec<&Arc<Job>> = seen
        .jobs
        .iter()
        .filter(|job| is_of(schedule, job) && !known.contains(&job.name_any()))
        // One that is on its way out went with its DatabaseBackup.
        .filter(|job| job.meta().deletion_timestamp.is_none())
        .collect();
    new.sort_by_key(|job| job.name_any());
    let mut problem = None;
    for job in new {
        match ctx.create(build::scheduled_backup(db, job)).await {
            // Such as that of a Job whose name somebody chose too long.
            Err(error) if !error.is_already_exists() => match Problem::of(&error) {
                Some(found) => problem = Some(found),
                None => return Err(Error::CreateBackup(error)),
            },
            _ => {}
        }
    }
    Ok(problem)
}

/// Whether a schedule has made a Job that keeps its files under its own name: those of earlier operators did not.
fn is_of(schedule: &CronJob, job: &Job) -> bool {
    let uid = schedule.uid();
    let owned = job.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref());
    owned && job.labels().contains_key(build::SCHEDULED)
}

async fn prune(db: &Database, ctx: &Context<Database>, seen: &Observed) -> Result<(), Error> {
    let Some(backup) = &db.spec.backup else { return Ok(()) };
    let databases = ctx.list::<Database>(db.namespace().as_deref()).map_err(Error::Read)?;
    let needed = |backup: &DatabaseBackup| databases.iter().any(|db| is_to_restore(db, backup));
    for old in surplus(&seen.backups, backup.retention.count) {
        if needed(&old) {
            continue;
        }
        ctx.delete(&*old).await.map_err(Error::DeleteBackup)?;
        let note = format!("Deleting the scheduled backup {}, which is no longer kept", old.name_any());
        ctx.event(Event::normal("BackupPruned", note));
    }
    Ok(())
}

/// Whether a Database is yet to be restored from a backup.
fn is_to_restore(db: &Database, backup: &DatabaseBackup) -> bool {
    let status = db.status.as_ref();
    let recovery = db.spec.bootstrap.as_ref().and_then(|bootstrap| bootstrap.recovery.as_ref());
    let asked = recovery.is_some_and(|recovery| recovery.backup_ref.name == backup.name_any());
    asked && !status.is_some_and(|status| status.initialized)
}

/// The scheduled backups beyond the number that is kept: good ones beyond it, the oldest first, and failed ones beyond a
/// few. As many good ones stay whatever fails.
pub(super) fn surplus(backups: &[Arc<DatabaseBackup>], keep: i32) -> Vec<Arc<DatabaseBackup>> {
    let stays = |backup: &&Arc<DatabaseBackup>| {
        build::is_scheduled(backup) && backup.metadata.deletion_timestamp.is_none()
    };
    let beyond = |phase: Phase, keep: i32| {
        let of_phase = |backup: &&Arc<DatabaseBackup>| {
            backup.status.as_ref().is_some_and(|status| status.phase == phase)
        };
        let mut all: Vec<_> = backups.iter().filter(stays).filter(of_phase).cloned().collect();
        all.sort_by_key(|backup| {
            let status = backup.status.as_ref();
            (status.and_then(|status| status.completion_time.clone()), backup.name_any())
        });
        let surplus = all.len().saturating_sub(usize::try_from(keep).unwrap_or_default());
        all.truncate(surplus);
        all
    };
    let mut found = beyond(Phase::Succeeded, keep.max(1));
    found.extend(beyond(Phase::Failed, build::FAILED_HISTORY));
    found
}
