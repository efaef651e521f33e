//! One run of an operator: start order, supervision, drain.
//!
//! Caches are filled first; then, if there is an election, this replica waits to lead; then the workers start.
//! From then on the run ends when the shutdown is asked for, when the lease is lost, or when a task ends that
//! should not. Every task is joined before the run returns.

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Handle, Operator, Probes,
    tasks::{Task, Tasks},
};
use crate::{
    apply::FieldManager,
    cache::{Caches, Health, Link, Seen},
    clock::Clock,
    controller::{Prepared, Start},
    events::Recorder,
    leader::{Elector, LeaderElection, LeaderError},
    metrics::Metrics,
    queue::later::later,
    webhook::{self, ServeError, Serving, Surroundings},
};

/// How long events that are still unsent may hold up the end.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Why an operator stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Two controllers have the same name.
    #[error("failed to start: two controllers are named {0:?}; give one another name with .name(..)")]
    DuplicateController(String),
    /// A controller's declarations contradict each other.
    #[error("failed to set up controller {controller:?}")]
    Setup {
        /// The controller.
        controller: String,
        /// What is wrong.
        #[source]
        source: crate::Error,
    },
    /// A kind could not be listed.
    #[error("failed to list {kind}: {reason}{}", after(*waited))]
    NotSynced {
        /// The kind.
        kind: String,
        /// How long that was tried.
        waited: Duration,
        /// What the API server last said.
        reason: String,
    },
    /// The lease was lost: another replica may be leading.
    #[error(transparent)]
    Leader(#[from] LeaderError),
    /// The webhooks cannot be served.
    #[error(transparent)]
    Webhooks(#[from] ServeError),
    /// A task ended that should not have.
    #[error("failed to keep running: {task} ended ({reason})")]
    TaskEnded {
        /// The task.
        task: String,
        /// How it ended.
        reason: String,
    },
    /// Running reconciles did not end in time.
    #[error("failed to shut down cleanly: reconciles were still running after {limit:?}")]
    NotDrained {
        /// The limit.
        limit: Duration,
    },
}

/// How long something was tried, if that is worth telling.
fn after(waited: Duration) -> String {
    match waited.as_secs() {
        0 => String::new(),
        seconds => format!(" (tried for {seconds} s)"),
    }
}

/// Runs an operator. Boxed, and for no particular future: so it is compiled here, once, and not again by every crate
/// that runs an operator.
pub(super) fn run(
    operator: Operator,
    client: Client,
    shutdown: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<(), RunError>> {
    Box::pin(run_until(operator, client, shutdown))
}

async fn run_until(
    mut operator: Operator,
    client: Client,
    shutdown: BoxFuture<'_, ()>,
) -> Result<(), RunError> {
    check_names(&operator)?;
    let in_process = operator.in_process;
    let client = if in_process { crate::in_process(client) } else { client };
    operator.leader.as_ref().map_or(Ok(()), LeaderElection::check)?;
    let settings = Settings {
        drain: operator.drain,
        sync_timeout: operator.sync_timeout,
        impatient: operator.impatient,
        dry_run: operator.dry_run,
        // A lease is written.
        leader: operator.leader.clone().filter(|_| !operator.dry_run),
        clock: operator.clock.clone(),
        probes: operator.probes.clone(),
        handle: operator.handle.clone(),
        metrics: operator.metrics.clone(),
        client: client.clone(),
    };
    let name = operator.name.clone();
    // Before the caches: the API server may need a conversion to answer their first list.
    let mut serving = serve(&mut operator, &client).await?;
    let mut background = Tasks::default();
    for (name, task) in serving.iter_mut().flat_map(|serving| std::mem::take(&mut serving.tasks)) {
        background.spawn(name, task);
    }
    let manager = operator.field_manager.clone().unwrap_or_else(|| name.clone());
    let manager = Arc::new(FieldManager::new(manager, operator.former_field_managers.clone()));
    let caches = Caches::new(manager.clone(), operator.transforms.clone());
    let (recorder, outbox) = Recorder::new(name.as_str().into());
    let prepared = prepare(operator, &client, &caches, &recorder, &manager)?;
    // From here on only the controllers hold recorders: the outbox ends when they have.
    drop(recorder);
    settings.probes.started(caches.downgrade());
    settings.metrics.caches(caches.downgrade());
    // Whoever embeds an operator decides about its memory; a program of its own should know.
    if settings.impatient {
        warn_of_wide_watches(&caches);
    }

    background
        .spawn("the watches".to_owned(), Box::pin(caches.run(Link { client: client.clone(), in_process })));
    let sending: Task = if settings.dry_run {
        Box::pin(outbox.log())
    } else {
        Box::pin(outbox.run(client, settings.clock.clone(), name))
    };
    let sending = tokio::spawn(sending);
    let result = supervise(&settings, &caches, prepared, &mut background, shutdown).await;
    settings.probes.stopping();
    if let Some(serving) = serving {
        serving.finish().await;
    }
    background.stop().await;
    drop(caches);
    if tokio::time::timeout(LAST_EVENTS, sending).await.is_err() {
        tracing::warn!("some events were not sent in time");
    }
    result
}

/// Prepares the webhook server, if there is something to serve and somewhere to serve it.
async fn serve(operator: &mut Operator, client: &Client) -> Result<Option<Serving>, RunError> {
    if let Some(path) = operator.webhooks.collision() {
        return Err(ServeError::Collision(path).into());
    }
    let hooks = std::mem::take(&mut operator.webhooks);
    // Whoever serves webhooks writes certificates and configurations.
    if hooks.is_empty() || operator.dry_run {
        return Ok(None);
    }
    let surroundings = Surroundings {
        operator: operator.name.clone(),
        client: client.clone(),
        clock: operator.clock.clone(),
        metrics: operator.metrics.clone(),
        handle: operator.handle.clone(),
        in_process: operator.in_process,
        connections: operator.webhook_connections.take(),
    };
    let server = operator.webhook_server.take();
    // Whoever embeds an operator without a server leaves the cluster alone; a program of its own clears up.
    let local = server.as_ref().is_some_and(|server| matches!(server.reach, webhook::Reach::Url(_)));
    if operator.impatient && !local {
        Serving::repair(&hooks, &surroundings, client.default_namespace()).await;
    }
    let Some(server) = server else { return Ok(None) };
    let serving = Serving::prepare(server, hooks, surroundings).await?;
    operator.probes.add("webhook", serving.failure.clone());
    Ok(Some(serving))
}

/// What a run needs to know once its controllers are prepared.
struct Settings {
    drain: Duration,
    sync_timeout: Duration,
    impatient: bool,
    dry_run: bool,
    leader: Option<LeaderElection>,
    clock: Arc<dyn Clock>,
    probes: Probes,
    handle: Handle,
    metrics: Metrics,
    client: Client,
}

/// Leads until the shutdown, or until a background task ends; either way what runs may finish.
async fn supervise(
    settings: &Settings,
    caches: &Caches,
    prepared: Vec<Prepared>,
    background: &mut Tasks,
    shutdown: BoxFuture<'_, ()>,
) -> Result<(), RunError> {
    let stop = CancellationToken::new();
    let mut leading = std::pin::pin!(lead(settings, caches, prepared, &stop));
    let cause = tokio::select! {
        () = shutdown => Ok(()),
        error = background.ended() => Err(error),
        result = &mut leading => return result,
    };
    settings.probes.stopping();
    stop.cancel();
    let ended = leading.await;
    cause.and(ended)
}

fn check_names(operator: &Operator) -> Result<(), RunError> {
    let mut seen = BTreeSet::new();
    for controller in &operator.controllers {
        if !seen.insert(controller.name()) {
            return Err(RunError::DuplicateController(controller.name().to_owned()));
        }
    }
    Ok(())
}

fn prepare(
    operator: Operator,
    client: &Client,
    caches: &Caches,
    recorder: &Recorder,
    field_manager: &Arc<FieldManager>,
) -> Result<Vec<Prepared>, RunError> {
    let mut prepared = Vec::new();
    let controllers: Arc<[String]> =
        operator.controllers.iter().map(|controller| controller.name().to_owned()).collect();
    for controller in operator.controllers {
        let name = controller.name().to_owned();
        let start = Start {
            caches,
            client,
            clock: &operator.clock,
            field_manager,
            controllers: &controllers,
            recorder,
            metrics: &operator.metrics,
            handle: &operator.handle,
            namespaces: &operator.namespaces,
            dry_run: operator.dry_run,
        };
        let ready = controller.prepare(&start);
        let ready = ready.map_err(|source| RunError::Setup { controller: name, source })?;
        operator.handle.add(&ready.load);
        prepared.push(ready);
    }
    Ok(prepared)
}

/// Fills the caches, waits to lead, works.
async fn lead(
    settings: &Settings,
    caches: &Caches,
    prepared: Vec<Prepared>,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    let watches = caches.watches();
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        synced = synced(&watches, settings.sync_timeout, settings.impatient) => synced?,
    }
    settings.handle.synced();
    let Some(config) = settings.leader.clone() else {
        return work(prepared, settings.drain, stop, std::future::pending()).await;
    };
    let (client, clock) = (settings.client.clone(), settings.clock.clone());
    let mut elector = Elector::new(config, client, clock, settings.metrics.clone());
    tokio::select! {
        () = stop.cancelled() => {
            elector.release().await;
            return Ok(());
        }
        acquired = elector.acquire(settings.impatient) => acquired?,
    }
    settings.metrics.leading(elector.lease(), true);
    let result = work(prepared, settings.drain, stop, elector.keep()).await;
    settings.metrics.leading(elector.lease(), false);
    if !matches!(result, Err(RunError::Leader(_))) {
        elector.release().await;
    }
    result
}

/// Runs the controllers until the shutdown or the loss of the lease.
async fn work(
    prepared: Vec<Prepared>,
    drain: Duration,
    shutdown: &CancellationToken,
    lost: impl Future<Output = LeaderError> + Send,
) -> Result<(), RunError> {
    let stop = CancellationToken::new();
    let mut workers = Tasks::default();
    for controller in prepared {
        tracing::info!(controller = %controller.name, "starting");
        for task in controller.tasks {
            // A stream of outside events may end by itself; that ends nothing else.
            let stop = stop.clone();
            let task = async move {
                tokio::join!(task, stop.cancelled());
            };
            workers.spawn(format!("stream of {}", controller.name), Box::pin(task));
        }
        workers.spawn(format!("controller {}", controller.name), (controller.work)(stop.clone()));
    }
    let mut lost = std::pin::pin!(lost);
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        error = workers.ended() => Err(error),
        error = &mut lost => {
            // Another replica may work soon: nothing here may finish what it began.
            workers.stop().await;
            return Err(error.into());
        }
    };
    stop.cancel();
    // The lease is kept until the last run has ended.
    let drained = tokio::select! {
        () = workers.joined() => Ok(()),
        () = tokio::time::sleep(drain) => Err(RunError::NotDrained { limit: drain }),
        error = lost => Err(error.into()),
    };
    workers.stop().await;
    result.and(drained)
}

