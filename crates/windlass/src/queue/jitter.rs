//! Jitter that can be repeated: it follows from a seed, the key and the number of its failures, and from nothing else.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// How much earlier than its backoff says a key may be retried.
///
/// Objects that failed together, because of one outage, would otherwise all come back together. The same seed
/// spreads the same keys in the same way, in every run of the program and whatever other keys do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The largest part of a delay that is taken off, in percent; at most 100.
    pub percent: u8,
    /// What decides how much is taken off which delay.
    pub seed: u64,
}

impl Default for Jitter {
    /// Up to a tenth.
    fn default() -> Self {
        Self { percent: 10, seed: 0 }
    }
}

impl Jitter {
    /// Delays as the backoff says them.
    pub const NONE: Self = Self { percent: 0, seed: 0 };

    /// The delay of a key that has failed so often: never longer than `delay`, shorter by the percentage at most.
    pub(super) fn shorten(self, delay: Duration, key: &impl Hash, failures: u32) -> Duration {
        const STEPS: u64 = 1 << 16;
        let mut hasher = DefaultHasher::new();
        (self.seed, key, failures).hash(&mut hasher);
        let most = delay / 100 * u32::from(self.percent.min(100));
        delay.saturating_sub(most.mul_f64((hasher.finish() % STEPS) as f64 / STEPS as f64))
    }
}
