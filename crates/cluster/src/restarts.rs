//! Parts of the control plane that are started again when they die, and who may know of it.
//!
//! No object may end the process: a part that panics on one is reported, begins anew after a pause, and meanwhile the
//! API server says that it is not ready. Parts enter as functions that make them; they end when the cluster stops.

use std::{
    collections::BTreeMap,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass::{Handle, Probes};

/// The pause after the first death; each one after it doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A part that has run this long is well, and its next death is the first again.
const WELL: Duration = Duration::from_secs(10);

/// Which parts have died lately.
#[derive(Clone, Default)]
pub(crate) struct Restarts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    probes: Option<Probes>,
    handle: Option<Handle>,
    /// By part: why it died, and when it is well again.
    died: BTreeMap<&'static str, (String, Instant)>,
}

impl Restarts {
    /// Why the control plane is not whole; nothing if it is.
    pub(crate) fn failure(&self) -> Option<String> {
        let state = self.state();
        let now = Instant::now();
        let died = state.died.iter().find(|(_, (_, well))| now < *well);
        let died = died.map(|(part, (why, _))| format!("the {part} died ({why}) and is restarted"));
        died.or_else(|| state.probes.as_ref().and_then(Probes::dead_worker))
    }

    /// Whose workers to look at.
    pub(crate) fn watch(&self, probes: Probes, handle: Handle) {
        let mut state = self.state();
        (state.probes, state.handle) = (Some(probes), Some(handle));
    }

    /// A hold on the controllers that run now.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.state().handle.clone()
    }

    /// Runs a part; again and again if it fails or panics. What it returns without failing is returned.
    pub(crate) async fn keep<T, F>(
        &self,
        part: &'static str,
        stop: &CancellationToken,
        start: impl Fn() -> F,
    ) -> Result<T, String>
    where
        F: Future<Output = Result<T, String>>,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            let begin = Instant::now();
            let ended = AssertUnwindSafe(async { start().await }).catch_unwind().await;
            let why = match ended {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(why)) => why,
                Err(panic) => panicked(&*panic),
            };
            if stop.is_cancelled() {
                return Err(why);
            }
            if begin.elapsed() > WELL {
                pause = FIRST_PAUSE;
            }
            tracing::error!(part, why, ?pause, "a part of the control plane died and is restarted");
            self.state().died.insert(part, (why.clone(), Instant::now() + pause + WELL));
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(why),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_part_that_dies_is_started_again_and_told_of() {
        let (restarts, stop, starts) = (Restarts::default(), CancellationToken::new(), AtomicU32::new(0));
        let part = restarts.keep("scheduler", &stop, || async {
            match starts.fetch_add(1, Ordering::Relaxed) {
                0 => panic!("no such node"),
                1 => Err("it ended".to_owned()),
                _ => {
                    stop.cancelled().await;
                    Ok(7)
                }
            }
        });
        let look = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let told = restarts.failure().unwrap();
            assert_eq!(told, "the scheduler died (no such node) and is restarted");
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert_eq!(restarts.failure(), None, "it is well again");
            assert_eq!(starts.load(Ordering::Relaxed), 3);
            stop.cancel();
        };
        assert_eq!(tokio::join!(part, look).0, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_always_dies_does_not_spin() {
        let (restarts, stop, starts) = (Restarts::default(), CancellationToken::new(), AtomicU32::new(0));
        let part = restarts.keep("scheduler", &stop, || async {
            starts.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>("again".to_owned())
        });
        let end = async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            stop.cancel();
        };
        assert!(tokio::join!(part, end).0.is_err());
        let starts = starts.load(Ordering::Relaxed);
        assert!((100..200).contains(&starts), "{starts} starts in an hour");
    }
}
