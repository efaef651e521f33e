//! The flow of a Database: credentials, volumes, restore, children, growth, restart, status.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, Event as CoreEvent, PersistentVolumeClaim, Pod, Secret, Service},
};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use serde_json::json;
use windlass::{
    Action, Children, Context, Controller, Event, Object, ObjectKey, Reader, ReconcileError, Reconciler,
    conditions::{self, READY},
    rbac,
};

use super::{
    api::{Database, DatabaseBackup},
    build, conflict,
    credentials::{self, Credentials},
    deletion,
    parameters::Verdict,
    restore, schedule,
    status::{self, Observed},
    storage,
};
use crate::workload::{Living, Problem, Settings, called, known, pods, ready_event, reasons, report};

/// What keeps a Database from going before its data has been dealt with.
pub const FINALIZER: &str = "database.example.com/data";

/// How often to look for what no watch tells.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Why a Database could not be brought in line with its spec.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The spec or the name asks for something impossible.
    #[error("failed to build the children")]
    Build(#[source] Problem),
    /// The cache could not be read.
    #[error("failed to read the children")]
    Read(#[source] windlass::Error),
    /// No random password could be made.
    #[error("failed to make a password")]
    Password(#[source] getrandom::Error),
    /// The credentials could not be written.
    #[error("failed to create the credentials")]
    CreateSecret(#[source] windlass::Error),
    /// The credentials could not be changed.
    #[error("failed to update the credentials")]
    UpdateSecret(#[source] windlass::Error),
    /// The server's Pod could not be told of other credentials.
    #[error("failed to tell the server's Pod of its credentials")]
    TellPod(#[source] windlass::Error),
    /// A volume claim could not be written.
    #[error("failed to create a volume claim")]
    CreateClaim(#[source] windlass::Error),
    /// A child was refused, or could not be sent.
    #[error("failed to apply the children")]
    ApplyChildren(#[source] windlass::Error),
    /// A volume could not be grown.
    #[error("failed to grow the volume")]
    GrowVolume(#[source] windlass::Error),
    /// The StatefulSet could not be made anew.
    #[error("failed to replace the StatefulSet")]
    ReplaceStatefulSet(#[source] Box<kube::Error>),
    /// The server could not be restarted.
    #[error("failed to restart the server")]
    Restart(#[source] windlass::Error),
    /// What belongs to the Database could not be deleted.
    #[error("failed to delete the data")]
    DeleteData(#[source] windlass::Error),
    /// The finalizer could not be added or removed.
    #[error("failed to change the finalizer")]
    Finalize(#[source] windlass::Error),
    /// A backup could not be asked for, or entered.
    #[error("failed to create a backup")]
    CreateBackup(#[source] windlass::Error),
    /// A backup, or the Job that takes it, could not be deleted.
    #[error("failed to delete a backup")]
    DeleteBackup(#[source] windlass::Error),
    /// The events of the StatefulSet could not be read.
    #[error("failed to read the events of the StatefulSet")]
    ReadEvents(#[source] Box<kube::Error>),
    /// The status was refused, or could not be sent.
    #[error("failed to update the status")]
    UpdateStatus(#[source] windlass::Error),
}

impl Error {
    fn request(&self) -> Option<&windlass::Error> {
        match self {
            Self::Build(_) | Self::Password(_) | Self::ReplaceStatefulSet(_) | Self::ReadEvents(_) => None,
            Self::Read(source)
            | Self::CreateSecret(source)
            | Self::UpdateSecret(source)
            | Self::TellPod(source)
            | Self::CreateClaim(source)
            | Self::ApplyChildren(source)
            | Self::GrowVolume(source)
            | Self::Restart(source)
            | Self::DeleteData(source)
            | Self::CreateBackup(source)
            | Self::DeleteBackup(source)
            | Self::Finalize(source)
            | Self::UpdateStatus(source) => Some(source),
        }
    }
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Build(problem) => problem.reason,
            Self::Password(_) => "PasswordFailed",
            Self::ReplaceStatefulSet(_) => "ReplaceFailed",
            Self::ReadEvents(_) => "ReadFailed",
            other => other.request().map_or("Failed", ReconcileError::category),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            // A change of the spec comes as an event.
            Self::Build(_) => false,
            other => other.request().is_none_or(ReconcileError::retryable),
        }
    }
}

/// The controller of Databases.
pub fn controller(settings: Settings) -> Controller<Databases> {
    let controller = Controller::new(Databases::default())
        .owns::<StatefulSet>()
        .owns::<Service>()
        .owns::<ConfigMap>()
        .owns::<CronJob>()
        .owns::<Job>()
        .watches::<Secret, _>(credentials::owner)
        .watches::<PersistentVolumeClaim, _>(conflict::of_claim)
        .watches::<Job, _>(by_label::<Job>)
        .watches::<DatabaseBackup, _>(interested)
        .permits([
            rbac::rule("", ["secrets"], ["create", "patch", "delete"]),
            rbac::rule("", ["persistentvolumeclaims"], ["create", "patch", "delete"]),
            rbac::rule("", ["pods"], ["patch", "delete"]),
            rbac::rule("", ["events"], ["list"]),
            rbac::rule("database.example.com", ["databasebackups"], ["create", "delete"]),
        ]);
    settings.apply(pods::watched_among(controller, build::NAME, build::UID))
}

/// The Database that an object was made for, by the name on its label.
fn by_label<K: Object>(object: &K, _: &Reader) -> Vec<ObjectKey> {
    let meta = object.meta();
    let name = meta.labels.as_ref().and_then(|labels| labels.get(build::NAME));
    name.map(|name| ObjectKey::new(meta.namespace.as_deref(), name)).into_iter().collect()
}

/// The Databases that a backup is of, or that are restored from it.
fn interested(backup: &DatabaseBackup, cache: &Reader) -> Vec<ObjectKey> {
    let namespace = backup.namespace();
    let all = cache.list::<Database>(namespace.as_deref()).unwrap_or_default();
    let concerns = |db: &Arc<Database>| {
        let recovery = db.spec.bootstrap.as_ref().and_then(|bootstrap| bootstrap.recovery.as_ref());
        db.name_any() == backup.spec.database_ref.name
            || recovery.is_some_and(|recovery| recovery.backup_ref.name == backup.name_any())
    };
    all.iter().filter(|db| concerns(db)).map(|db| ObjectKey::of(&**db)).collect()
}

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct Databases {
    living: Living,
}

impl Reconciler for Databases {
    type Resource = Database;
    type Error = Error;

    async fn reconcile(&self, db: Arc<Database>, ctx: &Context<Database>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        called(&*db, ctx);
        if db.metadata.deletion_timestamp.is_some() {
            return deletion::finalize(&db, ctx).await;
        }
        let mut seen = look(&db, ctx)?;
        if let Err(problem) = build::check(&db).and_then(|()| build::check_version(&db)) {
            seen.problem = Some(problem.clone());
            tell(&db, ctx, &seen).await?;
            return Err(Error::Build(problem));
        }
        let conflict = conflict::find(&db, ctx)?;
        let has_data = db.status.as_ref().is_some_and(|status| status.initialized);
        if conflict.is_some() && !has_data {
            // It is an event when the other one goes.
            seen.problem = conflict;
            tell(&db, ctx, &seen).await?;
            return Ok(Action::await_change());
        }
        warn(&db, ctx);
        if ctx.guard(FINALIZER).await.map_err(Error::Finalize)?.is_finished() {
            // It was deleted since this run began; the next one takes the other path.
            return Ok(Action::await_change());
        }
        if let Err(error) = ensure_lasting(&db, ctx).await {
            seen.problem = error.request().and_then(Problem::of);
            tell(&db, ctx, &seen).await?;
            return Err(error);
        }
        let mut seen = look(&db, ctx)?;
        seen.problem = conflict;
        if restore::is_due(&db, &seen) {
            return restore::proceed(&db, ctx, seen).await;
        }
        match restore::record(&db, ctx, &seen).await? {
            Some(restored) => Box::pin(converge(&restored, ctx, seen)).await,
            None => Box::pin(converge(&db, ctx, seen)).await,
        }
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<Database>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

/// Warns once about a version that its makers no longer mend.
fn warn(db: &Database, ctx: &Context<Database>) {
    let observed = db.status.as_ref().and_then(|status| status.observed_generation);
    if observed != db.metadata.generation && build::is_out_of_life(db) {
        let note =
            format!("PostgreSQL {} gets no more fixes; plan a move to a newer version", db.spec.version);
        ctx.event(Event::warning("EndOfLife", note));
    }
}

/// What outlives the Database: credentials, and a volume for backups.
pub(super) async fn ensure_lasting(db: &Database, ctx: &Context<Database>) -> Result<(), Error> {
    credentials::ensure(db, ctx).await?;
    // Backups have a volume of their own: one that is lost with the data saves nobody.
    ensure_claim(ctx, build::backups(db)).await
}

pub(super) async fn ensure_claim(ctx: &Context<Database>, claim: PersistentVolumeClaim) -> Result<(), Error> {
    let found = ctx.get::<PersistentVolumeClaim>(ctx.key().namespace(), &claim.name_any());
    if found.map_err(Error::Read)?.is_some() {
        return Ok(());
    }
    let name = claim.name_any();
    match ctx.create(claim).await {
        Err(error) if !error.is_already_exists() => Err(Error::CreateClaim(error)),
        Err(_) => Ok(()),
        Ok(_) => {
            tracing::info!(key = %ctx.key(), claim = name, "created the claim of a volume");
            Ok(())
        }
    }
}

/// Runs the server.
pub(super) async fn converge(
    db: &Database,
    ctx: &Context<Database>,
    mut seen: Observed,
) -> Result<Action, Error> {
    let told = seen.problem.take();
    adopt(db, ctx, &seen).await?;
    let verdict = Verdict::of(db, ctx, &seen)?;
    let running = verdict.applied_to(db);
    let running = record(&running, ctx, &mut seen, &verdict).await?;
    let (set, claim) = (seen.set.clone(), seen.claim.clone());
    let problem = match storage::grow(&running, ctx, set.as_deref(), claim.as_deref()).await {
        Ok(()) => None,
        Err(Error::GrowVolume(error)) => Problem::of(&error),
        Err(other) => return Err(other),
    };
    let problem = problem.or(storage::grow_backups(&running, ctx).await?);
    let problem = problem.or(schedule::follow(&running, ctx, &seen).await?);
    let current = current_set(db, ctx)?;
    let size = storage::wanted_template(&running, current.as_deref());
    let server = storage::unchanged(build::stateful_set(&running, &size), current.as_deref());
    let credentials = credentials::follow(&running, ctx, &look(db, ctx)?).await?;
    let login = credentials.as_ref().and_then(|found| found.job(&running));
    // One that is on its way out, without its Pods, cannot be changed, and its end is an event.
    let leaving = current.is_none() && !ctx.owned::<StatefulSet>().map_err(Error::Read)?.is_empty();
    let wanted = children(&running);
    let wanted = if leaving { wanted.without_pruning() } else { wanted.with(server) };
    let applied = apply(db, ctx, wanted.with_some(login).with_some(verdict.job())).await;
    if applied.is_ok() && current.is_none() && !leaving {
        tracing::info!(key = %ctx.key(), "created the StatefulSet");
    }
    let mut seen = look(db, ctx)?;
    seen.problem = told
        .or_else(|| storage::shrinks(db, claim.as_deref()).map(|why| Problem::new("ShrinkRefused", why)))
        .or(problem)
        .or_else(|| applied.as_ref().err().and_then(Problem::of))
        .or_else(|| credentials.as_ref().and_then(Credentials::problem))
        .or_else(|| verdict.problem());
    seen.waiting = verdict.waiting();
    let missing = seen.set.is_some() && seen.pods.is_empty();
    if missing {
        seen.refusal = refusal(db, ctx).await?;
    }
    restart(db, ctx, &seen).await?;
    seen.credentials = credentials;
    let status = status::observed(&Database { status: running.status, ..db.clone() }, &seen, ctx.now());
    let again = status::look_again(db, &status, ctx.now());
    report(db, ctx, status, ready_event).await.map_err(Error::UpdateStatus)?;
    if let Some(found) = &seen.credentials {
        credentials::announce(db, ctx, found);
    }
    announce(db, ctx, &verdict);
    applied.map_err(Error::ApplyChildren)?;
    // Nothing that is watched tells of a Pod that was refused, or is let in at last; nor of a time that has come.
    Ok(match again {
        _ if missing => Action::requeue(LOOK_AGAIN),
        Some(wait) => Action::requeue(wait),
        None => Action::await_change(),
    })
}

/// Notes on a Pod of an earlier operator, which knew its template by its revision, what it runs: so it is not restarted for
/// a template that differs in what that operator did not know of.
async fn adopt(db: &Database, ctx: &Context<Database>, seen: &Observed) -> Result<(), Error> {
    let observed = db.status.as_ref().and_then(|status| status.observed_generation);
    let Some(set) = seen.set.as_ref().filter(|_| observed == db.metadata.generation) else { return Ok(()) };
    let wanted = build::stateful_set(db, "1").spec.template.metadata.and_then(|meta| meta.annotations);
    let hash = wanted.and_then(|mut annotations| annotations.remove(build::SERVER_HASH));
    let is_older = |pod: &&Arc<Pod>| {
        pods::is_active(pod)
            && !pod.annotations().contains_key(build::SERVER_HASH)
            && status::is_of_revision(set, pod)
    };
    for pod in seen.pods.iter().filter(is_older) {
        let patch = json!({"metadata": {"annotations": {build::SERVER_HASH: hash}}});
        ctx.patch(&**pod, &patch).await.map_err(Error::TellPod)?;
    }
    Ok(())
}

/// Writes down what is about to be changed, and only then anything is. What follows must know of the record, or the status
/// at the end of this run would take it back.
async fn record(
    running: &Database,
    ctx: &Context<Database>,
    seen: &mut Observed,
    verdict: &Verdict,
) -> Result<Database, Error> {
    let old = running.status.clone().unwrap_or_default();
    let grows = storage::must_record(running, seen.claim.as_deref());
    let accepts = old.initialized && *verdict == Verdict::Accepted && {
        let stored = ctx.get::<Database>(ctx.key().namespace(), ctx.key().name()).map_err(Error::Read)?;
        stored.is_some_and(|stored| stored.status.as_ref().map(|it| &it.parameters) != Some(&old.parameters))
    };
    if !grows && !accepts {
        return Ok(running.clone());
    }
    let shrinks = storage::shrinks(running, seen.claim.as_deref());
    seen.problem = shrinks.map(|why| Problem::new("ShrinkRefused", why));
    let applying = || Problem::new(reasons::ROLLING_OUT, "the spec is being applied");
    seen.waiting = verdict.waiting().or_else(|| Some(applying()));
    let mut status = status::observed(running, seen, ctx.now());
    if grows {
        status.resizing_to = Some(running.spec.storage.size.clone());
    }
    report(running, ctx, status.clone(), ready_event).await.map_err(Error::UpdateStatus)?;
    Ok(Database { status: Some(status), ..running.clone() })
}

/// Tells once that a server does not start with the parameters.
fn announce(db: &Database, ctx: &Context<Database>, verdict: &Verdict) {
    if let Some(problem) = verdict.problem()
        && conditions::find(known(db), conditions::DEGRADED).is_none_or(|old| old.reason != problem.reason)
    {
        ctx.event(Event::warning(problem.reason, problem.message));
    }
}

/// Why the StatefulSet makes no Pod: a quota, a policy or a webhook. Only its events say so, those since the server
/// was last there: an older one tells of something that is over.
async fn refusal(db: &Database, ctx: &Context<Database>) -> Result<Option<Problem>, Error> {
    let ready = conditions::find(known(db), READY).filter(|ready| ready.status != "True");
    let Some(since) = ready.map(|ready| ready.last_transition_time.0) else { return Ok(None) };
    let api = Api::<CoreEvent>::namespaced(ctx.client().clone(), &db.namespace().unwrap_or_default());
    let about = format!("involvedObject.kind=StatefulSet,involvedObject.name={}", db.name_any());
    let events = api.list(&ListParams::default().fields(&about)).await;
    let events = events.map_err(|source| Error::ReadEvents(Box::new(source)))?.items;
    let failed = events.into_iter().filter(|event| event.reason.as_deref() == Some("FailedCreate"));
    let told = |event: &CoreEvent| {
        let last = event.last_timestamp.as_ref().or(event.metadata.creation_timestamp.as_ref());
        last.map(|time| time.0)
    };
    let last = failed.filter(|event| told(event) >= Some(since)).max_by_key(told);
    Ok(last.and_then(|event| event.message).map(|why| Problem::new(reasons::FAILED_CREATE, why)))
}

/// The StatefulSet that is there and is not on its way out.
fn current_set(db: &Database, ctx: &Context<Database>) -> Result<Option<Arc<StatefulSet>>, Error> {
    let owned = ctx.owned::<StatefulSet>().map_err(Error::Read)?;
    let is_ours = |set: &Arc<StatefulSet>| set.name_any() == db.name_any();
    Ok(owned.into_iter().find(|set| is_ours(set) && set.meta().deletion_timestamp.is_none()))
}

/// What a Database has at any time, with a server or without.
pub(super) fn children(db: &Database) -> Children {
    Children::new()
        .with(build::config(db))
        .with_all(build::services(db))
        .with_some(db.spec.backup.as_ref().map(|_| build::cron_job(db)))
}

pub(super) async fn apply(
    db: &Database,
    ctx: &Context<Database>,
    children: Children,
) -> windlass::Result<()> {
    let applied = ctx.apply(children).await?;
    if applied.written() > 0 {
        let generation = db.metadata.generation.unwrap_or_default();
        let (written, pruned) = (applied.written(), applied.pruned());
        tracing::info!(key = %ctx.key(), generation, written, pruned, "applied the children");
        let note = format!("Applied {written} objects for generation {generation}");
        ctx.event(Event::normal("Applied", note));
    }
    Ok(())
}

/// Restarts a server that does not run the current template: OnDelete leaves that to us.
async fn restart(db: &Database, ctx: &Context<Database>, seen: &Observed) -> Result<(), Error> {
    let Some(set) = &seen.set else { return Ok(()) };
    let known =
        set.status.as_ref().is_some_and(|status| status.observed_generation >= set.metadata.generation);
    for pod in seen.pods.iter().filter(|_| known) {
        if pods::is_active(pod) && !status::runs_current(set, pod) {
            ctx.delete(&**pod).await.map_err(Error::Restart)?;
            let note = format!("Restarting the server {} for a new configuration", pod.name_any());
            tracing::info!(key = %ObjectKey::of(db), pod = pod.name_any(), "restarting the server");
            ctx.event(Event::normal("Restarting", note));
        }
    }
    Ok(())
}

/// What is there, from the cache.
pub(super) fn look(db: &Database, ctx: &Context<Database>) -> Result<Observed, Error> {
    let namespace = db.namespace();
    let (uid, name) = (db.uid().unwrap_or_default(), db.name_any());
    let jobs = ctx.list::<Job>(namespace.as_deref()).map_err(Error::Read)?;
    let is_ours = |job: &Arc<Job>| job.labels().get(build::NAME) == Some(&name);
    let backups = ctx.list::<DatabaseBackup>(namespace.as_deref()).map_err(Error::Read)?;
    let schedules = ctx.owned::<CronJob>().map_err(Error::Read)?;
    Ok(Observed {
        set: current_set(db, ctx)?,
        claim: ctx.get(namespace.as_deref(), &build::data_claim(db)).map_err(Error::Read)?,
        pods: ctx.indexed::<Pod>(build::UID, &uid).map_err(Error::Read)?,
        schedule: schedules.into_iter().next(),
        jobs: jobs.into_iter().filter(is_ours).collect(),
        backups: backups.into_iter().filter(|backup| backup.spec.database_ref.name == name).collect(),
        credentials: None,
        problem: None,
        refusal: None,
        waiting: None,
    })
}

pub(super) async fn tell(db: &Database, ctx: &Context<Database>, seen: &Observed) -> Result<(), Error> {
    let new = status::observed(db, seen, ctx.now());
    report(db, ctx, new, ready_event).await.map_err(Error::UpdateStatus)
}
