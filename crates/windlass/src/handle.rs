//! A hold on an operator from outside: when it is ready, whether it has work, how its runs end, and doing all of it
//! once more.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use tokio::sync::watch;

use crate::{
    object::ObjectKey,
    runs::{Looked, Queued, Runs},
};

/// The work of a controller, as the operator sees it.
pub(crate) trait Load: Send + Sync {
    /// Whether no key runs or is due.
    fn is_idle(&self) -> bool;
    /// Queues every object. Returns the controller's name and the keys.
    fn requeue_all(&self) -> (Arc<str>, Vec<ObjectKey>);
    /// What is in the queue.
    fn queued(&self) -> Vec<Queued>;
}

/// A hold on an operator that runs, or is about to. Clones share it.
#[derive(Clone, Default)]
pub struct Handle(Arc<State>);

type Observer = Box<dyn Fn(&Run) + Send + Sync>;

#[derive(Default)]
struct State {
    synced: watch::Sender<bool>,
    controllers: Mutex<Vec<Weak<dyn Load>>>,
    observers: RwLock<Vec<Observer>>,
    runs: Runs,
    /// Whether the API server was told of the webhooks; `None` until that was tried.
    registered: watch::Sender<Option<Result<(), String>>>,
}

/// One run of a reconciler that has ended, as an [observer](Handle::observe) hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// The controller.
    pub controller: Arc<str>,
    /// The object.
    pub key: ObjectKey,
    /// Why it failed; `None` if it did not.
    pub failure: Option<Failure>,
}

/// A run of a reconciler that has failed: with an error, a panic or at its timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The controller.
    pub controller: Arc<str>,
    /// The object.
    pub key: ObjectKey,
    /// The [category](crate::ReconcileError::category) of the error, `ReconcilePanicked` or `ReconcileTimedOut`: the
    /// reason of the Warning event.
    pub reason: &'static str,
    /// The error with its causes, or what the panic said.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, key, reason, message } = self;
        write!(f, "{controller} {key}: {reason}: {message}")
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("synced", &*self.0.synced.borrow()).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn add(&self, controller: &Arc<dyn Load>) {
        let mut controllers = self.0.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        controllers.push(Arc::downgrade(controller));
    }

    pub(crate) fn synced(&self) {
        self.0.synced.send_replace(true);
    }

    /// Resolves when the caches are filled, which is when the work begins, or the wait for leadership.
    ///
    /// Never, if the operator ends before that: wait for its end as well.
    pub async fn ready(&self) {
        // The sender lives in this handle.
        let _ = self.0.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Whether no object runs or is due. Objects that wait for a retry or a requeue do not count.
    pub fn is_idle(&self) -> bool {
        self.controllers().iter().all(|controller| controller.is_idle())
    }

    /// Reconciles every object once more, as a restart would. Returns what was queued: controllers, and their objects.
    pub fn requeue_all(&self) -> Vec<(Arc<str>, ObjectKey)> {
        let queued = self.controllers().into_iter().flat_map(|controller| {
            let (name, keys) = controller.requeue_all();
            keys.into_iter().map(move |key| (name.clone(), key))
        });
        queued.collect()
    }

    /// Calls `observer` at the end of every run of a reconciler, also of those that failed.
    ///
    /// It is called by the worker of the controller: it must not block, and a panic in it ends the worker.
    pub fn observe(&self, observer: impl Fn(&Run) + Send + Sync + 'static) {
        self.0.observers.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(observer));
    }

    pub(crate) fn ran(
        &self,
        controller: &Arc<str>,
        key: &ObjectKey,
        failure: Option<(&'static str, String)>,
    ) {
        let observers = self.0.observers.read().unwrap_or_else(PoisonError::into_inner);
        if observers.is_empty() {
            return;
        }
        let failure = failure.map(|(reason, message)| Failure {
            controller: controller.clone(),
            key: key.clone(),
            reason,
            message,
        });
        let run = Run { controller: controller.clone(), key: key.clone(), failure };
        observers.iter().for_each(|observer| observer(&run));
    }

    /// The runs that ended after the one with number `since`, and the queues. Runs are recorded for ten seconds from now.
    pub fn look(&self, since: u64) -> Looked {
        let queue = self.controllers().iter().flat_map(|controller| controller.queued()).collect();
        Looked { runs: self.0.runs.look(since), queue }
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.0.runs
    }

    /// Whether the API server was told where the webhooks are.
    pub(crate) fn registered(&self, outcome: Result<(), String>) {
        self.0.registered.send_if_modified(|known| known.replace(outcome.clone()) != Some(outcome));
    }

    /// Waits until the API server was told where the webhooks are, and whom to trust about them; or could not be told.
    ///
    /// Never, if the operator [serves](crate::Operator::serve_webhooks) none, or ends before that.
    ///
    /// # Errors
    ///
    /// What went wrong, in one line. It is tried again.
    pub async fn webhooks_registered(&self) -> Result<(), String> {
        let mut registered = self.0.registered.subscribe();
        // The sender lives in this handle.
        match registered.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => std::future::pending().await,
        }
    }

    fn controllers(&self) -> Vec<Arc<dyn Load>> {
        let controllers = self.0.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        controllers.iter().filter_map(Weak::upgrade).collect()
    }
}
