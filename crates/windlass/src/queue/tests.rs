//! The queue's claims, by example and with a paused clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::*;

fn state() -> (State<u8>, Instant) {
    (State::new(Pace { jitter: Jitter::NONE, ..Pace::default() }), Instant::now())
}

/// Numbers below 100 share a lane, as do those of every further hundred.
impl QueueKey for u8 {
    fn lane(&self) -> Arc<str> {
        ["zero", "one", "two"][usize::from(*self) / 100].into()
    }
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn keys(state: &mut State<u8>, now: Instant) -> Vec<u8> {
    std::iter::from_fn(|| state.next(now).map(|job| job.key)).collect()
}

#[test]
fn keys_leave_in_the_order_in_which_they_came() {
    let (mut queue, now) = state();
    for key in [7, 3, 9, 3, 1, 7] {
        queue.add(key, Priority::NORMAL, now);
    }
    assert_eq!(keys(&mut queue, now), [7, 3, 9, 1]);
}

#[test]
fn live_events_pass_the_startup_resync() {
    let (mut queue, now) = state();
    for key in [1, 2, 3] {
        queue.add(key, Priority::LOW, now);
    }
    queue.add(9, Priority::NORMAL, now);
    queue.add(3, Priority::NORMAL, now);
    queue.add(9, Priority::LOW, now);
    assert_eq!(keys(&mut queue, now), [3, 9, 1, 2]);
}

#[test]
fn a_key_that_is_added_while_it_runs_runs_once_more() {
    let (mut queue, now) = state();
    queue.add(1, Priority::NORMAL, now);
    assert_eq!(keys(&mut queue, now), [1]);
    queue.add(1, Priority::NORMAL, now);
    queue.add(1, Priority::NORMAL, now);
    assert_eq!(queue.next(now), None, "it runs already");
    queue.finish(&1, Outcome::Done, now);
    assert_eq!(keys(&mut queue, now), [1]);
    queue.finish(&1, Outcome::Done, now);
    assert_eq!(queue.next(now), None);
}

#[test]
fn the_backoff_doubles_from_5_ms_to_1000_s_and_a_success_resets_it() {
    let (mut queue, mut now) = state();
    queue.add(1, Priority::NORMAL, now);
    let mut delays = Vec::new();
    for _ in 0..20 {
        assert_eq!(keys(&mut queue, now), [1]);
        let delay = queue.finish(&1, Outcome::Failed, now).unwrap();
        delays.push(delay);
        assert_eq!(queue.next(now + delay - ms(1)), None, "not before its time");
        now += delay;
    }
    assert_eq!(delays[..4], [ms(5), ms(10), ms(20), ms(40)]);
    assert_eq!(delays[17], ms(5 << 17));
    assert_eq!(delays[18..], [Duration::from_secs(1000); 2]);
    assert_eq!(keys(&mut queue, now), [1]);
    queue.finish(&1, Outcome::Done, now);
    queue.add(1, Priority::NORMAL, now);
    assert_eq!(keys(&mut queue, now), [1]);
    assert_eq!(queue.finish(&1, Outcome::Failed, now), Some(ms(5)));
}

#[test]
fn events_during_the_backoff_run_the_key_without_making_the_backoff_longer() {
    let (mut queue, start) = state();
    queue.add(1, Priority::NORMAL, start);
    keys(&mut queue, start);
    queue.finish(&1, Outcome::Failed, start);
    for _ in 0..50 {
        queue.add(1, Priority::NORMAL, start + ms(1));
        assert_eq!(keys(&mut queue, start + ms(1)), [1]);
        assert_eq!(queue.finish(&1, Outcome::Failed, start + ms(1)), Some(ms(4)));
    }
    assert_eq!(keys(&mut queue, start + ms(5)), [1]);
    assert_eq!(queue.finish(&1, Outcome::Failed, start + ms(5)), Some(ms(10)));
}

#[test]
fn a_requeue_waits_its_time_unless_an_event_comes_first() {
    let (mut queue, now) = state();
    queue.add(1, Priority::NORMAL, now);
    keys(&mut queue, now);
    queue.finish(&1, Outcome::RequeueAfter(ms(100)), now);
    assert_eq!(queue.next_deadline(), Some(now + ms(100)));
    queue.add(1, Priority::NORMAL, now + ms(10));
    assert_eq!(keys(&mut queue, now + ms(10)), [1]);
    queue.finish(&1, Outcome::Done, now + ms(10));
    assert_eq!(queue.next(now + ms(200)), None, "the requeue was used up");
}

#[test]
fn an_earlier_delay_wins() {
    let (mut queue, now) = state();
    queue.add_after(1, Priority::NORMAL, ms(100), now);
    queue.add_after(1, Priority::NORMAL, ms(50), now);
    queue.add_after(1, Priority::NORMAL, ms(70), now);
    assert_eq!(queue.next(now + ms(49)), None);
    assert_eq!(keys(&mut queue, now + ms(50)), [1]);
    queue.finish(&1, Outcome::Done, now + ms(50));
    assert_eq!(queue.next(now + ms(500)), None);
}

#[test]
fn the_depth_counts_ready_keys_by_priority() {
    let (mut queue, now) = state();
    queue.add(1, Priority::LOW, now);
    queue.add(2, Priority::LOW, now);
    queue.add(3, Priority::NORMAL, now);
    queue.add_after(4, Priority::NORMAL, ms(1), now);
    assert_eq!(queue.depth(), BTreeMap::from([(Priority::LOW, 2), (Priority::NORMAL, 1)]));
    queue.next(now);
    assert_eq!(queue.unfinished(now + ms(3)), (ms(3), ms(3)));
}

#[tokio::test(start_paused = true)]
async fn workers_sleep_until_a_key_is_due() {
    let queue = Arc::new(Queue::new(Pace::default()));
    queue.add_after(1, Priority::NORMAL, Duration::from_hours(1));
    let started = Instant::now();
    assert_eq!(queue.next().await.map(|job| job.key), Some(1));
    assert_eq!(started.elapsed().as_secs(), 3600);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_ever_is_run_by_an_event() {
    let queue = Arc::new(Queue::new(Pace::default()));
    queue.add_after(1, Priority::NORMAL, Duration::MAX);
    for _ in 0..2 {
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await.map(|job| job.key) }
        });
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(!worker.is_finished(), "nothing happened that it waits for");
        queue.add(1, Priority::NORMAL);
        assert_eq!(worker.await.unwrap(), Some(1));
        queue.finish(&1, Outcome::RequeueAfter(Duration::MAX));
    }
}

