//! The flow of a DatabaseBackup: a Job, its own or the schedule's, and what became of it. Its files go with it:
//! [`removal`].

mod removal;

use std::sync::Arc;

use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::ResourceExt;
use serde_json::Value;
use windlass::{
    Action, Children, Context, Controller, Event, ObjectKey, Reader, Reconciler,
    conditions::{self, DEGRADED, PROGRESSING, READY, is_false, is_true},
};

use super::{
    api::{Database, DatabaseBackup, DatabaseBackupStatus, Location, Phase},
    build,
    controller::Error,
    jobs, status,
};
use crate::workload::{Living, Problem, Settings, called, pods, reasons, report};

/// What keeps a DatabaseBackup from going before its files have been removed.
pub const FINALIZER: &str = "database.example.com/files";

/// The controller of DatabaseBackups.
pub fn controller(settings: Settings) -> Controller<DatabaseBackups> {
    let controller = Controller::new(DatabaseBackups::default())
        .owns::<Job>()
        .reads::<Pod>()
        .reads::<PersistentVolumeClaim>()
        .watches::<Job, _>(|job: &Job, _: &Reader| {
            let scheduled = job.labels().contains_key(build::SCHEDULED);
            scheduled.then(|| ObjectKey::of(job)).into_iter().collect()
        })
        .watches::<Database, _>(|db: &Database, cache: &Reader| {
            let all = cache.list::<DatabaseBackup>(db.namespace().as_deref()).unwrap_or_default();
            let of_it = all.iter().filter(|backup| backup.spec.database_ref.name == db.name_any());
            of_it.map(|backup| ObjectKey::of(&**backup)).collect()
        });
    settings.apply(controller)
}

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct DatabaseBackups {
    living: Living,
}

impl Reconciler for DatabaseBackups {
    type Resource = DatabaseBackup;
    type Error = Error;

