//! Leading: wait for the lease, work, and stand by again when it is lost.
//!
//! # Guarantees
//!
//! - Nothing works without the lease. When it is lost, every worker is cut off and has stopped before the lease can
//!   be another's: there is the time between the renew deadline and the lease's duration for it. Whoever does not
//!   stop in that time ends the run, and with it the process.
//! - After that this replica is what it was before it led: a standby whose caches are kept up to date, and whose
//!   queues keep what is to be done. When it leads again, every object is looked at again.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{RunError, Settings, sync};
use crate::{
    cache::Caches,
    controller::{Prepared, Stop},
    leader::{Elector, LeaderError},
    operator::{task, tasks::Tasks},
};

/// Fills the caches, waits to lead, works; again and again if the lease is lost.
pub(super) async fn lead(
    settings: &Settings,
    caches: &Caches,
    prepared: Vec<Prepared>,
    tasks: Vec<task::Task>,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    let watches = caches.watches();
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        synced = settings.waiting.synced(&watches) => synced?,
    }
    settings.handle.synced();
    let Some(config) = settings.leader.clone() else {
        let fence = Duration::ZERO;
        let mut crew = Crew::new(prepared, tasks, fence);
        return crew.work(settings, stop, std::future::pending()).await;
    };
    let mut crew = Crew::new(prepared, tasks, config.duration.saturating_sub(config.renew_deadline));
    let (client, clock) = (settings.client.clone(), settings.clock.clone());
    let mut elector = Elector::new(config, client, clock, settings.metrics.clone());
    let mut give_up_when_refused = settings.waiting.alone;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                elector.release().await;
                return Ok(());
            }
            acquired = elector.acquire(give_up_when_refused) => acquired?,
        }
        settings.metrics.leading(elector.lease(), true);
        let result = term(settings, caches, &mut crew, &mut elector, stop).await;
        settings.metrics.leading(elector.lease(), false);
        match result {
            Err(RunError::Leader(error @ LeaderError::Lost { .. })) if !stop.is_cancelled() => {
                tracing::warn!(error = %error, "stopped working, standing by");
                crew.requeue_all();
            }
            Err(error @ (RunError::Leader(_) | RunError::NotFenced { .. })) => return Err(error),
            result => {
                elector.release().await;
                return result;
            }
        }
        // It was allowed once; what the server says while it comes back is not the last word.
        give_up_when_refused = false;
    }
}

/// One term of leadership: until the shutdown, or the loss of the lease.
async fn term(
    settings: &Settings,
    caches: &Caches,
    crew: &mut Crew,
    elector: &mut Elector,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    let watches = caches.watches();
    let mut lost = std::pin::pin!(elector.keep());
    tokio::select! {
        biased;
        error = &mut lost => return Err(error.into()),
        () = stop.cancelled() => return Ok(()),
        () = sync::caught_up(&watches) => {}
    }
    crew.work(settings, stop, lost).await
}

/// Everything that works only while this replica leads.
struct Crew {
    controllers: Vec<Prepared>,
    tasks: Vec<task::Task>,
    /// Streams of outside events only fill queues, and go on while this replica stands by.
    streams: Tasks,
    streaming: CancellationToken,
    /// How long it may take to stop once the lease is lost.
    fence: Duration,
    /// By controller: whether it has had all that it needs.
    begun: Vec<Arc<AtomicBool>>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.streaming.cancel();
    }
}

impl Crew {
    fn new(controllers: Vec<Prepared>, tasks: Vec<task::Task>, fence: Duration) -> Self {
        let (streams, streaming) = (Tasks::default(), CancellationToken::new());
        let begun = controllers.iter().map(|_| Arc::default()).collect();
        Self { controllers, tasks, streams, streaming, fence, begun }
    }

    fn requeue_all(&self) {
        for controller in &self.controllers {
            controller.load.requeue_all();
        }
    }

    fn start(&mut self, settings: &Settings, stop: &Stop) -> Tasks {
        let mut workers = Tasks::default();
        for (controller, begun) in self.controllers.iter_mut().zip(&self.begun) {
            tracing::info!(controller = %controller.name, "starting");
            for task in std::mem::take(&mut controller.tasks) {
                // A stream of outside events may end by itself; that ends nothing else.
                let stop = self.streaming.clone();
                let task = async move {
                    tokio::join!(task, stop.cancelled());
                };
                self.streams.spawn(format!("stream of {}", controller.name), Box::pin(task));
            }
            // A kind that goes later costs no more than its objects.
            let begun = begun.clone();
            let needs = if begun.load(Ordering::Relaxed) { Vec::new() } else { controller.needs.clone() };
            let (name, work) = (controller.name.clone(), (controller.work)(stop.clone()));
            let stop = stop.clone();
            workers.spawn(
                format!("controller {name}"),
                Box::pin(async move {
                    tokio::select! {
                        biased;
                        () = stop.drain.cancelled() => return,
                        () = stop.fence.cancelled() => return,
                        () = sync::has_needs(&name, &needs) => begun.store(true, Ordering::Relaxed),
                    }
                    work.await;
                }),
            );
        }
        for task in self.tasks.iter().cloned() {
            let name = format!("task {}", task.name);
            workers.spawn_fallible(name, task.run(settings.client.clone(), stop.clone()));
        }
        workers
    }

    /// Works until the shutdown or the loss of the lease.
    async fn work(
        &mut self,
        settings: &Settings,
        shutdown: &CancellationToken,
        lost: impl Future<Output = LeaderError> + Send,
    ) -> Result<(), RunError> {
        let stop = Stop::default();
        let mut workers = self.start(settings, &stop);
        let mut lost = std::pin::pin!(lost);
        let result = tokio::select! {
            biased;
            error = &mut lost => return fence(&stop, self.fence, &mut workers, error).await,
            () = shutdown.cancelled() => Ok(()),
            error = workers.ended() => Err(error),
            error = self.streams.ended() => Err(error),
        };
        stop.drain.cancel();
        // The lease is kept until the last run has ended.
        let limit = settings.drain;
        let drained = tokio::select! {
            biased;
            error = &mut lost => fence(&stop, self.fence, &mut workers, error).await,
            () = workers.joined() => Ok(()),
            () = tokio::time::sleep(limit) => Err(RunError::NotDrained { limit }),
        };
        workers.stop().await;
        result.and(drained)
    }
}

/// Another replica may work soon: nothing here may finish what it began.
async fn fence(
    stop: &Stop,
    limit: Duration,
    workers: &mut Tasks,
    error: LeaderError,
) -> Result<(), RunError> {
    stop.fence.cancel();
    match tokio::time::timeout(limit, workers.joined()).await {
        Ok(()) => Err(error.into()),
        Err(_) => Err(RunError::NotFenced { limit }),
    }
}
