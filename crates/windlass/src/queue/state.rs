//! The queue without a clock and without tasks: every call is told the time, so every rule can be tested alone.
//!
//! Keys enter through [`State::add`] and leave through [`State::next`]; [`State::finish`] says how the run ended.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

use super::{Backoff, Jitter, Outcome, Pace, Priority, QueueKey, lanes::Lanes, later::later, limit::Bucket};

/// Everything known of one key.
#[derive(Debug)]
struct Item {
    place: Stage,
    /// Set while a worker runs the key and it is added again: run once more afterwards.
    again: Option<Priority>,
    failures: u32,
    /// When the last failure may be retried; an event may run the key earlier.
    retry_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready { priority: Priority, sequence: u64, since: Instant },
    Waiting { until: Instant, sequence: u64, priority: Priority },
    Running { since: Instant },
}

/// A key handed to a worker.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job<K> {
    /// The key; [`Queue::finish`](super::Queue::finish) gives it back.
    pub key: K,
    /// How long the key was ready before.
    pub waited: Duration,
}

/// The whole queue.
#[derive(Debug)]
pub(crate) struct State<K> {
    backoff: Backoff,
    jitter: Jitter,
    retries: Option<Bucket>,
    interval: Option<Duration>,
    items: BTreeMap<K, Item>,
    ready: BTreeMap<Reverse<Priority>, Lanes<K>>,
    waiting: BTreeSet<(Instant, u64, K)>,
    /// Until when keys that ran may not run again, and the same in the order of time.
    resting: BTreeMap<K, Instant>,
    rests: BTreeSet<(Instant, K)>,
    sequence: u64,
    running: usize,
    closed: bool,
}

