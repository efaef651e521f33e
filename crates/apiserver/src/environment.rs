//! Where time and chance come from.
//!
//! The server never reads the wall clock or the thread's random source. Both are handed in, so that a
//! test on tokio's paused clock and a seeded run see the same uids, names and timestamps every time.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

pub use windlass_apimachinery::{Clock, clock::TokioClock};

/// The clock and the random source of one server, shared by all of its parts.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    random: Arc<Mutex<StdRng>>,
    /// How many watches there are must not change anybody's uid: what is drawn for them is drawn elsewhere.
    timeouts: Arc<Mutex<StdRng>>,
}

impl Environment {
    /// An environment with the given clock, whose every random choice follows from `seed`.
    pub fn new(clock: impl Clock, seed: u64) -> Self {
        let random = |seed| Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
        Self { clock: Arc::new(clock), random: random(seed), timeouts: random(!seed) }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The present moment as Kubernetes writes it: RFC 3339 in whole seconds.
    pub fn now_text(&self) -> String {
        const SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
        SECONDS.timestamp_to_string(&self.now())
    }

    /// A new object uid (a version 4 UUID).
    pub fn uid(&self) -> String {
        let mut bytes = [0_u8; 16];
        self.with_random(|random| random.fill_bytes(&mut bytes));
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// `length` characters that can end a generated name: no vowels and no look-alikes, so that no
    /// words arise by chance.
    pub fn name_suffix(&self, length: usize) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.with_random(|random| {
            (0..length).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect()
        })
    }

    /// A duration between `low` and `high`, for timeouts that must not all end at once.
    pub fn duration_between(&self, low: Duration, high: Duration) -> Duration {
        let mut timeouts = self.timeouts.lock().unwrap_or_else(PoisonError::into_inner);
        timeouts.random_range(low..=high.max(low))
    }

    fn with_random<T>(&self, use_it: impl FnOnce(&mut StdRng) -> T) -> T {
        // A poisoned generator is still a generator: the panic happened elsewhere.
        use_it(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Environment").field("now", &self.now()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(seed: u64) -> Environment {
        Environment::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH), seed)
    }

    #[tokio::test(start_paused = true)]
    async fn an_hour_on_the_paused_clock_passes_at_once() {
        let environment = environment(1);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(environment.now_text(), "1970-01-01T01:00:00Z");
    }

    #[tokio::test]
    async fn one_seed_gives_one_history() {
        let (one, other) = (environment(7), environment(7));
        assert_eq!(one.uid(), other.uid());
        assert_eq!(one.name_suffix(5), other.name_suffix(5));
        assert_ne!(one.uid(), one.uid());
    }

    #[tokio::test]
    async fn a_watch_more_changes_nobodys_uid() {
        let (one, other) = (environment(7), environment(7));
        one.duration_between(Duration::ZERO, Duration::from_secs(1));
        assert_eq!(one.uid(), other.uid());
    }
}
