//! The queue's claims against random histories.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use proptest::prelude::*;

use super::{tests::ms, *};

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Add(u8, bool),
    AddAfter(u8, u16),
    Next,
    Finish(u8, u8),
    Wait(u16),
}

/// Keys of three lanes.
fn some_key() -> impl Strategy<Value = u8> + Clone {
    (0..3_u8, 0..4_u8).prop_map(|(lane, key)| lane * 100 + key)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (some_key(), any::<bool>()).prop_map(|(key, low)| Step::Add(key, low)),
        1 => (some_key(), 0..2000_u16).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        5 => Just(Step::Next),
        5 => (some_key(), 0..3_u8).prop_map(|(key, outcome)| Step::Finish(key, outcome)),
        2 => (0..3000_u16).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..160)
}

fn paces() -> impl Strategy<Value = Pace> {
    let retries = prop::option::of((1..20_u32, 1..5_u32));
    (retries, prop::option::of(1..500_u64), jitters()).prop_map(|(retries, interval, jitter)| Pace {
        retries: retries.map(|(per_second, burst)| RateLimit { per_second, burst }),
        interval: interval.map(ms),
        jitter,
        ..Pace::default()
    })
}

fn jitters() -> impl Strategy<Value = Jitter> {
    (0..=100_u8, any::<u64>()).prop_map(|(percent, seed)| Jitter { percent, seed })
}

/// Every delay that a `Duration` can hold, the ends more often than chance would.
fn any_delay() -> impl Strategy<Value = Duration> + Clone {
    let ends = [Duration::ZERO, Duration::MAX, Duration::from_secs(i64::MAX as u64), later::LONGEST];
    prop_oneof![
        2 => prop::sample::select(ends.to_vec()),
        1 => any::<u64>().prop_map(Duration::from_secs),
        1 => (0..2000_u64).prop_map(ms),
    ]
}

/// Which keys are ready, and since when: what the queue must agree with.
#[derive(Default)]
struct Model {
    running: BTreeSet<u8>,
    owed: BTreeSet<u8>,
    /// How many turns each lane has waited for, with a ready key in it.
    passed_over: BTreeMap<(i32, Arc<str>), usize>,
}

impl Model {
    fn check_turn(&mut self, key: u8, ready: &[(i32, u8)]) -> Result<(), TestCaseError> {
        let urgency = ready.iter().map(|(priority, _)| *priority).max().unwrap_or_default();
        let lane = key.lane();
        prop_assert!(ready.contains(&(urgency, key)), "{key} is not among the most urgent of {ready:?}");
        let waiting: BTreeSet<Arc<str>> =
            ready.iter().filter(|(of, _)| *of == urgency).map(|(_, key)| key.lane()).collect();
        self.passed_over.retain(|(of, lane), _| *of != urgency || waiting.contains(lane));
        self.passed_over.insert((urgency, lane.clone()), 0);
        for other in waiting.into_iter().filter(|other| *other != lane) {
            let turns = self.passed_over.entry((urgency, other)).or_default();
            *turns += 1;
            prop_assert!(*turns < 3, "a lane waits for more than a turn of each of the two others");
        }
        Ok(())
    }
}

