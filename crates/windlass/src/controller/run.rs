//! The loop: workers take keys, run the reconciler in isolation, and tell the queue how it went.

mod ended;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use futures::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, Resource};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Controller, Health};
use crate::{
    apply::{Owned, Recall, Shared},
    cache::{Caches, Held, Reader, Store, WatchEntry},
    clock::Clock,
    context::Context,
    error::{Error, ReconcileError, Result, chain},
    events::{Event, Recorder, Reporter},
    handle::{Handle, Load},
    isolation::panic_text,
    metrics::{ControllerMetrics, Metrics},
    object::{Kind, ObjectKey},
    queue::{Outcome, Queue},
    rbac::{Call, Declared, Permit},
    reconciler::{Action, Reconciler},
    runs::{self, RunResult},
    watches::{Setup, Watches, Wiring},
    wire::FieldManager,
};
use ended::{Ended, Judged};

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
    /// No run is cut off for the time that it takes.
    pub(crate) debugging: bool,
}

pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A controller that is wired up and waits for its caches.
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    /// Tasks beside the workers, such as external streams.
    pub(crate) tasks: Vec<Task>,
    pub(crate) load: Arc<dyn Load>,
    /// Whether its workers live.
    pub(crate) health: Arc<Health>,
    /// The watches without which it does not begin.
    pub(crate) needs: Vec<WatchEntry>,
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
    fn access(&self) -> (&[Declared], &[(Permit, Call)]);
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

    fn access(&self) -> (&[Declared], &[(Permit, Call)]) {
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
            runs: start.handle.runs().clone(),
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
        let mut shared = start.shared(&name, wiring.reader.clone(), wiring.owned.clone());
        shared.manager = self.manager;
        shared.recorder = start.recorder.named(Reporter {
            controller: name.clone(),
            source: self.event_source.map(Into::into),
            manager: shared.manager().into(),
        });
        let shared = Arc::new(shared);
        let attempts = Typed {
            reconciler: self.reconciler,
            shared: shared.clone(),
            watches: Watches::new(wiring.clone()),
            store,
            timeout: self.timeout.filter(|_| !start.debugging),
        };
        let health = Arc::new(Health::new(name.clone()));
        let worker = Arc::new(Worker {
            health: health.clone(),
            attempts: Box::new(attempts),
            shared,
            kind: self.primary.kind,
            queue,
            metrics,
            handle: start.handle.clone(),
            resync: self.resync,
        });
        let needs = wiring.take_needs();
        Ok(Prepared { name, tasks, needs, load: wiring, health, work: worker.start(self.concurrency) })
    }
}

impl Start<'_> {
    /// What the runs of one controller share.
    fn shared(&self, name: &Arc<str>, reader: Reader, owned: Owned) -> Shared {
        Shared {
            controller: name.clone(),
            field_manager: self.field_manager.clone(),
            controllers: self.controllers.clone(),
            recall: Recall::default(),
            status_recall: Recall::default(),
            client: self.client.clone(),
            clock: self.clock.clone(),
            reader,
            recorder: self.recorder.clone(),
            manager: None,
            owned,
            dry_run: self.dry_run,
        }
    }
}

/// Runs the workers until they are told to end, and returns when the last of them has. One that dies is replaced.
async fn work(worker: Arc<Worker>, concurrency: usize, stop: Stop) {
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let worker = worker.clone();
        workers.spawn(async move { worker.run().await });
    }
    loop {
        tokio::select! {
            biased;
            () = stop.fence.cancelled() => return workers.shutdown().await,
            () = stop.drain.cancelled() => break,
            Some(ended) = workers.join_next() => {
                let why = ended.err().map_or_else(|| "it returned".to_owned(), told);
                let pause = worker.health.died(why.clone());
                let controller = &worker.shared.controller;
                tracing::error!(%controller, why, ?pause, "a worker died; another takes its place");
                let worker = worker.clone();
                workers.spawn(async move {
                    tokio::time::sleep(pause).await;
                    worker.run().await;
                });
            }
        }
    }
    worker.queue.close();
    loop {
        let joined = tokio::select! {
            biased;
            () = stop.fence.cancelled() => return workers.shutdown().await,
            joined = workers.join_next() => joined,
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

/// Why a worker died.
fn told(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_text(&*panic),
        Err(error) => error.to_string(),
    }
}

/// A run that may be cut off: then its key goes back into the queue.
struct Run<'a> {
    worker: &'a Worker,
    key: &'a ObjectKey,
    ended: bool,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.worker.queue.finish(self.key, Outcome::Failed);
            self.worker.metrics.abandoned();
        }
    }
}

/// A reconciler as its workers see it: these are one piece of code for all controllers.
trait Attempts: Send + Sync {
    /// The object as it is known now.
    fn object(&self, key: &ObjectKey) -> Option<Arc<dyn Held>>;
    /// Runs the reconciler; neither a panic nor a hang gets past this.
    fn attempt<'a>(
        &'a self,
        key: &'a ObjectKey,
        object: Option<Arc<dyn Held>>,
    ) -> Pin<Box<dyn Future<Output = Ended> + Send + 'a>>;
}

struct Typed<C: Reconciler> {
    reconciler: Arc<C>,
    shared: Arc<Shared>,
    watches: Watches<C::Resource>,
    store: Arc<Store<C::Resource>>,
    timeout: Option<Duration>,
}

struct Worker {
    attempts: Box<dyn Attempts>,
    health: Arc<Health>,
    shared: Arc<Shared>,
    kind: Kind,
    queue: Arc<Queue<ObjectKey>>,
    metrics: ControllerMetrics,
    handle: Handle,
    resync: Option<Duration>,
}

