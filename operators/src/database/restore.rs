//! How a Database is restored: from which backup, into which volume, and when not. Data that is there is neither
//! replaced nor passed off as restored.
//!
//! The Job that restores sees the volume, the operator does not. So the Job decides, and its end is all that counts:
//! complete, refused (the volume holds something else), or failed. What it decides holds for the claim that it had
//! before its eyes: with another claim the restore begins anew.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::PersistentVolumeClaim};
use kube::{Resource, ResourceExt};
use windlass::{Action, Context, Event, conditions};

use super::{
    api::{Database, DatabaseBackup, Location, Method, Phase},
    build,
    controller::{Error, apply, children, ensure_claim, tell},
    jobs,
    status::{self, Observed},
};
use crate::workload::{Problem, known, ready_event, report};

/// The reason of the conditions and the event of a restore that would hide the data of an earlier Database.
const REFUSED: &str = "RestoreRefused";

/// Whether the restore that the spec asks for is still to be done.
pub(super) fn is_due(db: &Database, seen: &Observed) -> bool {
    let initialized = db.status.as_ref().is_some_and(|status| status.initialized);
    let asked = build::bootstrap(db).recovery.is_some();
    asked && !initialized && seen.set.is_none() && !is_complete(db, seen)
}

fn is_complete(db: &Database, seen: &Observed) -> bool {
    job(db, seen).is_some_and(|job| status::is_complete(&job) && is_about(&job, seen.claim.as_deref()))
}

/// The Job that restores this Database: not that of an earlier one of the name.
fn job(db: &Database, seen: &Observed) -> Option<Arc<Job>> {
    let (name, uid) = (build::restore_name(db), db.uid());
    let is_ours = |job: &Job| job.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref());
    seen.jobs.iter().find(|job| job.name_any() == name && is_ours(job)).cloned()
}

/// Whether a Job speaks of the claim that is there: one that came later, or is on its way out, it has not seen.
fn is_about(job: &Job, claim: Option<&PersistentVolumeClaim>) -> bool {
    let created = |meta: &kube::core::ObjectMeta| meta.creation_timestamp.as_ref().map(|time| time.0);
    claim.is_some_and(|claim| {
        let stays = claim.metadata.deletion_timestamp.is_none();
        stays && created(&claim.metadata) <= created(&job.metadata)
    })
}

/// Does the next step of a restore, and tells how far it is.
pub(super) async fn proceed(
    db: &Database,
    ctx: &Context<Database>,
    mut seen: Observed,
) -> Result<Action, Error> {
    let job = job(db, &seen);
    let claim = seen.claim.clone();
    let leaving = |meta: &kube::core::ObjectMeta| meta.deletion_timestamp.is_some();
    let stale = job.as_ref().is_some_and(|job| leaving(job.meta()) || !is_about(job, claim.as_deref()));
    if stale || claim.as_ref().is_some_and(|claim| leaving(claim.meta())) {
        // Its Pod, though it has ended, would keep the claim from going.
        apply(db, ctx, children(db)).await.map_err(Error::ApplyChildren)?;
        let message = format!("the claim {} is on its way out, or has been replaced", build::data_claim(db));
        seen.waiting = Some(Problem::new("WaitingForClaim", message));
        tell(db, ctx, &seen).await?;
        return Ok(Action::await_change());
    }
    if job.as_ref().is_some_and(|job| status::is_refused(job)) {
        return refuse(db, ctx, seen).await;
    }
    match source(db, ctx) {
        Ok(location) => restore(db, ctx, &location, job.as_deref(), seen).await,
        Err(waiting) => {
            seen.waiting = Some(waiting);
            tell(db, ctx, &seen).await?;
            Ok(Action::await_change())
        }
    }
}