proptest! {
    /// Replays a history against a model that knows which keys are owed a run and which lanes wait.
    #[test]
    fn no_key_is_lost_none_runs_twice_at_once_and_lanes_take_turns(history in steps(), pace in paces()) {
        let (mut queue, mut now) = (State::new(pace), Instant::now());
        let mut model = Model::default();
        for step in history {
            match step {
                Step::Add(key, low) => {
                    queue.add(key, if low { Priority::LOW } else { Priority::NORMAL }, now);
                    model.owed.insert(key);
                    if !low {
                        // It may have left the lower priority, and its lane may stand at the end there.
                        model.passed_over.remove(&(Priority::LOW.0, key.lane()));
                    }
                }
                Step::AddAfter(key, delay) => {
                    queue.add_after(key, Priority::NORMAL, ms(delay.into()), now);
                }
                Step::Next => {
                    let ready = queue.ready_keys(now);
                    if let Some(job) = queue.next(now) {
                        prop_assert!(model.running.insert(job.key), "{} runs already", job.key);
                        model.owed.remove(&job.key);
                        model.check_turn(job.key, &ready)?;
                    } else if pace.interval.is_none() {
                        prop_assert!(model.owed.is_subset(&model.running), "{:?} is owed a run", model.owed);
                    }
                }
                Step::Finish(key, outcome) if model.running.remove(&key) => {
                    let outcome = [Outcome::Done, Outcome::Failed, Outcome::RequeueAfter(ms(7))][usize::from(outcome)];
                    let retry = queue.finish(&key, outcome, now);
                    prop_assert_eq!(retry.is_some(), outcome == Outcome::Failed);
                }
                Step::Finish(..) => {}
                Step::Wait(delay) => now += ms(delay.into()),
            }
            prop_assert_eq!(queue.running(), model.running.len());
        }
        // Whatever is still owed runs once the workers are free and the rests are over.
        for key in model.running {
            queue.finish(&key, Outcome::Done, now);
        }
        now += ms(1000);
        let left: BTreeSet<u8> = std::iter::from_fn(|| queue.next(now).map(|job| job.key)).collect();
        prop_assert!(model.owed.is_subset(&left), "{:?} of {:?} lost", model.owed, left);
    }

    /// Keys of one lane and one priority leave in the order in which they came, whatever other lanes do.
    #[test]
    fn a_lane_is_first_in_first_out(arrivals in prop::collection::vec(some_key(), 1..60)) {
        let (mut queue, now) = (State::new(Pace::default()), Instant::now());
        let mut expected: BTreeMap<Arc<str>, Vec<u8>> = BTreeMap::new();
        for key in arrivals {
            if queue.add(key, Priority::NORMAL, now) {
                expected.entry(key.lane()).or_default().push(key);
            }
        }
        let mut left: BTreeMap<Arc<str>, Vec<u8>> = BTreeMap::new();
        while let Some(job) = queue.next(now) {
            left.entry(job.key.lane()).or_default().push(job.key);
        }
        prop_assert_eq!(left, expected);
    }

    /// A key that always fails is retried at the same times, however many events run it in between.
    #[test]
    fn events_do_not_inflate_the_backoff(
        events in prop::collection::vec(0..700_u64, 0..40),
        jitter in jitters(),
    ) {
        let start = Instant::now();
        let pace = Pace { retries: None, jitter, ..Pace::default() };
        let ideal = undisturbed(pace, start);
        let mut queue = State::new(pace);
        let mut times: BTreeSet<Instant> = events.into_iter().map(|at| start + ms(at)).collect();
        queue.add(1, Priority::NORMAL, start);
        let mut retries = BTreeSet::new();
        let mut now = start;
        while now <= start + ms(700) {
            while queue.next(now).is_some() {
                let delay = queue.finish(&1, Outcome::Failed, now).expect("a failure must be retried");
                retries.insert(now + delay);
            }
            let event = times.pop_first();
            let due = queue.next_deadline().expect("a failed key must wait");
            now = match event {
                Some(at) if at < due => {
                    queue.add(1, Priority::NORMAL, at);
                    at
                }
                other => {
                    times.extend(other);
                    due
                }
            };
        }
        prop_assert_eq!(retries, ideal);
    }

    /// Whatever delays a history asks for, all that waits is due after the longest one at last, and nothing is lost.
    #[test]
    fn any_history_of_delays_comes_to_its_end(
        history in prop::collection::vec((some_key(), any_delay(), 0..4_u8), 1..40),
        (first, longest) in (any_delay(), any_delay()),
        interval in prop::option::of(any_delay()),
        limit in prop::option::of((any::<u32>(), any::<u32>())),
        jitter in jitters(),
    ) {
        let retries = limit.map(|(per_second, burst)| RateLimit { per_second, burst });
        let (start, backoff) = (Instant::now(), Backoff { first, longest });
        let mut queue = State::new(Pace { backoff, jitter, retries, interval });
        let mut waiting = BTreeSet::new();
        for (key, delay, what) in history {
            match what {
                0 => queue.add_after(key, Priority::NORMAL, delay, start),
                _ => drop(queue.add(key, Priority::NORMAL, start)),
            }
            waiting.insert(key);
            let outcome = [Outcome::Done, Outcome::Done, Outcome::Failed, Outcome::RequeueAfter(delay)];
            let ready: Vec<u8> = std::iter::from_fn(|| queue.next(start).map(|job| job.key)).collect();
            for key in ready {
                queue.finish(&key, outcome[usize::from(what)], start);
                if what < 2 {
                    waiting.remove(&key);
                }
            }
        }
        let left: BTreeSet<u8> =
            std::iter::from_fn(|| queue.next(start + later::LONGEST).map(|job| job.key)).collect();
        prop_assert_eq!(left, waiting);
    }

    /// A requeue is due after exactly its delay, if that is not longer than the longest.
    #[test]
    fn a_requeue_is_due_after_its_delay(delay in any_delay()) {
        let (mut queue, start) = (State::new(Pace::default()), Instant::now());
        queue.add(1, Priority::NORMAL, start);
        queue.next(start);
        queue.finish(&1, Outcome::RequeueAfter(delay), start);
        prop_assert_eq!(queue.next_deadline(), Some(start + delay.min(later::LONGEST)));
        queue.add_after(2, Priority::NORMAL, delay, start);
        queue.add(1, Priority::NORMAL, start);
        prop_assert_eq!(queue.next(start).map(|job| job.key), Some(1));
    }

    /// A delay is never longer than the backoff says, never shorter than the jitter allows, and the same again.
    #[test]
    fn jitter_stays_in_its_bounds_and_can_be_repeated(jitter in jitters(), key in some_key(), failures in 1..40_u32) {
        let delay = Backoff::default().delay(failures);
        let short = jitter.shorten(delay, &key, failures);
        let least = delay / 100 * u32::from(100 - jitter.percent);
        prop_assert!(least <= short && short <= delay, "{short:?} of {delay:?}");
        prop_assert_eq!(short, jitter.shorten(delay, &key, failures));
    }

    /// Workers on a paused clock, a close at any time: what was begun ends, once, and nothing begins afterwards.
    #[test]
    fn a_drain_loses_nothing_that_was_begun(
        jobs in prop::collection::vec((some_key(), 0..50_u64), 1..40),
        workers in 1..5_usize,
        close_at in 0..400_u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let log = runtime.expect("a runtime must start").block_on(run_and_close(jobs, workers, close_at));
        let mut running = BTreeSet::new();
        let mut closed = false;
        for entry in &log {
            match entry {
                Entry::Began(key) => {
                    prop_assert!(!closed, "{key} began after the close: {log:?}");
                    prop_assert!(running.insert(*key), "two workers on {key}: {log:?}");
                }
                Entry::Ended(key) => prop_assert!(running.remove(key), "{key} had not begun: {log:?}"),
                Entry::Closed => closed = true,
                Entry::Drained => prop_assert!(running.is_empty(), "drained too early: {log:?}"),
            }
        }
        prop_assert!(running.is_empty() && log.contains(&Entry::Drained), "{log:?}");
    }
}

