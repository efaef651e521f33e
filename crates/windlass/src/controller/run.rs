//! The loop: workers take keys, run the reconciler in isolation, and tell the queue how it went.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use futures::FutureExt;
use kube::{Client, Resource};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Controller, Load, Owned, Setup, Watches, setup::Wiring};
use crate::{
    apply::{FieldManager, Recall},
    cache::{Caches, Reader, Seen, Store},
    clock::Clock,
    context::{Context, Shared},
    error::{AsError, Error, ReconcileError, Result, chain},
    events::{Event, Recorder},
    isolation::panic_text,
    metrics::{ControllerMetrics, Metrics, Verdict},
    object::{AnyObject, ObjectKey},
    operator::Handle,
    queue::{Outcome, Queue},
    rbac::{Access, Permit},
    reconciler::{Action, Reconciler},
};

/// An object with this annotation set to `true` is left alone.
pub const PAUSED: &str = "windlass.dev/paused";

/// What an operator gives its controllers to start with.
pub(crate) struct Start<'a> {
    pub(crate) caches: &'a Caches,
    pub(crate) client: &'a Client,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) field_manager: &'a Arc<FieldManager>,
    /// The names of all controllers of the operator.
    pub(crate) controllers: &'a Arc<[String]>,
    pub(crate) recorder: &'a Recorder,
    pub(crate) metrics: &'a Metrics,
    /// Who hears of every run.
    pub(crate) handle: &'a Handle,
    /// The namespaces of controllers that name none.
    pub(crate) namespaces: &'a [String],
    /// Log what would be written instead of writing it.
    pub(crate) dry_run: bool,
}

pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A controller that is wired up and waits for its caches.
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    /// Tasks beside the workers, such as external streams.
    pub(crate) tasks: Vec<Task>,
    pub(crate) load: Arc<dyn Load>,
    /// The watches without which it does not begin.
    pub(crate) needs: Vec<Seen>,
    /// Runs the workers until they are told to end. Once they were fenced this may be called again.
    pub(crate) work: Box<dyn Fn(Stop) -> Task + Send + Sync>,
}

/// The two ways in which workers are told to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    /// What runs may finish.
    pub(crate) drain: CancellationToken,
    /// Nothing may finish what it began: another replica may work soon. What was cut off is run again, should this
    /// replica work again.
    pub(crate) fence: CancellationToken,
}

/// A controller of any kind, as the operator sees it.
pub(crate) trait Runnable: Send {
    fn name(&self) -> &str;
    fn namespaces(&self) -> &[String];
    fn set_concurrency(&mut self, workers: usize);
    fn access(&self) -> (&[Access], &[Permit]);
    fn prepare(self: Box<Self>, start: &Start<'_>) -> Result<Prepared>;
}

impl<C: Reconciler> Runnable for Controller<C> {
    fn name(&self) -> &str {
        &self.name
    }

    fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    fn set_concurrency(&mut self, workers: usize) {
        self.concurrency = workers.max(1);
    }

    fn access(&self) -> (&[Access], &[Permit]) {
        (&self.access, &self.permits)
    }

