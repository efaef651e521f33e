//! Somebody else, who asks for one small object again and again and writes down how long that took.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use super::client::{Api, Connection};

/// After so long a request counts as not answered.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the bystander waits between two requests.
const PAUSE: Duration = Duration::from_millis(15);

/// How long some requests took.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    times: Vec<Duration>,
    unanswered: usize,
}

impl Times {
    pub(super) fn p99(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let place = times.len().saturating_sub(1) * 99 / 100;
        times.get(place).copied().unwrap_or_default()
    }

    pub(super) fn worst(&self) -> Duration {
        self.times.iter().max().copied().unwrap_or_default()
    }

    pub(super) fn unanswered(&self) -> usize {
        self.unanswered
    }
}

/// Asks until it is stopped.
pub(super) struct Bystander {
    times: Arc<Mutex<Times>>,
    task: JoinHandle<()>,
}

impl Bystander {
    pub(super) fn start(api: Api) -> Self {
        let times = Arc::new(Mutex::new(Times::default()));
        let task = tokio::spawn(ask(api, Arc::clone(&times)));
        Self { times, task }
    }

    /// What was seen since the last turn.
    pub(super) fn turn(&self) -> Times {
        std::mem::take(&mut *lock(&self.times))
    }

    pub(super) fn stop(self) -> Times {
        self.task.abort();
        self.turn()
    }
}

fn lock(times: &Mutex<Times>) -> MutexGuard<'_, Times> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn ask(api: Api, times: Arc<Mutex<Times>>) {
    let mut connection: Option<Connection> = None;
    loop {
        let begin = Instant::now();
        let answered = tokio::time::timeout(TIMEOUT, one(&api, &mut connection)).await;
        let passed = begin.elapsed();
        // A lost connection is made again; only silence counts as no answer.
        if answered.is_err() || !matches!(answered, Ok(Ok(200))) {
            connection = None;
        }
        {
            let mut times = lock(&times);
            times.times.push(passed);
            times.unanswered += usize::from(answered.is_err());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn one(api: &Api, connection: &mut Option<Connection>) -> anyhow::Result<u16> {
    if connection.is_none() {
        *connection = Some(api.user(super::BYSTANDER).await?);
    }
    match connection {
        Some(connection) => Ok(connection.get("/api/v1/namespaces/default").await?.status),
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_in_a_hundred_is_the_worst_and_not_the_p99() {
        let mut times = vec![Duration::from_millis(1); 199];
        times.push(Duration::from_secs(1));
        let times = Times { times, unanswered: 0 };
        assert_eq!((times.p99(), times.worst()), (Duration::from_millis(1), Duration::from_secs(1)));
    }
}
