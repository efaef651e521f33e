//! How long admission took.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The bounds of the real server's histograms, in seconds.
pub(crate) const BOUNDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// What was asked: whether an object may be changed or whether it is refused, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub(crate) operation: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) rejected: bool,
}

/// How often, and how long.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) buckets: [u64; BOUNDS.len()],
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

/// All that was asked so far. What nobody has a say in is not asked about, and not counted.
#[derive(Debug, Default)]
pub(crate) struct AdmissionTimes(Mutex<BTreeMap<Step, Times>>);

impl AdmissionTimes {
    pub(super) fn add(&self, step: Step, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.entry(step).or_default();
        for (bucket, bound) in times.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        times.count += 1;
        times.sum += seconds;
    }

    pub(crate) fn all(&self) -> BTreeMap<Step, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