    fn prepare(self: Box<Self>, start: &Start<'_>) -> Result<Prepared> {
        let name: Arc<str> = self.name.as_str().into();
        let queue = Arc::new(Queue::new(self.pace));
        let metrics = start.metrics.controller(&name, self.concurrency, &queue);
        let wiring = Arc::new(Wiring {
            caches: start.caches.clone(),
            controller: name.clone(),
            kind: self.primary.kind.clone(),
            namespaces: if self.namespaces.is_empty() { start.namespaces.to_vec() } else { self.namespaces },
            queue: queue.clone(),
            metrics: metrics.clone(),
            reader: Reader::new(name.clone()),
            owned: Owned::default(),
            reconciled: OnceLock::new(),
            needs: Mutex::new(Some(Vec::new())),
        });
        let store = wiring.store(&self.primary)?;
        let _ = wiring.reconciled.set(store.clone());
        wiring.subscribe_reconciled(&store, self.primary.filter);
        let mut setup = Setup { wiring: wiring.clone(), indexes: Vec::new(), tasks: Vec::new() };
        for source in self.sources {
            source(&mut setup)?;
        }
        let Setup { indexes, tasks, .. } = setup;
        for index in indexes {
            index(&wiring.reader)?;
        }
        let shared = Arc::new(Shared {
            controller: name.clone(),
            field_manager: start.field_manager.clone(),
            controllers: start.controllers.clone(),
            recall: Recall::default(),
            status_recall: Recall::default(),
            client: start.client.clone(),
            clock: start.clock.clone(),
            reader: wiring.reader.clone(),
            recorder: start.recorder.named(name.clone()),
            owned: wiring.owned.clone(),
            dry_run: start.dry_run,
        });
        let worker = Arc::new(Worker {
            reconciler: self.reconciler,
            shared,
            watches: Watches::new(wiring.clone()),
            store,
            queue,
            metrics,
            handle: start.handle.clone(),
            timeout: self.timeout,
            resync: self.resync,
        });
        let concurrency = self.concurrency;
        Ok(Prepared {
            name,
            tasks,
            needs: wiring.take_needs(),
            load: wiring,
            work: Box::new(move |stop| Box::pin(work(worker.clone(), concurrency, stop))),
        })
    }
}

/// Runs the workers until they are told to end, and returns when the last of them has.
async fn work<C: Reconciler>(worker: Arc<Worker<C>>, concurrency: usize, stop: Stop) {
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let worker = worker.clone();
        workers.spawn(async move { worker.run().await });
    }
    tokio::select! {
        () = stop.drain.cancelled() => {}
        () = stop.fence.cancelled() => return workers.shutdown().await,
        // Workers do not end by themselves: the controller ends, and the operator reports it.
        _ = workers.join_next() => tracing::error!(controller = %worker.shared.controller, "a worker ended"),
    }
    worker.queue.close();
    loop {
        let joined = tokio::select! {
            joined = workers.join_next() => joined,
            () = stop.fence.cancelled() => return workers.shutdown().await,
        };
        match joined {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::error!(controller = %worker.shared.controller, %error, "a worker died");
            }
        }
    }
}

/// A run that may be cut off: then its key goes back into the queue.
struct Run<'a, C: Reconciler> {
    worker: &'a Worker<C>,
    key: &'a ObjectKey,
    ended: bool,
}

impl<C: Reconciler> Drop for Run<'_, C> {
    fn drop(&mut self) {
        if !self.ended {
            self.worker.queue.finish(self.key, Outcome::Failed);
            self.worker.metrics.abandoned();
        }
    }
}

struct Worker<C: Reconciler> {
    reconciler: Arc<C>,
    shared: Arc<Shared>,
    watches: Watches<C::Resource>,
    store: Arc<Store<C::Resource>>,
    queue: Arc<Queue<ObjectKey>>,
    metrics: ControllerMetrics,
    handle: Handle,
    timeout: Option<Duration>,
    resync: Option<Duration>,
}

/// How one run ended.
enum Ended<E> {
    Finished(Result<Action, E>),
    /// The run has succeeded, but the detached children could not be deleted.
    NotReleased(Error),
    Panicked(String),
    TimedOut(Duration),
}

/// What follows from the end of a run.
struct Judged {
    outcome: Outcome,
    verdict: Verdict,
    /// A reason and a message, if it failed.
    failure: Option<(&'static str, String)>,
}

impl Judged {
    fn fine(outcome: Outcome, verdict: Verdict) -> Self {
        Self { outcome, verdict, failure: None }
    }

    fn failed(outcome: Outcome, verdict: Verdict, reason: &'static str, message: String) -> Self {
        Self { outcome, verdict, failure: Some((reason, message)) }
    }
}

impl<C: Reconciler> Worker<C> {
    async fn run(&self) {
        while let Some(job) = self.queue.next().await {
            let id = self.metrics.started(job.waited);
            let span = tracing::info_span!(
                "reconcile",
                controller = %self.shared.controller,
                key = %job.key,
                reconcile_id = id,
            );
            let started = Instant::now();
            let mut run = Run { worker: self, key: &job.key, ended: false };
            let object = self.store.get(&job.key);
            let judged = async {
                let ended = self.attempt(&job.key, object.clone()).await;
                let judge = AssertUnwindSafe(|| self.judge(&job.key, object.as_deref(), ended));
                // An error may panic when it is asked what it says. The queue must hear of the end all the same.
                std::panic::catch_unwind(judge).unwrap_or_else(|panic| {
                    self.judge(&job.key, object.as_deref(), Ended::Panicked(panic_text(&*panic)))
                })
            }
            .instrument(span)
            .await;
            if let (Some(object), Some((reason, message))) = (object.as_deref(), &judged.failure) {
                self.warn(object, reason, message);
            }
            run.ended = true;
            // Before the queue: what is idle has been told of.
            self.handle.ran(&self.shared.controller, &job.key, judged.failure);
            let retry = self.queue.finish(&job.key, judged.outcome);
            self.metrics.finished(judged.verdict, started.elapsed(), retry.is_some());
        }
    }

