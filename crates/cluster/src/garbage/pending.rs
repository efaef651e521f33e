//! The objects that are still to be looked at: each once, in order, failed ones again after a growing delay.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::graph::Uid;

/// The delay after the first failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(5);
const LONGEST_DELAY: Duration = Duration::from_mins(1);

/// A queue without duplicates.
#[derive(Debug, Default)]
pub(super) struct Pending {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Uid>,
    queued: BTreeSet<Uid>,
    delayed: BTreeSet<(Instant, Uid)>,
    failures: BTreeMap<Uid, u32>,
}

impl State {
    fn push(&mut self, uid: Uid) {
        if self.queued.insert(uid.clone()) {
            self.ready.push_back(uid);
        }
    }

    fn pop(&mut self, now: Instant) -> Option<Uid> {
        while let Some((due, uid)) = self.delayed.first().cloned().filter(|(due, _)| *due <= now) {
            self.delayed.remove(&(due, uid.clone()));
            self.push(uid);
        }
        let uid = self.ready.pop_front()?;
        self.queued.remove(&uid);
        Some(uid)
    }
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, uids: impl IntoIterator<Item = Uid>) {
        let mut state = self.state();
        uids.into_iter().for_each(|uid| state.push(uid));
        drop(state);
        self.news.notify_one();
    }

    /// The next object; waits for one. There is one taker.
    pub(super) async fn next(&self) -> Uid {
        loop {
            let due = {
                let mut state = self.state();
                if let Some(uid) = state.pop(Instant::now()) {
                    return uid;
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            match due {
                None => self.news.notified().await,
                Some(due) => tokio::select! {
                    biased;
                    () = self.news.notified() => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }
    }

    pub(super) fn succeeded(&self, uid: &Uid) {
        self.state().failures.remove(uid);
    }

    pub(super) fn failed(&self, uid: Uid) {
        let mut state = self.state();
        let failures = state.failures.entry(uid.clone()).or_default();
        let delay = (FIRST_DELAY * 2_u32.saturating_pow((*failures).min(20))).min(LONGEST_DELAY);
        *failures += 1;
        // One retry for each object, however often it fails before its time comes.
        state.delayed.retain(|(_, waiting)| *waiting != uid);
        state.delayed.insert((Instant::now() + delay, uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_is_queued_once_and_comes_back_after_a_failure() {
        let pending = Pending::default();
        pending.add(["a", "b", "a"].map(Uid::from));
        assert_eq!(&*pending.next().await, "a");
        assert_eq!(&*pending.next().await, "b");
        let start = Instant::now();
        for _ in 0..3 {
            pending.failed("a".into());
            assert_eq!(&*pending.next().await, "a");
        }
        assert_eq!(start.elapsed(), Duration::from_millis(5 + 10 + 20));
        pending.succeeded(&"a".into());
        pending.failed("a".into());
        pending.next().await;
        assert_eq!(start.elapsed(), Duration::from_millis(40));
        // News of an object that waits for its retry makes it no second one.
        pending.failed("a".into());
        pending.add([Uid::from("a")]);
        pending.next().await;
        pending.failed("a".into());
        assert_eq!(pending.state().delayed.len(), 1);
    }
}