impl<K: QueueKey> State<K> {
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            backoff: pace.backoff,
            jitter: pace.jitter,
            retries: pace.retries.map(Bucket::new),
            interval: pace.interval,
            items: BTreeMap::new(),
            ready: BTreeMap::new(),
            waiting: BTreeSet::new(),
            resting: BTreeMap::new(),
            rests: BTreeSet::new(),
            sequence: 0,
            running: 0,
            closed: false,
        }
    }

    /// Makes `key` ready. Returns whether that is news, which is what `adds_total` counts.
    pub(crate) fn add(&mut self, key: K, priority: Priority, now: Instant) -> bool {
        if self.closed {
            return false;
        }
        let rests = self.resting.get(&key).copied().filter(|until| *until > now);
        match self.items.get_mut(&key) {
            None => {
                match rests {
                    Some(until) => self.make_waiting(key, priority, until, 0, None),
                    None => self.make_ready(key, priority, now, 0, None),
                }
                true
            }
            Some(item) => match item.place {
                Stage::Running { .. } => {
                    let news = item.again.is_none();
                    item.again = Some(item.again.map_or(priority, |old| old.max(priority)));
                    news
                }
                Stage::Ready { priority: old, .. } if old >= priority => false,
                Stage::Ready { sequence, priority: old, since } => {
                    // A live event lifts a key out of the startup resync; its age stays.
                    item.place = Stage::Ready { priority, sequence, since };
                    self.take_ready(old, sequence, &key);
                    self.ready.entry(Reverse(priority)).or_default().insert(sequence, key);
                    false
                }
                Stage::Waiting { until, sequence, .. } => {
                    // The event may be what the wait was for. The failure count stays as it is, and so does
                    // the time of the retry, should this run fail as well.
                    let (failures, retry_at) = (item.failures, item.retry_at);
                    self.waiting.remove(&(until, sequence, key.clone()));
                    match rests {
                        Some(rest) => self.make_waiting(key, priority, until.min(rest), failures, retry_at),
                        None => self.make_ready(key, priority, now, failures, retry_at),
                    }
                    true
                }
            },
        }
    }

    /// Makes `key` ready after `delay`, unless it is ready or due sooner.
    pub(crate) fn add_after(&mut self, key: K, priority: Priority, delay: Duration, now: Instant) {
        if self.closed {
            return;
        }
        let until = self.not_before(&key, later(now, delay));
        match self.items.get(&key).map(|item| (item.place, item.failures, item.retry_at)) {
            None => self.make_waiting(key, priority, until, 0, None),
            Some((Stage::Waiting { until: old, sequence, priority }, failures, retry_at)) if until < old => {
                self.waiting.remove(&(old, sequence, key.clone()));
                self.make_waiting(key, priority, until, failures, retry_at);
            }
            Some(_) => {}
        }
    }

    /// Hands out the most urgent ready key, oldest first within a priority.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Job<K>> {
        self.wake(now);
        if self.closed {
            return None;
        }
        let mut most_urgent = self.ready.first_entry()?;
        let key = most_urgent.get_mut().pop().expect("a priority without keys must not be kept");
        if most_urgent.get().len() == 0 {
            most_urgent.remove();
        }
        let item = self.items.get_mut(&key).expect("a ready key must have an item");
        let Stage::Ready { since, .. } = item.place else {
            unreachable!("a key in the ready list must be ready");
        };
        item.place = Stage::Running { since: now };
        self.running += 1;
        if let Some(interval) = self.interval {
            self.rest(&key, later(now, interval));
        }
        Some(Job { key, waited: now.saturating_duration_since(since) })
    }

    /// Ends the run of `key`. Returns the delay before its retry, if it failed.
    pub(crate) fn finish(&mut self, key: &K, outcome: Outcome, now: Instant) -> Option<Duration> {
        let item = self.items.remove(key)?;
        debug_assert!(matches!(item.place, Stage::Running { .. }), "only a running key can finish");
        self.running -= 1;
        let (failures, retry_at) = match outcome {
            Outcome::Done | Outcome::RequeueAfter(_) => (0, None),
            // An event ran the key before its retry was due: neither the count nor the time moves.
            Outcome::Failed if item.retry_at.is_some_and(|at| at > now) => (item.failures, item.retry_at),
            Outcome::Failed => {
                let failures = item.failures.saturating_add(1);
                let shared = self.retries.as_mut().map_or(Duration::ZERO, |bucket| bucket.take(now));
                let delay = self.jitter.shorten(self.backoff.delay(failures), key, failures);
                (failures, Some(later(now, delay.max(shared))))
            }
        };
        if self.closed {
            return None;
        }
        let retry = retry_at.map(|at| at.saturating_duration_since(now));
        if let Some(priority) = item.again {
            match self.not_before(key, now) {
                at if at > now => self.make_waiting(key.clone(), priority, at, failures, retry_at),
                _ => self.make_ready(key.clone(), priority, now, failures, retry_at),
            }
        } else if let Some(at) = retry_at {
            let at = self.not_before(key, at);
            self.make_waiting(key.clone(), Priority::NORMAL, at, failures, retry_at);
        } else if let Outcome::RequeueAfter(delay) = outcome {
            let at = self.not_before(key, later(now, delay));
            self.make_waiting(key.clone(), Priority::NORMAL, at, 0, None);
        }
        retry
    }

    /// When the next waiting key becomes ready.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _, _)| *at)
    }

    /// Stops handing out keys; those that run may still finish.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.ready.clear();
        self.waiting.clear();
        self.items.retain(|_, item| matches!(item.place, Stage::Running { .. }));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn running(&self) -> usize {
        self.running
    }

    pub(crate) fn is_idle(&mut self, now: Instant) -> bool {
        self.wake(now);
        self.running == 0 && self.ready.is_empty()
    }

    /// How many keys are ready, by priority.
    pub(crate) fn depth(&self) -> BTreeMap<Priority, usize> {
        let mut depth = BTreeMap::new();
        for (Reverse(priority), lanes) in &self.ready {
            depth.insert(*priority, lanes.len());
        }
        depth
    }

    /// Every key, where it is, since or until when, and its failures in a row.
    pub(crate) fn keys(&self, now: Instant) -> Vec<(K, &'static str, Duration, u32)> {
        let seen = |(key, item): (&K, &Item)| {
            let (stage, time) = match item.place {
                Stage::Ready { since, .. } => ("ready", now.saturating_duration_since(since)),
                Stage::Waiting { until, .. } => ("waiting", until.saturating_duration_since(now)),
                Stage::Running { since } => ("running", now.saturating_duration_since(since)),
            };
            (key.clone(), stage, time, item.failures)
        };
        self.items.iter().map(seen).collect()
    }

    /// Every key that could be handed out now, with its priority.
    #[cfg(test)]
    pub(crate) fn ready_keys(&mut self, now: Instant) -> Vec<(i32, K)> {
        self.wake(now);
        let ready = |(key, item): (&K, &Item)| match item.place {
            Stage::Ready { priority, .. } => Some((priority.0, key.clone())),
            _ => None,
        };
        self.items.iter().filter_map(ready).collect()
    }

    /// Total and longest time that the running keys have been running.
    pub(crate) fn unfinished(&self, now: Instant) -> (Duration, Duration) {
        let mut total = Duration::ZERO;
        let mut longest = Duration::ZERO;
        for item in self.items.values() {
            if let Stage::Running { since } = item.place {
                let age = now.saturating_duration_since(since);
                total = total.saturating_add(age);
                longest = longest.max(age);
            }
        }
        (total, longest)
    }

    /// The time itself, or the end of the key's rest if that is later.
    fn not_before(&self, key: &K, at: Instant) -> Instant {
        self.resting.get(key).map_or(at, |rest| at.max(*rest))
    }

    fn rest(&mut self, key: &K, until: Instant) {
        if let Some(old) = self.resting.insert(key.clone(), until) {
            self.rests.remove(&(old, key.clone()));
        }
        self.rests.insert((until, key.clone()));
    }

    fn take_ready(&mut self, priority: Priority, sequence: u64, key: &K) {
        if let Some(lanes) = self.ready.get_mut(&Reverse(priority)) {
            lanes.remove(sequence, key);
            if lanes.len() == 0 {
                self.ready.remove(&Reverse(priority));
            }
        }
    }

    /// Moves every key whose wait is over into the ready list, and forgets rests that are over.
    fn wake(&mut self, now: Instant) {
        while let Some((until, _)) = self.rests.first()
            && *until <= now
        {
            let (_, key) = self.rests.pop_first().expect("the first element was just seen");
            self.resting.remove(&key);
        }
        while let Some((at, _, _)) = self.waiting.first()
            && *at <= now
        {
            let (at, _, key) = self.waiting.pop_first().expect("the first element was just seen");
            let item = self.items.get(&key).expect("a waiting key must have an item");
            let Stage::Waiting { priority, .. } = item.place else {
                unreachable!("a key in the waiting list must be waiting");
            };
            let (failures, retry_at) = (item.failures, item.retry_at);
            self.make_ready(key, priority, at, failures, retry_at);
        }
    }

    fn make_ready(
        &mut self,
        key: K,
        priority: Priority,
        since: Instant,
        failures: u32,
        retry_at: Option<Instant>,
    ) {
        let sequence = self.next_sequence();
        self.ready.entry(Reverse(priority)).or_default().insert(sequence, key.clone());
        let place = Stage::Ready { priority, sequence, since };
        self.items.insert(key, Item { place, again: None, failures, retry_at });
    }

    fn make_waiting(
        &mut self,
        key: K,
        priority: Priority,
        until: Instant,
        failures: u32,
        retry_at: Option<Instant>,
    ) {
        let sequence = self.next_sequence();
        self.waiting.insert((until, sequence, key.clone()));
        let place = Stage::Waiting { until, sequence, priority };
        self.items.insert(key, Item { place, again: None, failures, retry_at });
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
