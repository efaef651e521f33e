//! What a test knows of the runs of its operator: which have ended, and which have failed.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Failure, ObjectKey, Run};

type Allowed = Box<dyn Fn(&Failure) -> bool + Send>;

/// The runs of an operator under test. Clones share the record.
#[derive(Clone, Default)]
pub(super) struct Runs(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    /// What was told of since the last [`Runs::begin`].
    ended: BTreeSet<(Arc<str>, ObjectKey)>,
    failures: Vec<Failure>,
    /// What the test says about failures that it expects.
    allowed: Vec<Allowed>,
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("failures", &self.lock().failures).finish_non_exhaustive()
    }
}

impl Runs {
    pub(super) fn record(&self, run: &Run) {
        let mut record = self.lock();
        record.ended.insert((run.controller.clone(), run.key.clone()));
        record.failures.extend(run.failure.clone());
    }

    pub(super) fn allow(&self, allowed: impl Fn(&Failure) -> bool + Send + 'static) {
        self.lock().allowed.push(Box::new(allowed));
    }

    pub(super) fn failures(&self) -> Vec<Failure> {
        self.lock().failures.clone()
    }

    pub(super) fn take_failures(&self) -> Vec<Failure> {
        std::mem::take(&mut self.lock().failures)
    }

    /// From now on it counts what ends.
    pub(super) fn begin(&self) {
        self.lock().ended.clear();
    }

    /// Those of these that have not ended since the beginning.
    pub(super) fn missing(&self, queued: &[(Arc<str>, ObjectKey)]) -> Vec<String> {
        let record = self.lock();
        let missing = queued.iter().filter(|run| !record.ended.contains(*run));
        missing.map(|(controller, key)| format!("{controller} {key}")).collect()
    }

    /// What failed and is not allowed to, as the text of a panic.
    pub(super) fn unexpected(&self) -> Option<String> {
        let record = self.lock();
        let expected = |failure: &&Failure| record.allowed.iter().any(|allowed| allowed(failure));
        let lines: Vec<String> =
            record.failures.iter().filter(|failure| !expected(failure)).map(|it| format!("  {it}")).collect();
        (!lines.is_empty()).then(|| {
            format!(
                "{} of the operator's runs failed, which the test did not expect \
                 (allow_failures(..) or take_failures() say that it does):\n{}",
                lines.len(),
                lines.join("\n"),
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
