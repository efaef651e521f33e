//! One run of an operator: start order, supervision, drain.
//!
//! What the author wants to be set up is set up first, then the caches are filled; then, if there is an election,
//! this replica waits to lead; then the workers start. From then on the run ends when the shutdown is asked for, or
//! when a task ends that should not. Every task is joined before the run returns.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use tokio_util::sync::CancellationToken;

use self::sync::Waiting;
use super::{
    Operator, Probes, task,
    tasks::{Task, Tasks},
};
use crate::{
    cache::{Caches, Link, WatchEntry},
    clock::Clock,
    controller::{Prepared, Start, Stop},
    error::chain,
    events::Recorder,
    handle::Handle,
    leader::{LeaderElection, LeaderError},
    metrics::Metrics,
    webhook::{self, ServeError, Serving, Surroundings},
    wire::FieldManager,
};

mod lead;
mod sync;

/// How long the first lists may take.
const SYNC: Duration = Duration::from_mins(2);
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
    /// The API server is older than [`Operator::kubernetes_at_least`] says.
    #[error(
        "failed to start: the API server is Kubernetes {found}, and this operator needs 1.{needed} or newer"
    )]
    TooOld {
        /// The version of the API server.
        found: String,
        /// The minor version that is needed.
        needed: u32,
    },
    /// What [`Operator::setup`] was given failed.
    #[error("failed to set up: {0}")]
    SetupFailed(String),
    /// A kind could not be listed.
    #[error("failed to fill the cache of {kind}: {reason}{}", after(*waited))]
    NotSynced {
        /// The kind.
        kind: String,
        /// How long that was tried.
        waited: Duration,
        /// What the API server last said.
        reason: String,
        /// What kind of answer that was.
        cause: NotSynced,
    },
    /// The lease cannot be had.
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
    /// The lease was lost, and what was running did not stop in time.
    #[error(
        "failed to stop working when the lease was lost: a reconcile or a task was still running after {limit:?}; \
         does it block its thread?"
    )]
    NotFenced {
        /// The limit.
        limit: Duration,
    },
    /// Running reconciles did not end in time.
    #[error("failed to shut down cleanly: reconciles were still running after {limit:?}")]
    NotDrained {
        /// The limit.
        limit: Duration,
    },
}

/// Why a kind could not be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSynced {
    /// The operator may not list it.
    Forbidden,
    /// The API server does not serve it.
    NotServed,
    /// The API server could not be reached, or failed.
    Unanswered,
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
    let (in_process, debugging) = (operator.in_process, operator.debugging);
    if debugging {
        operator.take_time();
    }
    let client = if in_process { crate::in_process(client) } else { client };
    operator.leader.as_ref().map_or(Ok(()), LeaderElection::check)?;
    let settings = Settings {
        drain: operator.drain,
        waiting: Waiting {
            limit: operator.sync_timeout.or((!operator.alone).then_some(SYNC)).filter(|_| !debugging),
            alone: operator.alone,
        },
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
    if operator.kubernetes.is_some()
        && let Ok(version) = client.apiserver_version().await
    {
        operator.check_version(&version)?;
    }
    set_up(&mut operator, &client).await?;
    // Before the caches: the API server may need a conversion to answer their first list.
    let manager = operator.field_manager.clone().unwrap_or_else(|| name.clone());
    let manager = Arc::new(FieldManager::new(manager, operator.former_field_managers.clone()));
    let caches = Caches::new(manager.clone(), operator.transforms.clone());
    let mut serving = serve(&mut operator, &client, &caches).await?;
    let mut background = Tasks::default();
    for (name, task) in serving.iter_mut().flat_map(|serving| std::mem::take(&mut serving.tasks)) {
        background.spawn(name, task);
    }
    if operator.dry_run && !operator.tasks.is_empty() {
        tracing::info!("dry run: tasks are left out");
        operator.tasks.clear();
    }
    let (everywhere, leading) =
        std::mem::take(&mut operator.tasks).into_iter().partition(|task| task.everywhere);
    let (recorder, outbox) = Recorder::new(name.as_str().into());
    let prepared = prepare(operator, &client, &caches, &recorder, &manager)?;
    // From here on only the controllers hold recorders: the outbox ends when they have.
    drop(recorder);
    settings.probes.started(caches.downgrade());
    settings.metrics.caches(caches.downgrade());
    // Whoever embeds an operator decides about its memory; a program of its own should know.
    if settings.waiting.alone {
        warn_of_wide_watches(&caches);
    }

    background.spawn(
        "the watches".to_owned(),
        Box::pin(caches.run(Link { client: client.clone(), in_process, debugging })),
    );
    let sending: Task = if settings.dry_run {
        Box::pin(outbox.log())
    } else {
        Box::pin(outbox.run(client, settings.clock.clone(), name))
    };
    let sending = tokio::spawn(sending);
    let stop = Stop::default();
    let everywhere: Vec<task::Task> = everywhere;
    let mut lasting = Tasks::default();
    for task in everywhere {
        let name = format!("task {}", task.name);
        lasting.spawn_fallible(name, task.run(settings.client.clone(), stop.clone()));
    }
    let crew = (prepared, leading);
    let mut supervised = Supervised { background: &mut background, lasting: &mut lasting, stop: &stop };
    let result = supervised.run(&settings, &caches, crew, shutdown).await;
    settings.probes.stopping();
    if let Some(serving) = serving {
        serving.finish().await;
    }
    background.stop().await;
    lasting.stop().await;
    drop(caches);
    if tokio::time::timeout(LAST_EVENTS, sending).await.is_err() {
        tracing::warn!("some events were not sent in time");
    }
    result
}

