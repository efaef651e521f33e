//! One run of an operator: start order, supervision, drain.

use std::{collections::BTreeSet, future::Future, pin::Pin, sync::Arc, time::Duration};

use kube::Client;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::Operator;
use crate::{
    cache::{Caches, Watched},
    controller::Start,
    events::Recorder,
};

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
    /// A kind could not be listed in time.
    #[error("failed to list {kind} within {limit:?}: {reason}")]
    NotSynced {
        /// The kind.
        kind: String,
        /// The limit.
        limit: Duration,
        /// What the API server last said.
        reason: String,
    },
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

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Named tasks, none of which may end before the run does.
#[derive(Default)]
struct Tasks {
    set: JoinSet<String>,
    names: std::collections::BTreeMap<tokio::task::Id, String>,
}

impl Tasks {
    fn spawn(&mut self, name: String, task: Task) {
        let returned = name.clone();
        let handle = self.set.spawn(async move {
            task.await;
            returned
        });
        self.names.insert(handle.id(), name);
    }

    /// Waits for the first task to end, which is an error.
    async fn ended(&mut self) -> RunError {
        match self.set.join_next().await {
            None => std::future::pending().await,
            Some(Ok(task)) => RunError::TaskEnded { task, reason: "it returned".into() },
            Some(Err(error)) => RunError::TaskEnded {
                task: self.names.get(&error.id()).cloned().unwrap_or_default(),
                reason: error.to_string(),
            },
        }
    }

    /// Waits for all of them to end.
    async fn joined(&mut self) {
        while self.set.join_next().await.is_some() {}
    }
}

pub(super) async fn run(
    operator: Operator,
    client: Client,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    check_names(&operator)?;
    let field_manager: Arc<str> =
        operator.field_manager.clone().unwrap_or_else(|| operator.name.clone()).into();
    let (recorder, outbox) = Recorder::new(operator.name.as_str().into());
    let mut caches = Caches::new(field_manager.clone());
    let mut prepared = Vec::new();
    for controller in operator.controllers {
        let name = controller.name().to_owned();
        let mut start = Start {
            caches: &mut caches,
            client: &client,
            clock: &operator.clock,
            field_manager: &field_manager,
            recorder: &recorder,
            metrics: &operator.metrics,
        };
        let ready =
            controller.prepare(&mut start).map_err(|source| RunError::Setup { controller: name, source })?;
        prepared.push(ready);
    }
    drop(recorder);

    let mut background = Tasks::default();
    let events = outbox.run(client.clone(), operator.clock.clone(), operator.name.clone());
    let events = tokio::spawn(events);
    for watch in caches.watches() {
        background.spawn(format!("watch of {}", watch.kind()), watch.run(client.clone()));
    }
    let mut shutdown = std::pin::pin!(shutdown);
    tokio::select! {
        () = &mut shutdown => return Ok(()),
        error = background.ended() => return Err(error),
        synced = synced(caches.watches(), operator.sync_timeout) => synced?,
    }
    tracing::info!(operator = operator.name, "caches are filled, starting work");

    let stop = CancellationToken::new();
    let mut workers = Tasks::default();
    for controller in prepared {
        for task in controller.tasks {
            // A stream of outside events may end by itself.
            let stop = stop.clone();
            workers.spawn(
                format!("stream of {}", controller.name),
                Box::pin(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = async { task.await; std::future::pending().await } => {}
                    }
                }),
            );
        }
        workers.spawn(format!("controller {}", controller.name), (controller.work)(stop.clone()));
    }
    let result = tokio::select! {
        () = &mut shutdown => Ok(()),
        error = background.ended() => Err(error),
        error = workers.ended() => Err(error),
    };
    stop.cancel();
    let drained = tokio::time::timeout(operator.drain, workers.joined()).await;
    drop(workers);
    drop(caches);
    drop(background);
    // The last recorder is gone with the workers and the caches: the events that are left are sent, and it ends.
    let _ = tokio::time::timeout(Duration::from_secs(5), events).await;
    match (result, drained) {
        (Ok(()), Err(_)) => Err(RunError::NotDrained { limit: operator.drain }),
        (result, _) => result,
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

/// Waits until every watch has received its first list.
async fn synced(watches: &[Arc<dyn Watched>], limit: Duration) -> Result<(), RunError> {
    let deadline = Instant::now() + limit;
    for watch in watches {
        let mut health = watch.health();
        let synced = async { health.wait_for(|health| health.synced).await.is_ok() };
        if !matches!(tokio::time::timeout_at(deadline, synced).await, Ok(true)) {
            let reason = health.borrow().failure.clone();
            return Err(RunError::NotSynced {
                kind: watch.kind().to_string(),
                limit,
                reason: reason.unwrap_or_else(|| "the API server has not answered".into()),
            });
        }
    }
    Ok(())
}