impl<C: Reconciler> Attempts for Typed<C> {
    fn object(&self, key: &ObjectKey) -> Option<Arc<dyn Held>> {
        Some(self.store.get(key)?)
    }

    fn attempt<'a>(
        &'a self,
        key: &'a ObjectKey,
        object: Option<Arc<dyn Held>>,
    ) -> Pin<Box<dyn Future<Output = Ended> + Send + 'a>> {
        let typed = |object: Arc<dyn Held>| object.into_any().downcast::<C::Resource>();
        let object = object.map(|object| typed(object).expect("an object must be of the kind of its store"));
        Box::pin(self.run(key, object))
    }
}

impl<C: Reconciler> Typed<C> {
    async fn run(&self, key: &ObjectKey, object: Option<Arc<C::Resource>>) -> Ended {
        let ctx = Context::new(self.shared.clone(), self.watches.clone(), key.clone(), object.clone());
        let paused = object.as_deref().is_some_and(|object| is_paused(object.meta()));
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
                Ok(()) => Ended::Finished(action),
                Err(error) => Ended::NotReleased(error),
            },
            Ok(Ok(action)) => Ended::Finished(action),
            Ok(Err(error)) => failed(&error),
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        }
    }
}

/// What an error says. It may panic when it is asked; the queue must hear of the end all the same.
fn failed<E: ReconcileError>(error: &E) -> Ended {
    let told = std::panic::catch_unwind(AssertUnwindSafe(|| Ended::Failed {
        text: chain(error.as_error()),
        category: error.category(),
        retryable: error.retryable(),
        unnamed: error.as_error().is::<Error>(),
    }));
    told.unwrap_or_else(|panic| Ended::Panicked(panic_text(&*panic)))
}

impl Worker {
    fn start(self: Arc<Self>, concurrency: usize) -> Box<dyn Fn(Stop) -> Task + Send + Sync> {
        Box::new(move |stop| Box::pin(work(self.clone(), concurrency, stop)))
    }

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
            let object = self.attempts.object(&job.key);
            let record = self.handle.runs().begin(&self.shared.controller, &self.kind, &job.key, job.waited);
            let attempt = async {
                let ended = self.attempts.attempt(&job.key, object.clone()).await;
                self.judge(&job.key, object.is_some(), ended)
            }
            .instrument(span);
            let judged = runs::within(record.clone(), attempt).await;
            // A component of Kubernetes has events for what it has names for, and for nothing else.
            let telling = judged.named || !self.shared.recorder.is_of_component();
            let failure = judged.failure.as_ref().filter(|_| telling);
            if let (Some(object), Some((reason, message))) = (object.as_deref(), failure) {
                self.warn(object.metadata(), reason, message);
            }
            run.ended = true;
            let told = record.map(|record| (record, judged.told()));
            // Before the queue: what is idle has been told of.
            self.handle.ran(&self.shared.controller, &job.key, judged.failure);
            let retry = self.queue.finish(&job.key, judged.outcome);
            if let Some((record, failure)) = told {
                self.handle.runs().end(
                    &record,
                    judged.verdict,
                    failure,
                    retry.or(match judged.outcome {
                        Outcome::RequeueAfter(delay) => Some(delay),
                        Outcome::Done | Outcome::Failed => None,
                    }),
                );
            }
            self.metrics.finished(judged.verdict, started.elapsed(), retry.is_some());
        }
    }

    /// Logs the end of a run and says what follows from it.
    fn judge(&self, key: &ObjectKey, exists: bool, ended: Ended) -> Judged {
        match ended {
            Ended::Finished(action) => match action.requeue_after() {
                Some(delay) => Judged::fine(Outcome::RequeueAfter(delay), RunResult::RequeueAfter),
                None => Judged::fine(self.rest(key, exists), RunResult::Success),
            },
            Ended::Failed { text, category, retryable: true, unnamed } => {
                tracing::warn!(category, error = %text, "reconcile failed");
                let judged = Judged::failed(Outcome::Failed, RunResult::Error, category, text);
                Judged { named: !unnamed, ..judged }
            }
            Ended::Failed { text, category, retryable: false, unnamed } => {
                tracing::error!(category, error = %text, "reconcile failed, waiting for a change");
                let judged = Judged::failed(self.rest(key, exists), RunResult::Terminal, category, text);
                Judged { named: !unnamed, ..judged }
            }
            Ended::NotReleased(error) => {
                let text = chain(&error);
                tracing::warn!(error = %text, "failed to delete detached children");
                Judged::failed(Outcome::Failed, RunResult::Error, error.category(), text)
            }
            Ended::Panicked(text) => {
                tracing::error!(panic = %text, "reconcile panicked");
                Judged::failed(Outcome::Failed, RunResult::Panic, "ReconcilePanicked", text)
            }
            Ended::TimedOut(limit) => {
                tracing::warn!(?limit, "reconcile timed out");
                let text = format!("not finished after {limit:?}");
                Judged::failed(Outcome::Failed, RunResult::Timeout, "ReconcileTimedOut", text)
            }
        }
    }

    /// Until the next change, or the next resync.
    fn rest(&self, key: &ObjectKey, exists: bool) -> Outcome {
        match self.resync.filter(|_| exists) {
            Some(period) => Outcome::RequeueAfter(spread(period, &self.shared.controller, key)),
            None => Outcome::Done,
        }
    }

    fn warn(&self, object: &ObjectMeta, reason: &str, note: &str) {
        let event = Event::warning(reason, note).action("Reconcile");
        self.shared.recorder.publish(self.kind.reference(object), event);
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

fn is_paused(object: &ObjectMeta) -> bool {
    let paused = object.annotations.as_ref().and_then(|annotations| annotations.get(PAUSED));
    paused.is_some_and(|value| value == "true")
}