    async fn reconcile(
        &self,
        backup: Arc<DatabaseBackup>,
        ctx: &Context<DatabaseBackup>,
    ) -> Result<Action, Error> {
        self.living.see(ctx.key());
        called(&*backup, ctx);
        if backup.metadata.deletion_timestamp.is_some() {
            return removal::finalize(&backup, ctx).await;
        }
        if ctx.guard(FINALIZER).await.map_err(Error::Finalize)?.is_finished() {
            // It was deleted since this run began; the next one takes the other path.
            return Ok(Action::await_change());
        }
        let status = backup.status.clone().unwrap_or_default();
        if matches!(status.phase, Phase::Succeeded | Phase::Failed) {
            return Ok(Action::await_change());
        }
        let namespace = backup.namespace();
        let name = &backup.spec.database_ref.name;
        let db = ctx.get::<Database>(namespace.as_deref(), name).map_err(Error::Read)?;
        let ready = db.filter(|db| {
            let known = db.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
            conditions::holds(&known, READY)
        });
        if build::is_scheduled(&backup) {
            return scheduled(&backup, ctx).await;
        }
        let Some(db) = ready else {
            // A backup that runs goes on: its Job knows better whether the server answers.
            if ctx.owned::<Job>().map_err(Error::Read)?.is_empty() {
                let message = format!("the Database {name} is not ready");
                let waiting = Problem::new("WaitingForDatabase", message);
                tell(&backup, ctx, judged(&backup, ctx, Phase::Pending, &waiting)).await?;
            }
            return Ok(Action::await_change());
        };
        let db = build::of_data(&db);
        let wanted = build::backup_job(&db, &backup);
        // One that is on its way out makes room for another, and its end is an event.
        if let Some(job) = jobs::ensure(ctx, wanted, Children::new()).await.map_err(Error::ApplyChildren)? {
            observe(&backup, ctx, build::location(&db, &backup), &job).await?;
        }
        Ok(Action::await_change())
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<DatabaseBackup>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

/// Follows a Job of the schedule.
async fn scheduled(backup: &DatabaseBackup, ctx: &Context<DatabaseBackup>) -> Result<Action, Error> {
    let namespace = backup.namespace();
    let name = build::backup_job_name(backup);
    let job = ctx.get::<Job>(namespace.as_deref(), &name).map_err(Error::Read)?;
    let db =
        ctx.get::<Database>(namespace.as_deref(), &backup.spec.database_ref.name).map_err(Error::Read)?;
    match (job, db) {
        (Some(job), Some(db)) => {
            observe(backup, ctx, build::location(&build::of_data(&db), backup), &job).await?;
        }
        _ => {
            let why = format!("the Job {name} went before it told how the backup ended");
            let mut new = judged(backup, ctx, Phase::Failed, &Problem::new("BackupFailed", &why));
            new.completion_time = Some(Time(ctx.now()));
            new.error = Some(why);
            tell(backup, ctx, new).await?;
        }
    }
    Ok(Action::await_change())
}

/// Reports how far the Job is.
async fn observe(
    backup: &DatabaseBackup,
    ctx: &Context<DatabaseBackup>,
    location: Location,
    job: &Job,
) -> Result<(), Error> {
    let started = job.status.as_ref().and_then(|status| status.start_time.clone());
    let mut new = if status::is_complete(job) {
        let done = Problem::new("BackupSucceeded", "the backup was taken and verified");
        let mut new = judged(backup, ctx, Phase::Succeeded, &done);
        new.completion_time = job.status.as_ref().and_then(|status| status.completion_time.clone());
        new.size_kib = size(ctx, job)?;
        new
    } else if let Some((at, why)) = status::job_failure(job) {
        let why = jobs::why(ctx, job, why).map_err(Error::Read)?;
        let mut new = judged(backup, ctx, Phase::Failed, &Problem::new("BackupFailed", &why));
        new.completion_time = Some(at);
        new.error = Some(why);
        new
    } else {
        // A Pod that cannot begin is no failure before the deadline, and is told all the same.
        let trouble = pods::trouble(&jobs::of_job(ctx, job).map_err(Error::Read)?);
        let doing = trouble.unwrap_or_else(|| Problem::new("BackingUp", "the backup is being taken"));
        judged(backup, ctx, Phase::Running, &doing)
    };
    new.start_time = started.or(new.start_time);
    // Also of one that is not complete: whoever deletes it deletes what is there.
    new.location = Some(location);
    tell(backup, ctx, new).await
}

fn judged(
    backup: &DatabaseBackup,
    ctx: &Context<DatabaseBackup>,
    phase: Phase,
    why: &Problem,
) -> DatabaseBackupStatus {
    let mut new = backup.status.clone().unwrap_or_default();
    new.observed_generation = backup.metadata.generation;
    new.phase = phase;
    let (reason, message) = (why.reason, &why.message);
    let ready = match phase {
        Phase::Succeeded => is_true(READY, reason, message),
        _ => is_false(READY, reason, message),
    };
    let progressing = match phase {
        Phase::Pending | Phase::Running => is_true(PROGRESSING, reason, message),
        _ => is_false(PROGRESSING, reason, message),
    };
    let degraded = match phase {
        Phase::Failed => is_true(DEGRADED, reason, message),
        _ => is_false(DEGRADED, reasons::AS_EXPECTED, ""),
    };
    for condition in [ready, progressing, degraded] {
        conditions::set(&mut new.conditions, condition, backup, ctx.now());
    }
    new
}

/// The size that the Job's Pod has left as its last word.
fn size(ctx: &Context<DatabaseBackup>, job: &Job) -> Result<Option<i64>, Error> {
    let word = jobs::last_word(ctx, job).map_err(Error::Read)?;
    Ok(word.and_then(|word| serde_json::from_str::<Value>(&word).ok()?["sizeKiB"].as_i64()))
}

async fn tell(
    backup: &DatabaseBackup,
    ctx: &Context<DatabaseBackup>,
    new: DatabaseBackupStatus,
) -> Result<(), Error> {
    let failed = new.phase == Phase::Failed;
    let why = new.error.clone().unwrap_or_default();
    let done = |_: &Condition| Event::normal("BackupSucceeded", "The backup was taken and verified");
    report(backup, ctx, new, done).await.map_err(Error::UpdateStatus)?;
    if failed {
        ctx.event(Event::warning("BackupFailed", why));
    }
    Ok(())
}
