//! Liveness and readiness: what the probes answer, for the server in `main` and for whoever embeds an operator.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{cache::WeakCaches, controller::Health};

/// The state of a running operator. Clones share it.
#[derive(Clone, Default)]
pub struct Probes {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}

/// Why something is not ready; `None` if it is.
type Failing = Arc<dyn Fn() -> Option<String> + Send + Sync>;

#[derive(Default)]
struct State {
    /// Set once the watches are known; before that nothing is ready.
    caches: Option<WeakCaches>,
    stopping: bool,
    /// The workers of the controllers.
    workers: Vec<Arc<Health>>,
    /// Named checks of other parts: why each fails.
    others: Vec<(String, Failing)>,
}

/// The answer of one named check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Why it failed; `None` if it passed.
    pub failure: Option<String>,
}

impl Probes {
    pub(super) fn started(&self, caches: WeakCaches) {
        self.lock().caches = Some(caches);
    }

    /// Adds a check that fails for as long as there is a reason.
    pub(super) fn add(
        &self,
        name: impl Into<String>,
        failing: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) {
        self.lock().others.push((name.into(), Arc::new(failing)));
    }

    /// Fails for as long as a worker of a controller has died lately.
    pub(super) fn watch_workers(&self, health: Arc<Health>) {
        self.lock().workers.push(health);
    }

    pub(super) fn stopping(&self) {
        self.lock().stopping = true;
    }

    /// Whether every check passes: all caches are filled, and no watch is failing.
    pub fn is_ready(&self) -> bool {
        self.checks().iter().all(|check| check.failure.is_none())
    }

    /// Why the controllers do not all work: a worker has died, and the one in its place is not yet known to be well.
    pub fn dead_worker(&self) -> Option<String> {
        self.lock().workers.iter().find_map(|health| health.failure())
    }

    /// The readiness checks: one for the operator and its workers, one for the webhooks if it has any, those of
    /// [`Operator::check`](crate::Operator::check), one per watch.
    pub fn checks(&self) -> Vec<Check> {
        let state = self.lock();
        let running = match (&state.caches, state.stopping) {
            (_, true) => Some("shutting down".to_owned()),
            (None, false) => Some("not started".to_owned()),
            (Some(_), false) => state.workers.iter().find_map(|health| health.failure()),
        };
        let mut checks = vec![Check { name: "operator".into(), failure: running }];
        let (others, caches) = (state.others.clone(), state.caches.clone());
        // A check of the author's may itself look at the probes.
        drop(state);
        for (name, failing) in others {
            checks.push(Check { name, failure: failing() });
        }
        for seen in caches.iter().flat_map(WeakCaches::watches) {
            let health = seen.watch.health();
            let health = health.borrow();
            let failure = match health.failure() {
                // Whoever declared the kind can do without.
                Some(_) if seen.optional && health.is_absent() => None,
                Some(failure) => Some(failure.text.clone()),
                None if !health.is_synced() => Some("the first list is not complete".to_owned()),
                None => None,
            };
            checks.push(Check { name: format!("watch-{}", seen.watch.kind()), failure });
        }
        checks
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
