//! Work of an operator beside its controllers: what runs before them, and what runs next to them.

use std::{error::Error as StdError, fmt, future::Future, sync::Arc};

use futures::future::BoxFuture;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::{controller::Stop, error::chain};

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;
pub(super) type Setup = Box<dyn FnOnce(Client) -> BoxFuture<'static, Result<(), BoxError>> + Send>;
type Body = Arc<dyn Fn(TaskContext) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A background task of an operator: work that no object calls for, such as a report every hour.
///
/// ```no_run
/// use std::time::Duration;
/// use windlass::{AnyError, Operator, Task};
///
/// let report = Task::new("report", |ctx| async move {
///     while ctx.sleep(Duration::from_hours(1)).await {
///         let version = ctx.client().apiserver_version().await?;
///         tracing::info!(version.git_version, "still here");
///     }
///     Ok::<_, windlass::Error>(())
/// });
/// let operator = Operator::new("my-operator").task(report);
/// ```
///
/// # Guarantees
///
/// - It runs while this replica leads, as reconcilers do, or [always](Self::on_every_replica). A task of a leader that
///   loses its lease is cut off at its next `await`, and begins anew should this replica lead again.
/// - An error or a panic ends the operator, and with it the process. A task that returns `Ok` is done.
/// - At a shutdown it is waited for as long as for running reconciles.
#[derive(Clone)]
pub struct Task {
    pub(super) name: String,
    pub(super) everywhere: bool,
    body: Body,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, everywhere, .. } = self;
        f.debug_struct("Task").field("name", name).field("everywhere", everywhere).finish_non_exhaustive()
    }
}

impl Task {
    /// A task that runs while this replica leads, or from the start without leader election.
    pub fn new<F, E>(name: impl Into<String>, body: impl Fn(TaskContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let body = Arc::new(move |ctx| {
            let run = body(ctx);
            Box::pin(async move { run.await.map_err(Into::into) }) as BoxFuture<'static, _>
        });
        Self { name: name.into(), everywhere: false, body }
    }

    /// Runs it on every replica, whoever leads, from when the caches begin to fill.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Runs it until it is told to stop. Why it failed, if it did before that.
    pub(super) async fn run(self, client: Client, stop: Stop) -> Result<(), String> {
        let drain = stop.drain.clone();
        let run = async {
            let ended = (self.body)(TaskContext { client, stop: drain.clone() }).await;
            ended.map_err(|error| chain(&*error))?;
            // Who is done waits for the others.
            drain.cancelled().await;
            Ok(())
        };
        tokio::select! {
            biased;
            () = stop.fence.cancelled() => Ok(()),
            ended = run => ended,
        }
    }
}

/// What a [`Task`] is given.
#[derive(Clone)]
pub struct TaskContext {
    client: Client,
    stop: CancellationToken,
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext").field("stopping", &self.stop.is_cancelled()).finish_non_exhaustive()
    }
}

impl TaskContext {
    /// The operator's client. Its requests have deadlines and are counted.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the operator shuts down.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Resolves when the operator shuts down.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// Waits; less if the operator shuts down meanwhile. Returns whether to go on.
    pub async fn sleep(&self, time: std::time::Duration) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}
