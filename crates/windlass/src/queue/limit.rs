//! The rate that all retries of a queue share.

use std::time::Duration;

use tokio::time::Instant;

use super::later::later;

/// So many at once, and then so many a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many a second.
    pub per_second: u32,
    /// How many at once, after a quiet time.
    pub burst: u32,
}

impl Default for RateLimit {
    /// Ten a second and a hundred at once, as in controller-runtime.
    fn default() -> Self {
        Self { per_second: 10, burst: 100 }
    }
}

/// A token bucket, kept as the time at which it will be full again.
#[derive(Debug)]
pub(super) struct Bucket {
    limit: RateLimit,
    full_at: Option<Instant>,
}

impl Bucket {
    pub(super) fn new(limit: RateLimit) -> Self {
        Self { limit, full_at: None }
    }

    /// Takes a token. Returns how long it takes until there is one.
    pub(super) fn take(&mut self, now: Instant) -> Duration {
        let each = Duration::from_secs(1) / self.limit.per_second.max(1);
        let full_at = later(self.full_at.map_or(now, |at| at.max(now)), each);
        self.full_at = Some(full_at);
        full_at.saturating_duration_since(later(now, each.saturating_mul(self.limit.burst.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_its_rate() {
        let (mut bucket, now) = (Bucket::new(RateLimit { per_second: 10, burst: 3 }), Instant::now());
        let waits: Vec<u128> = (0..5).map(|_| bucket.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..4).map(|_| bucket.take(later).as_millis()).collect::<Vec<_>>(), [0, 0, 0, 100]);
    }
}
