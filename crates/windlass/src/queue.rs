//! The work queue of one controller: keys in, one worker per key out.
//!
//! # Guarantees
//!
//! - A key is queued at most once, and never runs on two workers at the same time. A key that is added while it
//!   runs is run once more afterwards.
//! - Keys of one lane (a namespace) and of equal priority leave in the order in which they became ready.
//! - Lanes take turns: while a lane has a ready key, every other lane gets at most one turn before it.
//! - A failing key is retried after 5 ms, doubling to 1,000 s, less its [`Jitter`], and not before the
//!   [`RateLimit`] that all retries share allows it. An event may run it earlier; a failure of such an early run
//!   moves neither the count nor the time of the retry.
//! - A success, or a requeue that the reconciler asked for, resets the count.
//! - Any delay may be asked for, [`Duration::MAX`] included: what is longer than thirty years is thirty years.
//! - After [`Queue::close`] no key is handed out, and [`Queue::drained`] returns when the last run has ended.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

mod jitter;
mod lanes;
pub(crate) mod later;
mod limit;
#[cfg(test)]
mod properties;
mod state;
#[cfg(test)]
mod tests;

pub use jitter::Jitter;
pub use lanes::QueueKey;
pub use limit::RateLimit;
pub use state::Job;
use state::State;

/// How urgent a key is; the higher, the sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// Live events.
    pub const NORMAL: Self = Self(0);
    /// The objects found at startup: they wait for live events.
    pub const LOW: Self = Self(-100);
}

/// How a run ended, as far as the queue cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing more to do until the next event.
    Done,
    /// Run again after a delay, unless an event comes first. Any delay will do; thirty years is the longest.
    RequeueAfter(Duration),
    /// Failed: run again after the key's backoff.
    Failed,
}

/// The exponential backoff of a failing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The longest delay.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(5), longest: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// The delay after that many failures in a row.
    pub fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.checked_mul(factor).map_or(self.longest, |delay| delay.min(self.longest))
    }
}

/// How a queue paces its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The delays between the retries of one key.
    pub backoff: Backoff,
    /// How far the retries of keys that failed together are spread.
    pub jitter: Jitter,
    /// What all retries together may take; `None` for no limit.
    pub retries: Option<RateLimit>,
    /// The shortest time from one run of a key to its next; what happens in between leads to one run.
    pub interval: Option<Duration>,
}

impl Default for Pace {
    /// As controller-runtime has it: 5 ms to 1,000 s per key, ten retries a second and a hundred at once overall;
    /// and a jitter, which it has not.
    fn default() -> Self {
        Self {
            backoff: Backoff::default(),
            jitter: Jitter::default(),
            retries: Some(RateLimit::default()),
            interval: None,
        }
    }
}

/// A queue shared by the sources that add keys and the workers that run them.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    /// Wakes one waiting worker.
    ready: Notify,
    /// Wakes whoever waits for the drain.
    idle: Notify,
}

impl<K: QueueKey> Queue<K> {
    /// An empty queue.
    pub fn new(pace: Pace) -> Self {
        Self { state: Mutex::new(State::new(pace)), ready: Notify::new(), idle: Notify::new() }
    }

    /// Makes `key` ready now. Returns whether that is news: false for a key that is queued already.
    pub fn add(&self, key: K, priority: Priority) -> bool {
        let news = self.lock().add(key, priority, Instant::now());
        self.ready.notify_one();
        news
    }

    /// Makes `key` ready after `delay`, unless it is ready or due sooner.
    pub fn add_after(&self, key: K, priority: Priority, delay: Duration) {
        self.lock().add_after(key, priority, delay, Instant::now());
        self.ready.notify_one();
    }

    /// Waits for the next key; `None` when the queue is closed.
    pub async fn next(&self) -> Option<Job<K>> {
        loop {
            let notified = self.ready.notified();
            let deadline = {
                let mut state = self.lock();
                if let Some(job) = state.next(Instant::now()) {
                    // One notification may stand for several keys: pass it on.
                    self.ready.notify_one();
                    return Some(job);
                }
                if state.is_closed() {
                    self.ready.notify_one();
                    return None;
                }
                state.next_deadline()
            };
            match deadline {
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => notified.await,
            }
        }
    }

    /// Ends the run of `key`. Returns the delay before its retry, if it failed.
    pub fn finish(&self, key: &K, outcome: Outcome) -> Option<Duration> {
        let (retry, idle) = {
            let mut state = self.lock();
            let retry = state.finish(key, outcome, Instant::now());
            (retry, state.running() == 0)
        };
        self.ready.notify_one();
        if idle {
            self.idle.notify_waiters();
        }
        retry
    }

    /// Stops handing out keys. Those that run may finish.
    pub fn close(&self) {
        self.lock().close();
        self.ready.notify_one();
        self.idle.notify_waiters();
    }

    /// Waits until no key runs. Call [`Queue::close`] first.
    pub async fn drained(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // Registered before the check, so that a run that ends in between is not missed.
            idle.as_mut().enable();
            if self.lock().running() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Every key, where it is (`ready`, `waiting`, `running`), for how long it has been there or will be, and how often it
    /// has failed in a row.
    pub(crate) fn keys(&self) -> Vec<(K, &'static str, Duration, u32)> {
        self.lock().keys(Instant::now())
    }

    /// Whether no key runs and none is ready. Keys whose time has not come do not count.
    pub fn is_idle(&self) -> bool {
        self.lock().is_idle(Instant::now())
    }

    /// How many keys are ready, by priority.
    pub fn depth(&self) -> BTreeMap<Priority, usize> {
        self.lock().depth()
    }

    /// Total and longest time that the running keys have been running.
    pub fn unfinished(&self) -> (Duration, Duration) {
        self.lock().unfinished(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
