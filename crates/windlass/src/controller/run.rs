//! The loop: workers take keys, run the reconciler in isolation, and tell the queue how it went.

use std::{
    any::Any,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::FutureExt;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::{Client, Resource};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Controller, Load, Owned, Setup, Watches, setup::Wiring};
use crate::{
    apply::{FieldManager, Recall},
    cache::{Caches, Reader, Store},
    clock::Clock,
    context::{Context, Shared},
    error::{ReconcileError, Result, chain},
    events::{Event, Recorder},
    metrics::{ControllerMetrics, Metrics, Verdict},
    object::{AnyObject, ObjectKey},
    queue::{Outcome, Queue},
    rbac::Access,
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
    /// Runs the workers until the token is cancelled and the last run has ended.
    pub(crate) work: Box<dyn FnOnce(CancellationToken) -> Task + Send>,
}

/// A controller of any kind, as the operator sees it.
pub(crate) trait Runnable: Send {
    fn name(&self) -> &str;
    fn namespaces(&self) -> &[String];
    fn set_concurrency(&mut self, workers: usize);
    fn access(&self) -> (&[Access], &[PolicyRule]);
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

    fn access(&self) -> (&[Access], &[PolicyRule]) {
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
            client: start.client.clone(),
            clock: start.clock.clone(),
            reader: wiring.reader.clone(),
            recorder: start.recorder.named(name.clone()),
            owned: wiring.owned.clone(),
            dry_run: start.dry_run,
        });
        let worker = Worker {
            reconciler: self.reconciler,
            shared,
            watches: Watches::new(wiring.clone()),
            store,
            queue,
            metrics,
            timeout: self.timeout,
            resync: self.resync,
        };
        let concurrency = self.concurrency;
        Ok(Prepared {
            name,
            tasks,
            load: wiring,
            work: Box::new(move |stop| Box::pin(work(worker, concurrency, stop))),
        })
    }
}

/// Runs the workers until the token is cancelled and what is running has ended.
async fn work<C: Reconciler>(worker: Worker<C>, concurrency: usize, stop: CancellationToken) {
    let worker = Arc::new(worker);
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let worker = worker.clone();
        workers.spawn(async move { worker.run().await });
    }
    tokio::select! {
        () = stop.cancelled() => {}
        // Workers do not end by themselves: the controller ends, and the operator reports it.
        _ = workers.join_next() => tracing::error!(controller = %worker.shared.controller, "a worker ended"),
    }
    worker.queue.close();
    while let Some(joined) = workers.join_next().await {
        if let Err(error) = joined {
            tracing::error!(controller = %worker.shared.controller, %error, "a worker died");
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
    timeout: Option<Duration>,
    resync: Option<Duration>,
}

/// How one run ended.
enum Ended<E> {
    Finished(Result<Action, E>),
    Panicked(String),
    TimedOut(Duration),
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
            let object = self.store.get(&job.key);
            let (outcome, verdict) = async {
                let ended = self.attempt(&job.key, object.clone()).await;
                self.judge(&job.key, object.as_deref(), ended)
            }
            .instrument(span)
            .await;
            let retry = self.queue.finish(&job.key, outcome);
            self.metrics.finished(verdict, started.elapsed(), retry.is_some());
        }
    }

    /// Runs the reconciler; neither a panic nor a hang gets past this.
    async fn attempt(&self, key: &ObjectKey, object: Option<Arc<C::Resource>>) -> Ended<C::Error> {
        let ctx = Context::new(self.shared.clone(), self.watches.clone(), key.clone(), object.clone());
        let run = async {
            match object {
                Some(object) if is_paused(&*object) => {
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
            Ok(result) => Ended::Finished(result),
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        }
    }

    /// Reports the end of a run and says what the queue should do.
    fn judge(
        &self,
        key: &ObjectKey,
        object: Option<&C::Resource>,
        ended: Ended<C::Error>,
    ) -> (Outcome, Verdict) {
        match ended {
            Ended::Finished(Ok(action)) => match action.requeue_after() {
                Some(delay) => (Outcome::RequeueAfter(delay), Verdict::RequeueAfter),
                None => match self.resync.filter(|_| object.is_some()) {
                    Some(period) => {
                        let delay = spread(period, &self.shared.controller, key);
                        (Outcome::RequeueAfter(delay), Verdict::Success)
                    }
                    None => (Outcome::Done, Verdict::Success),
                },
            },
            Ended::Finished(Err(error)) => {
                let text = chain(&error);
                let retryable = error.retryable();
                self.warn(object, error.category(), &text);
                if retryable {
                    tracing::warn!(category = error.category(), error = %text, "reconcile failed");
                    (Outcome::Failed, Verdict::Error)
                } else {
                    tracing::error!(category = error.category(), error = %text, "reconcile failed, waiting for a change");
                    (Outcome::Done, Verdict::Terminal)
                }
            }
            Ended::Panicked(text) => {
                tracing::error!(panic = %text, "reconcile panicked");
                self.warn(object, "ReconcilePanicked", &text);
                (Outcome::Failed, Verdict::Panic)
            }
            Ended::TimedOut(limit) => {
                tracing::warn!(?limit, "reconcile timed out");
                self.warn(object, "ReconcileTimedOut", &format!("not finished after {limit:?}"));
                (Outcome::Failed, Verdict::Timeout)
            }
        }
    }

    fn warn(&self, object: Option<&C::Resource>, reason: &str, note: &str) {
        if let Some(object) = object {
            let event = Event::warning(reason, note).action("Reconcile");
            self.shared.recorder.publish(self.watches.kind().reference(object.meta()), event);
        }
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

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
