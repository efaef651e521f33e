//! A hold on an operator from outside: when it is ready, whether it has work, and doing all of it once more.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::watch;

use crate::controller::Load;

/// A hold on an operator that runs, or is about to. Clones share it.
#[derive(Clone, Default)]
pub struct Handle(Arc<State>);

#[derive(Default)]
struct State {
    synced: watch::Sender<bool>,
    controllers: Mutex<Vec<Weak<dyn Load>>>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("synced", &*self.0.synced.borrow()).finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn add(&self, controller: &Arc<dyn Load>) {
        let mut controllers = self.0.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        controllers.push(Arc::downgrade(controller));
    }

    pub(super) fn synced(&self) {
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

    /// Reconciles every object once more, as a restart would.
    pub fn requeue_all(&self) {
        for controller in self.controllers() {
            controller.requeue_all();
        }
    }

    fn controllers(&self) -> Vec<Arc<dyn Load>> {
        let controllers = self.0.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        controllers.iter().filter_map(Weak::upgrade).collect()
    }
}