/// Where the data is to be restored from, or what has to be waited for. Once begun, a restore keeps to its backup.
fn source(db: &Database, ctx: &Context<Database>) -> Result<Location, Problem> {
    let status = db.status.clone().unwrap_or_default();
    // Earlier operators wrote the place of a restore that had only begun into `restoredFrom`.
    if let Some(recorded) = status.restoring_from.or(status.restored_from) {
        return Ok(recorded);
    }
    let name = build::bootstrap(db).recovery.map(|recovery| recovery.backup_ref.name).unwrap_or_default();
    let waiting = |message: String| Problem::new("WaitingForBackup", message);
    let found = ctx.get::<DatabaseBackup>(db.namespace().as_deref(), &name);
    let Ok(Some(backup)) = found else {
        return Err(waiting(format!("there is no DatabaseBackup {name}; create it, or choose another one")));
    };
    let status = backup.status.clone().unwrap_or_default();
    let location = status.location.filter(|_| status.phase == Phase::Succeeded);
    let Some(location) = location else {
        return Err(waiting(format!("the DatabaseBackup {name} is {:?}, not Succeeded", status.phase)));
    };
    if location.method == Method::Physical && location.version != db.spec.version {
        return Err(waiting(format!(
            "the DatabaseBackup {name} holds files of version {}, which version {} cannot open; set spec.version to \
             it, or take a Logical backup",
            location.version, db.spec.version
        )));
    }
    Ok(location)
}

/// Records where the data comes from, makes its volume, and lets a Job fill it.
async fn restore(
    db: &Database,
    ctx: &Context<Database>,
    location: &Location,
    job: Option<&Job>,
    mut seen: Observed,
) -> Result<Action, Error> {
    match job.and_then(|job| Some((job, status::job_failure(job)?))) {
        Some((job, (_, why))) => {
            let why = jobs::why(ctx, job, why).map_err(Error::Read)?;
            seen.problem = Some(Problem::new("RestoreFailed", why));
        }
        None => {
            let message = format!("the backup {} is being restored", location.directory);
            seen.waiting = Some(Problem::new("Restoring", message));
        }
    }
    let mut recorded = status::observed(db, &seen, ctx.now());
    recorded.restored_from = None;
    recorded.restoring_from = Some(location.clone());
    report(db, ctx, recorded, ready_event).await.map_err(Error::UpdateStatus)?;
    ensure_claim(ctx, build::claim(db, build::data_claim(db), &db.spec.storage)).await?;
    jobs::ensure(ctx, build::restore_job(db, location), children(db)).await.map_err(Error::ApplyChildren)?;
    Ok(Action::await_change())
}

/// Tells that the volume holds something else, and what can be done. Nothing is done before that: a new claim wakes us.
async fn refuse(db: &Database, ctx: &Context<Database>, mut seen: Observed) -> Result<Action, Error> {
    let claim = build::data_claim(db);
    let message = format!(
        "the claim {claim} holds data that was not restored from this backup, so nothing was restored and the data was \
         not touched; to restore, delete the claim {claim}, and with it that data; to use that data, delete this \
         Database and create it without spec.bootstrap.recovery; to have both, restore under another name"
    );
    let news = conditions::find(known(db), conditions::DEGRADED).is_none_or(|old| old.reason != REFUSED);
    seen.problem = Some(Problem::new(REFUSED, &message));
    let mut recorded = status::observed(db, &seen, ctx.now());
    recorded.restored_from = None;
    recorded.restoring_from = None;
    report(db, ctx, recorded, ready_event).await.map_err(Error::UpdateStatus)?;
    if news {
        ctx.event(Event::warning(REFUSED, message));
    }
    Ok(Action::await_change())
}

/// Records that the restore is complete, before its Job is tidied up and a server changes the data.
pub(super) async fn record(
    db: &Database,
    ctx: &Context<Database>,
    seen: &Observed,
) -> Result<Option<Database>, Error> {
    let begun = db.status.as_ref().and_then(|status| status.restoring_from.clone());
    let Some(location) = begun.filter(|_| is_complete(db, seen)) else { return Ok(None) };
    let note = format!("The backup {} of the claim {} was restored", location.directory, location.claim);
    let mut status = status::observed(db, seen, ctx.now());
    status.restoring_from = None;
    status.restored_from = Some(location);
    report(db, ctx, status.clone(), ready_event).await.map_err(Error::UpdateStatus)?;
    ctx.event(Event::normal("Restored", note));
    Ok(Some(Database { status: Some(status), ..db.clone() }))
}

/// Whether the data is this Database's own: one that was refused, or has never opened a volume that is older than it
/// is, has no say over what becomes of it.
pub(super) fn owns_data(db: &Database, claim: Option<&PersistentVolumeClaim>) -> bool {
    let status = db.status.clone().unwrap_or_default();
    let created = |meta: &kube::core::ObjectMeta| meta.creation_timestamp.as_ref().map(|time| time.0);
    let is_older = claim.is_some_and(|claim| created(&claim.metadata) < created(&db.metadata));
    status.initialized || status.restored_from.is_some() || !is_older
}
