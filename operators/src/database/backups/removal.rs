//! The end of a DatabaseBackup: what takes it is stopped, then its files are removed, then it may go.

use std::time::Duration;

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use windlass::{Action, Children, Context};

use super::{FINALIZER, judged, tell};
use crate::{
    database::{
        api::{Database, DatabaseBackup, Location, Phase},
        build,
        controller::Error,
        jobs, status,
    },
    workload::Problem,
};

/// How often to look whether a Pod that writes is gone: no watch tells.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Lets a backup go once its files are gone.
pub(super) async fn finalize(
    backup: &DatabaseBackup,
    ctx: &Context<DatabaseBackup>,
) -> Result<Action, Error> {
    if !backup.finalizers().iter().any(|name| name == FINALIZER) {
        return Ok(Action::await_change());
    }
    end_schedule(backup, ctx).await?;
    let Some(location) = location(backup, ctx)? else { return release(ctx).await };
    let db = ctx.get::<Database>(backup.namespace().as_deref(), &backup.spec.database_ref.name);
    let db = db.map_err(Error::Read)?;
    if is_being_taken(backup, ctx)? {
        ctx.apply(Children::new()).await.map_err(Error::ApplyChildren)?;
        return Ok(Action::requeue(LOOK_AGAIN));
    }
    let removal = build::removal_job(backup, &location, db.as_deref());
    let job = match jobs::ensure(ctx, removal, Children::new()).await {
        Ok(Some(job)) => job,
        // An earlier one is on its way out, and its end is an event.
        Ok(None) => return Ok(Action::await_change()),
        // The volume goes with the namespace, and no Job can be made there any more.
        Err(error) if is_namespace_going(&error) => return release(ctx).await,
        Err(error) => return Err(Error::ApplyChildren(error)),
    };
    if status::is_complete(&job) {
        return release(ctx).await;
    }
    if let Some((_, why)) = status::job_failure(&job) {
        let why = jobs::why(ctx, &job, why).map_err(Error::Read)?;
        let phase = backup.status.as_ref().map_or(Phase::Failed, |status| status.phase);
        let message = format!("{why}; mend that, and delete that Job to try again");
        let problem = Problem::new("RemovalFailed", message);
        let mut new = judged(backup, ctx, phase, &problem);
        new.error = Some(problem.message);
        tell(backup, ctx, new).await?;
    }
    Ok(Action::await_change())
}

/// The Job of the schedule goes with its backup, whether it has ended or not: another backup would be made of it.
async fn end_schedule(backup: &DatabaseBackup, ctx: &Context<DatabaseBackup>) -> Result<(), Error> {
    if !build::is_scheduled(backup) {
        return Ok(());
    }
    let name = build::backup_job_name(backup);
    let job = ctx.get::<Job>(backup.namespace().as_deref(), &name).map_err(Error::Read)?;
    let ours = |job: &Job| job.labels().contains_key(build::SCHEDULED);
    match job.filter(|job| ours(job) && job.metadata.deletion_timestamp.is_none()) {
        Some(job) => ctx.delete(&*job).await.map_err(Error::DeleteBackup),
        None => Ok(()),
    }
}

async fn release(ctx: &Context<DatabaseBackup>) -> Result<Action, Error> {
    ctx.release(FINALIZER).await.map_err(Error::Finalize)?;
    Ok(Action::await_change())
}

/// Where files may be, if there is a volume to have them.
fn location(backup: &DatabaseBackup, ctx: &Context<DatabaseBackup>) -> Result<Option<Location>, Error> {
    let location = backup.status.as_ref().and_then(|status| status.location.clone());
    let Some(location) = location else { return Ok(None) };
    let namespace = backup.namespace();
    let claim = ctx.get::<PersistentVolumeClaim>(namespace.as_deref(), &location.claim);
    let there = claim.map_err(Error::Read)?.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none());
    Ok(there.then_some(location))
}

/// Whether the Job that takes the backup, or a Pod of it that has not ended, is still there.
fn is_being_taken(backup: &DatabaseBackup, ctx: &Context<DatabaseBackup>) -> Result<bool, Error> {
    let name = build::backup_job_name(backup);
    let jobs = ctx.owned::<Job>().map_err(Error::Read)?;
    let all = ctx.list::<Pod>(backup.namespace().as_deref()).map_err(Error::Read)?;
    let writes = |pod: &Pod| {
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        pod.labels().get("batch.kubernetes.io/job-name") == Some(&name)
            && !matches!(ended, Some("Succeeded" | "Failed"))
    };
    Ok(jobs.iter().any(|job| job.name_any() == name) || all.iter().any(|pod| writes(pod)))
}

fn is_namespace_going(error: &windlass::Error) -> bool {
    error.status().is_some_and(|status| status.is_forbidden() && status.message.contains("being terminated"))
}
