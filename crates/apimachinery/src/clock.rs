//! Where timestamps come from.
//!
//! Delays use `tokio::time`; timestamps that reach the API (conditions, events, leases, creation times) come from a
//! [`Clock`] that is handed in. With [`TokioClock`] both follow tokio's paused clock, so a test that sleeps for an hour
//! sees conditions an hour apart and finishes at once.

use std::{fmt::Debug, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of timestamps.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and advances with tokio's clock.
///
/// Under `tokio::time::pause()` it moves only when tokio's clock moves. Started at the machine's time it shows the
/// machine's time.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// A clock that shows `origin` now.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self { origin, started: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.origin.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_tokio_clock_moves_with_the_paused_clock() {
        let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now().as_second(), 3600);
    }
}
