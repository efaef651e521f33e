//! Liveness and readiness: what the probes answer, for the server in `main` and for whoever embeds an operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::cache::WeakCaches;

/// The state of a running operator. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Set once the watches are known; before that nothing is ready.
    caches: Option<WeakCaches>,
    stopping: bool,
    /// Named checks of other parts: why each fails.
    others: Vec<(&'static str, watch::Receiver<Option<String>>)>,
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

    /// Adds a check that fails for as long as the receiver holds a reason.
    pub(super) fn add(&self, name: &'static str, failure: watch::Receiver<Option<String>>) {
        self.lock().others.push((name, failure));
    }

    pub(super) fn stopping(&self) {
        self.lock().stopping = true;
    }

    /// Whether every check passes: all caches are filled, and no watch is failing.
    pub fn is_ready(&self) -> bool {
        self.checks().iter().all(|check| check.failure.is_none())
    }

    /// The readiness checks: one for the operator, one for the webhooks if it has any, one per watch.
    pub fn checks(&self) -> Vec<Check> {
        let state = self.lock();
        let running = match (&state.caches, state.stopping) {
            (_, true) => Some("shutting down".to_owned()),
            (None, false) => Some("not started".to_owned()),
            (Some(_), false) => None,
        };
        let mut checks = vec![Check { name: "operator".into(), failure: running }];
        for (name, failure) in &state.others {
            checks.push(Check { name: (*name).to_owned(), failure: failure.borrow().clone() });
        }
        for seen in state.caches.iter().flat_map(WeakCaches::watches) {
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