/// When a key that always fails is retried, up to the first time after 700 ms, if no event ever runs it.
fn undisturbed(pace: Pace, start: Instant) -> BTreeSet<Instant> {
    let mut times = BTreeSet::new();
    let mut now = start;
    for failures in 1.. {
        if now > start + ms(700) {
            break;
        }
        now += pace.jitter.shorten(pace.backoff.delay(failures), &1_u8, failures);
        times.insert(now);
    }
    times
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Began(u8),
    Ended(u8),
    Closed,
    Drained,
}

async fn run_and_close(jobs: Vec<(u8, u64)>, workers: usize, close_at: u64) -> Vec<Entry> {
    let queue = Arc::new(Queue::new(Pace::default()));
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |log: &Mutex<Vec<Entry>>, entry| log.lock().expect("no test thread panics").push(entry);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..workers {
        let (queue, log) = (queue.clone(), log.clone());
        tasks.spawn(async move {
            while let Some(job) = queue.next().await {
                note(&log, Entry::Began(job.key));
                tokio::time::sleep(ms(u64::from(job.key) % 17 + worker as u64)).await;
                note(&log, Entry::Ended(job.key));
                let failed = job.key % 3 == 0;
                queue.finish(&job.key, if failed { Outcome::Failed } else { Outcome::Done });
            }
        });
    }
    let adding = async {
        for (key, delay) in jobs {
            tokio::time::sleep(ms(delay)).await;
            queue.add(key, Priority::NORMAL);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = adding => {}
        () = tokio::time::sleep(ms(close_at)) => {}
    }
    queue.close();
    note(&log, Entry::Closed);
    queue.drained().await;
    note(&log, Entry::Drained);
    while tasks.join_next().await.is_some() {}
    let log = log.lock().expect("no test thread panics");
    log.clone()
}