/// Waits until every watch has received its first list, or can do without.
async fn synced(watches: &[Seen], limit: Duration, impatient: bool) -> Result<(), RunError> {
    let started = Instant::now();
    for Seen { watch, optional } in watches {
        let mut health = watch.health();
        let synced = |health: &Health| health.is_synced() || (*optional && health.is_absent());
        let settled = health.wait_for(|health| synced(health) || (impatient && health.is_refused()));
        let settled = tokio::time::timeout_at(later(started, limit), settled).await;
        let is_synced = matches!(&settled, Ok(Ok(health)) if synced(health));
        drop(settled);
        if !is_synced {
            let reason = health.borrow().failure().map(|failure| failure.text.clone());
            let reason = reason.unwrap_or_else(|| "the API server has not answered".into());
            // The error says itself what failed.
            let reason = reason.strip_prefix("failed to list: ").unwrap_or(&reason).to_owned();
            let (kind, waited) = (watch.kind().to_string(), started.elapsed());
            return Err(RunError::NotSynced { kind, waited, reason });
        }
    }
    Ok(())
}

/// Kinds that are many and large in most clusters, and that an operator rarely needs all of.
fn warn_of_wide_watches(caches: &Caches) {
    for Seen { watch, .. } in caches.watches() {
        let kind = watch.kind();
        let large = kind.group.is_empty() && ["Secret", "ConfigMap"].contains(&kind.kind.as_str());
        if large && watch.is_unscoped() {
            tracing::warn!(
                %kind,
                "caching every {} of the cluster; narrow the watch by labels, fields or namespaces, \
                 or watch PartialObjectMeta<{}>", kind.kind, kind.kind
            );
        }
    }
}