    /// Runs the reconciler; neither a panic nor a hang gets past this.
    async fn attempt(&self, key: &ObjectKey, object: Option<Arc<C::Resource>>) -> Ended<C::Error> {
        let ctx = Context::new(self.shared.clone(), self.watches.clone(), key.clone(), object.clone());
        let paused = object.as_deref().is_some_and(is_paused);
        let run = async {
            match object {
                Some(_) if paused => {
                    tracing::debug!("paused by annotation");
                    Ok(Action::await_change())
                }
                Some(object) => self.reconciler.reconcile(object, &ctx).await,
                None => self.reconciler.deleted(key, &ctx).await.map(|()| Action::await_change()),
            }
        };
        let guarded = AssertUnwindSafe(run).catch_unwind();
        let ended = match self.timeout {
            None => guarded.await,
            Some(limit) => match tokio::time::timeout(limit, guarded).await {
                Ok(ended) => ended,
                Err(_) => return Ended::TimedOut(limit),
            },
        };
        match ended {
            // An object whose run has succeeded may go, once its detached children are gone.
            Ok(Ok(action)) if !paused && ctx.is_of_deleting_object() => match ctx.release_detached().await {
                Ok(()) => Ended::Finished(Ok(action)),
                Err(error) => Ended::NotReleased(error),
            },
            Ok(Ok(action)) => Ended::Finished(Ok(action)),
            Ok(Err(error)) => Ended::Finished(Err(error)),
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        }
    }

    /// Logs the end of a run and says what follows from it.
    fn judge(&self, key: &ObjectKey, object: Option<&C::Resource>, ended: Ended<C::Error>) -> Judged {
        match ended {
            Ended::Finished(Ok(action)) => match action.requeue_after() {
                Some(delay) => Judged::fine(Outcome::RequeueAfter(delay), Verdict::RequeueAfter),
                None => Judged::fine(self.rest(key, object), Verdict::Success),
            },
            Ended::Finished(Err(error)) => {
                let (text, category) = (chain(error.as_error()), error.category());
                if error.retryable() {
                    tracing::warn!(category, error = %text, "reconcile failed");
                    Judged::failed(Outcome::Failed, Verdict::Error, category, text)
                } else {
                    tracing::error!(category, error = %text, "reconcile failed, waiting for a change");
                    Judged::failed(self.rest(key, object), Verdict::Terminal, category, text)
                }
            }
            Ended::NotReleased(error) => {
                let text = chain(&error);
                tracing::warn!(error = %text, "failed to delete detached children");
                Judged::failed(Outcome::Failed, Verdict::Error, error.category(), text)
            }
            Ended::Panicked(text) => {
                tracing::error!(panic = %text, "reconcile panicked");
                Judged::failed(Outcome::Failed, Verdict::Panic, "ReconcilePanicked", text)
            }
            Ended::TimedOut(limit) => {
                tracing::warn!(?limit, "reconcile timed out");
                let text = format!("not finished after {limit:?}");
                Judged::failed(Outcome::Failed, Verdict::Timeout, "ReconcileTimedOut", text)
            }
        }
    }

    /// Until the next change, or the next resync.
    fn rest(&self, key: &ObjectKey, object: Option<&C::Resource>) -> Outcome {
        match self.resync.filter(|_| object.is_some()) {
            Some(period) => Outcome::RequeueAfter(spread(period, &self.shared.controller, key)),
            None => Outcome::Done,
        }
    }

    fn warn(&self, object: &C::Resource, reason: &str, note: &str) {
        let event = Event::warning(reason, note).action("Reconcile");
        self.shared.recorder.publish(self.watches.kind().reference(object.meta()), event);
    }
}

/// The period less up to a tenth of it, by the hash of the key: objects that came together spread out, and each
/// run of the program spreads them alike.
fn spread(period: Duration, controller: &str, key: &ObjectKey) -> Duration {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (controller, key).hash(&mut hasher);
    period.saturating_sub(period / 10 * (hasher.finish() % 1000) as u32 / 1000)
}

fn is_paused<K: AnyObject>(object: &K) -> bool {
    let paused = object.meta().annotations.as_ref().and_then(|annotations| annotations.get(PAUSED));
    paused.is_some_and(|value| value == "true")
}