#[tokio::test(start_paused = true)]
async fn every_waiting_worker_gets_a_key() {
    let queue = Arc::new(Queue::new(Pace::default()));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.map(|job| job.key) })
        })
        .collect();
    tokio::task::yield_now().await;
    for key in 0..4_u8 {
        queue.add(key, Priority::NORMAL);
    }
    let mut seen = BTreeSet::new();
    for worker in workers {
        seen.extend(worker.await.unwrap());
    }
    assert_eq!(seen, BTreeSet::from([0, 1, 2, 3]));
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_runs_and_starts_nothing_more() {
    let queue = Arc::new(Queue::new(Pace::default()));
    queue.add(1, Priority::NORMAL);
    queue.add(2, Priority::NORMAL);
    let job = queue.next().await.unwrap();
    queue.close();
    assert!(queue.next().await.is_none());
    assert!(!queue.add(3, Priority::NORMAL));
    let drained = tokio::spawn({
        let queue = queue.clone();
        async move { queue.drained().await }
    });
    tokio::time::sleep(ms(10)).await;
    assert!(!drained.is_finished(), "key 1 still runs");
    queue.finish(&job.key, Outcome::Failed);
    drained.await.unwrap();
}

#[test]
fn a_full_namespace_does_not_hold_up_the_others() {
    let (mut queue, now) = state();
    for key in [1, 2, 3, 4, 5, 101, 102, 201] {
        queue.add(key, Priority::NORMAL, now);
    }
    assert_eq!(keys(&mut queue, now), [1, 101, 201, 2, 102, 3, 4, 5]);
}

#[test]
fn retries_share_a_rate_and_other_runs_do_not() {
    let retries = Some(RateLimit { per_second: 10, burst: 2 });
    let pace = Pace { retries, jitter: Jitter::NONE, ..Pace::default() };
    let (mut queue, now) = (State::new(pace), Instant::now());
    for key in 0..4 {
        queue.add(key, Priority::NORMAL, now);
    }
    assert_eq!(keys(&mut queue, now), [0, 1, 2, 3]);
    let retries: Vec<_> = (0..4).map(|key| queue.finish(&key, Outcome::Failed, now).unwrap()).collect();
    assert_eq!(retries, [ms(5), ms(5), ms(100), ms(200)]);
    queue.add(3, Priority::NORMAL, now);
    assert_eq!(keys(&mut queue, now), [3], "an event waits for nothing");
}

#[test]
fn keys_that_failed_together_come_back_apart_and_the_same_seed_repeats_it() {
    let retries = |seed| -> Vec<Duration> {
        let jitter = Jitter { percent: 50, seed };
        let pace = Pace { retries: None, jitter, ..Pace::default() };
        let (mut queue, now) = (State::new(pace), Instant::now());
        for key in 0..8 {
            queue.add(key, Priority::NORMAL, now);
        }
        let failed = keys(&mut queue, now).into_iter();
        failed.map(|key| queue.finish(&key, Outcome::Failed, now).unwrap()).collect()
    };
    assert_eq!(BTreeSet::from_iter(retries(1)).len(), 8, "{:?}", retries(1));
    assert_eq!(retries(1), retries(1));
    assert_ne!(retries(1), retries(2));
}

#[test]
fn a_key_rests_between_its_runs_if_it_is_told_to() {
    let pace = Pace { interval: Some(ms(100)), ..Pace::default() };
    let (mut queue, now) = (State::new(pace), Instant::now());
    queue.add(1, Priority::NORMAL, now);
    queue.add(2, Priority::NORMAL, now);
    assert_eq!(keys(&mut queue, now), [1, 2]);
    queue.add(1, Priority::NORMAL, now + ms(5));
    queue.finish(&1, Outcome::Done, now + ms(10));
    queue.finish(&2, Outcome::Failed, now + ms(10));
    queue.add(2, Priority::NORMAL, now + ms(20));
    assert_eq!(queue.next(now + ms(99)), None, "both rest, one of them longer than its backoff");
    assert_eq!(keys(&mut queue, now + ms(100)), [1, 2]);
    queue.finish(&1, Outcome::Done, now + ms(300));
    queue.add(1, Priority::NORMAL, now + ms(301));
    assert_eq!(keys(&mut queue, now + ms(301)), [1], "a rest that is over holds up nothing");
}
