//! The health of a controller's workers: whether one has died lately, and when it may begin again.
//!
//! A panic of a reconciler is caught and costs one run. What gets past that ends a worker; another takes its place
//! after a pause, which grows with every death, and the readiness tells for as long.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The pause after the first death; each one after it doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A worker that has lived this long after its restart is well.
const WELL: Duration = Duration::from_secs(10);

/// What is known of the workers of one controller.
#[derive(Debug)]
pub(crate) struct Health {
    controller: Arc<str>,
    last: Mutex<Option<Death>>,
}

#[derive(Debug, Clone)]
struct Death {
    why: String,
    /// When a worker that began again after it is well.
    well: Instant,
    /// How many there were in a row.
    count: u32,
}

impl Health {
    pub(crate) fn new(controller: Arc<str>) -> Self {
        Self { controller, last: Mutex::default() }
    }

    /// A worker has died; how long to wait before another takes its place.
    pub(super) fn died(&self, why: String) -> Duration {
        let now = Instant::now();
        let mut last = self.last();
        let before = last.as_ref().filter(|death| now < death.well).map_or(0, |death| death.count);
        let doublings = 2_u32.saturating_pow(before);
        let pause = FIRST_PAUSE.saturating_mul(doublings).min(LONGEST_PAUSE);
        *last = Some(Death { why, well: now + pause + WELL, count: before.saturating_add(1) });
        pause
    }

    /// Why the controller is not ready, if a worker has died and no other is known to be well.
    pub(crate) fn failure(&self) -> Option<String> {
        let last = self.last();
        let death = last.as_ref().filter(|death| Instant::now() < death.well)?;
        let Death { why, count, .. } = death;
        Some(format!(
            "a worker of controller {} died ({why}) and is restarted; {count} in a row",
            self.controller
        ))
    }

    fn last(&self) -> MutexGuard<'_, Option<Death>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_while_workers_die_and_begin_anew_when_they_live() {
        let health = Health::new("pods".into());
        assert_eq!(health.failure(), None);
        assert_eq!(health.died("a".into()), FIRST_PAUSE);
        assert_eq!(health.died("b".into()), FIRST_PAUSE * 2);
        let told = health.failure().unwrap();
        assert_eq!(told, "a worker of controller pods died (b) and is restarted; 2 in a row");
        for _ in 0..100 {
            assert!(health.died("c".into()) <= LONGEST_PAUSE);
        }
        tokio::time::sleep(LONGEST_PAUSE + WELL).await;
        assert_eq!(health.failure(), None, "who lives is well");
        assert_eq!(health.died("d".into()), FIRST_PAUSE);
    }
}