impl Operator {
    /// Refuses a Kubernetes that is too old. One that does not tell its version in numbers is none.
    pub(super) fn check_version(&self, version: &Info) -> Result<(), RunError> {
        let digits = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text[..end].parse::<u32>().ok()
        };
        match (self.kubernetes, digits(&version.major), digits(&version.minor)) {
            (Some(needed), Some(major), Some(minor)) if (major, minor) < (1, needed) => {
                Err(RunError::TooOld { found: version.git_version.clone(), needed })
            }
            _ => Ok(()),
        }
    }
}

/// Prepares the webhook server, if there is something to serve and somewhere to serve it.
async fn serve(
    operator: &mut Operator,
    client: &Client,
    caches: &Caches,
) -> Result<Option<Serving>, RunError> {
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
        caches: caches.clone(),
        namespaces: operator.watched_namespaces().into_iter().flatten().collect(),
        handle: operator.handle.clone(),
        in_process: operator.in_process,
        connections: operator.webhook_connections.take(),
        delay: operator.shutdown_delay,
    };
    let server = operator.webhook_server.take();
    // Whoever embeds an operator without a server leaves the cluster alone; a program of its own clears up.
    let local = server.as_ref().is_some_and(|server| matches!(server.reach, webhook::Reach::Url(_)));
    if operator.alone && !local {
        Serving::repair(&hooks, &surroundings, client.default_namespace()).await;
    }
    let Some(server) = server else { return Ok(None) };
    let serving = Serving::prepare(server, hooks, surroundings).await?;
    let failure = serving.failure.clone();
    operator.probes.add("webhook", move || failure.borrow().clone());
    Ok(Some(serving))
}

/// Calls what the author wants to be set up, in order.
async fn set_up(operator: &mut Operator, client: &Client) -> Result<(), RunError> {
    for setup in std::mem::take(&mut operator.setups) {
        if operator.dry_run {
            tracing::info!("dry run: would set up");
            continue;
        }
        setup(client.clone()).await.map_err(|error| RunError::SetupFailed(chain(&*error)))?;
    }
    Ok(())
}

/// What a run needs to know once its controllers are prepared.
struct Settings {
    drain: Duration,
    waiting: Waiting,
    dry_run: bool,
    leader: Option<LeaderElection>,
    clock: Arc<dyn Clock>,
    probes: Probes,
    handle: Handle,
    metrics: Metrics,
    client: Client,
}

/// What runs beside the controllers, whoever leads.
struct Supervised<'a> {
    background: &'a mut Tasks,
    /// Tasks of the author's.
    lasting: &'a mut Tasks,
    stop: &'a Stop,
}

impl Supervised<'_> {
    /// Leads until the shutdown, or until a background task ends; either way what runs may finish.
    async fn run(
        &mut self,
        settings: &Settings,
        caches: &Caches,
        (prepared, tasks): (Vec<Prepared>, Vec<task::Task>),
        shutdown: BoxFuture<'_, ()>,
    ) -> Result<(), RunError> {
        let stop = CancellationToken::new();
        let mut leading = std::pin::pin!(lead::lead(settings, caches, prepared, tasks, &stop));
        let cause = tokio::select! {
            // In this order everywhere, so that a run can be repeated.
            biased;
            () = shutdown => Ok(()),
            error = self.background.ended() => Err(error),
            error = self.lasting.ended() => Err(error),
            result = &mut leading => return result,
        };
        settings.probes.stopping();
        stop.cancel();
        self.stop.drain.cancel();
        let limit = settings.drain;
        let drained = async {
            let drained = tokio::time::timeout(limit, self.lasting.joined()).await;
            drained.map_err(|_| RunError::NotDrained { limit })
        };
        let (ended, drained) = tokio::join!(leading, drained);
        cause.and(ended).and(drained)
    }
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
            debugging: operator.debugging,
        };
        let ready = controller.prepare(&start);
        let ready = ready.map_err(|source| RunError::Setup { controller: name, source })?;
        operator.handle.add(&ready.load);
        operator.probes.watch_workers(ready.health.clone());
        prepared.push(ready);
    }
    Ok(prepared)
}

/// Kinds that are many and large in most clusters, and that an operator rarely needs all of.
fn warn_of_wide_watches(caches: &Caches) {
    for WatchEntry { watch, .. } in caches.watches() {
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
