//! What reconciles do, recorded while somebody looks: what woke them, how long they took, which requests they made, what
//! they logged, how they ended.
//!
//! Whoever looks asks again and again ([`Runs::look`]); recording goes on for ten seconds after each time. While nobody
//! does, a run costs a load of one atomic, and nothing is kept. What is recorded is bounded in number and length, and never
//! holds what was written into a Secret.

mod layer;

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::Either};
use jiff::Timestamp;
use kube::Client;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

pub use self::layer::layer;
use crate::object::{Kind, ObjectKey};

/// How long recording goes on after somebody looked.
const LOOKED: Duration = Duration::from_secs(10);
/// How many runs are kept.
const RUNS: usize = 1000;
/// How many requests and lines of a run are kept, and how long a body or a line may be.
const LINES: usize = 200;
const LENGTH: usize = 16 * 1024;
/// How many keys are known to have been woken and have not run yet.
const WOKEN: usize = 10_000;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunResult {
    Success,
    RequeueAfter,
    Error,
    Terminal,
    Panic,
    Timeout,
}

/// A run of a reconciler that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Recorded {
    /// Its number: later runs have larger ones.
    pub id: u64,
    /// The controller.
    pub controller: String,
    /// The kind of the object, with its group as in `webservers.example.org`.
    pub resource: String,
    /// The object's namespace, or empty.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// What woke it, as far as that was seen.
    pub woken: Vec<String>,
    /// When it began.
    pub began: Timestamp,
    /// How long the key was ready before, in microseconds.
    pub waited: u64,
    /// How long it ran, in microseconds.
    pub ran: u64,
    /// The requests that the SDK made for it, in order.
    pub requests: Vec<Requested>,
    /// What it logged.
    pub logs: Vec<Logged>,
    /// How it ended: `success`, `requeue`, `error`, `terminal`, `panic` or `timeout`.
    pub outcome: String,
    /// The reason and the text of its failure.
    pub failure: Option<(String, String)>,
    /// After how many microseconds it is tried again, if that is known.
    pub next: Option<u64>,
}

/// A request of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Requested {
    /// Microseconds after the run began.
    pub at: u64,
    /// How long the answer took, in microseconds.
    pub took: u64,
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The HTTP status of the answer; 0 if there was none.
    pub code: u16,
    /// What was sent, if it was not too long.
    pub body: String,
    /// The revision of the object that was answered.
    pub revision: String,
}

/// A line that a run logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Logged {
    /// Microseconds after the run began.
    pub at: u64,
    /// `ERROR`, `WARN` or `INFO`.
    pub level: String,
    /// The line.
    pub text: String,
}

/// A key in the queue of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Queued {
    /// The controller.
    pub controller: String,
    /// The object's namespace, or empty.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// `ready`, `waiting` or `running`.
    pub place: String,
    /// For how many milliseconds it has been ready or has run, or will still wait.
    pub millis: u64,
    /// How often it has failed in a row.
    pub failures: u32,
}

/// What somebody sees who looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Looked {
    /// The runs that have ended since, oldest first.
    pub runs: Vec<Recorded>,
    /// The queues now.
    pub queue: Vec<Queued>,
}

/// The record of an operator's runs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Runs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    last: u64,
    runs: VecDeque<Recorded>,
    woken: BTreeMap<(Arc<str>, ObjectKey), Vec<String>>,
}

/// A run that is being recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    started: Instant,
    run: Mutex<Recorded>,
}

tokio::task_local! {
    static RECORDING: Arc<Recording>;
}

impl Runs {
    /// The runs that ended after the one with number `since`. They are recorded for ten seconds from now.
    pub fn look(&self, since: u64) -> Vec<Recorded> {
        let mut state = self.lock();
        state.until = Some(Instant::now() + LOOKED);
        self.0.on.store(true, Ordering::Relaxed);
        state.runs.iter().filter(|run| run.id > since).cloned().collect()
    }

    /// Whether somebody looks.
    pub(crate) fn is_on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change of an object has woken a key.
    pub(crate) fn woke(&self, controller: &Arc<str>, key: &ObjectKey, kind: &Kind, by: &ObjectKey) {
        if !self.is_on() {
            return;
        }
        let mut state = self.lock();
        let place = (controller.clone(), key.clone());
        if state.woken.len() >= WOKEN && !state.woken.contains_key(&place) {
            return;
        }
        let causes = state.woken.entry(place).or_default();
        let cause = format!("{} {by}", kind.kind);
        if causes.len() < 8 && !causes.contains(&cause) {
            causes.push(cause);
        }
    }

    /// Begins to record a run, if somebody looks.
    pub(crate) fn begin(
        &self,
        controller: &Arc<str>,
        kind: &Kind,
        key: &ObjectKey,
        waited: Duration,
    ) -> Option<Arc<Recording>> {
        if !self.is_on() {
            return None;
        }
        let mut state = self.lock();
        let now = Instant::now();
        if state.until.is_none_or(|until| until < now) {
            self.0.on.store(false, Ordering::Relaxed);
            *state = State { last: state.last, ..State::default() };
            return None;
        }
        let woken = state.woken.remove(&(controller.clone(), key.clone())).unwrap_or_default();
        let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
        let run = Recorded {
            controller: controller.to_string(),
            resource: format!("{}{group}", kind.plural),
            namespace: key.namespace().unwrap_or_default().to_owned(),
            name: key.name().to_owned(),
            woken,
            began: Timestamp::now(),
            waited: micros(waited),
            ..Recorded::default()
        };
        Some(Arc::new(Recording { started: now, run: Mutex::new(run) }))
    }

    /// The run has ended, and is tried again after `next`.
    pub(crate) fn end(
        &self,
        recording: &Recording,
        verdict: RunResult,
        failure: Option<(String, String)>,
        next: Option<Duration>,
    ) {
        let mut run = std::mem::take(&mut *recording.lock());
        run.ran = micros(recording.started.elapsed());
        word(verdict).clone_into(&mut run.outcome);
        run.failure = failure;
        run.next = next.map(micros);
        let mut state = self.lock();
        state.last += 1;
        run.id = state.last;
        if state.runs.len() == RUNS {
            state.runs.pop_front();
        }
        state.runs.push_back(run);
    }
}

impl Recording {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, level: &str, mut text: String) {
        let mut run = self.lock();
        if run.logs.len() < LINES {
            shorten(&mut text);
            run.logs.push(Logged { at: micros(self.started.elapsed()), level: level.to_owned(), text });
        }
    }
}

fn word(verdict: RunResult) -> &'static str {
    match verdict {
        RunResult::Success => "success",
        RunResult::RequeueAfter => "requeue",
        RunResult::Error => "error",
        RunResult::Terminal => "terminal",
        RunResult::Panic => "panic",
        RunResult::Timeout => "timeout",
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn shorten(text: &mut String) {
    if text.len() > LENGTH {
        let end = (0..=LENGTH).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('\u{2026}');
    }
}

/// Runs a future as part of a recorded run, if it is recorded.
pub(crate) async fn within<F: Future>(recording: Option<Arc<Recording>>, future: F) -> F::Output {
    let future = std::pin::pin!(future);
    match recording {
        Some(recording) => RECORDING.scope(recording, future).await,
        None => future.await,
    }
}

/// Sends a request and reads the answer, which a run that is recorded remembers.
///
/// One that is not is the client's own future and nothing around it: what awaits it stays as small as it was.
pub(crate) fn send(
    client: &Client,
    request: http::Request<Vec<u8>>,
) -> impl Future<Output = kube::Result<String>> + Send {
    match RECORDING.try_with(Clone::clone) {
        Ok(recording) => Either::Left(remember(recording, client, request).boxed()),
        Err(_) => Either::Right(client.request_text(request)),
    }
}

async fn remember(
    recording: Arc<Recording>,
    client: &Client,
    request: http::Request<Vec<u8>>,
) -> kube::Result<String> {
    let path = request.uri().to_string();
    let mut body = if is_secret(&path) {
        "(what is written into a Secret is not recorded)".to_owned()
    } else {
        String::from_utf8_lossy(request.body()).into_owned()
    };
    shorten(&mut body);
    let method = request.method().to_string();
    let began = Instant::now();
    let at = micros(recording.started.elapsed());
    let answer = client.request_text(request).await;
    let code = match &answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(_) => 0,
    };
    let revision = answer.as_deref().map(revision).unwrap_or_default();
    let mut run = recording.lock();
    if run.requests.len() < LINES {
        run.requests.push(Requested {
            at,
            took: micros(began.elapsed()),
            method,
            path,
            code,
            body,
            revision,
        });
    }
    drop(run);
    answer
}

fn is_secret(path: &str) -> bool {
    path.split(['/', '?']).any(|part| part == "secrets")
}

/// The revision of an answered object.
fn revision(answer: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Answer {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        resource_version: Option<String>,
    }
    let answer: Answer = serde_json::from_str(answer).unwrap_or_default();
    answer.metadata.resource_version.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Kind {
        Kind::of::<k8s_openapi::api::core::v1::ConfigMap>()
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_recorded_until_somebody_looks_and_soon_after() {
        let (runs, name, key) = (Runs::default(), Arc::from("c"), ObjectKey::new(Some("a"), "b"));
        runs.woke(&name, &key, &kind(), &key);
        assert!(runs.begin(&name, &kind(), &key, Duration::ZERO).is_none());
        assert!(runs.look(0).is_empty());
        runs.woke(&name, &key, &kind(), &key);
        let recording = runs.begin(&name, &kind(), &key, Duration::from_millis(2)).unwrap();
        runs.end(
            &recording,
            RunResult::Error,
            Some(("Reason".into(), "text".into())),
            Some(Duration::from_secs(1)),
        );
        let seen = runs.look(0);
        assert_eq!((seen[0].id, seen[0].waited, seen[0].next), (1, 2000, Some(1_000_000)));
        assert_eq!(
            (seen[0].woken.as_slice(), seen[0].outcome.as_str()),
            (["ConfigMap a/b".to_owned()].as_slice(), "error")
        );
        assert!(runs.look(1).is_empty());
        tokio::time::advance(LOOKED * 2).await;
        assert!(runs.begin(&name, &kind(), &key, Duration::ZERO).is_none(), "nobody has looked for long");
        assert!(!runs.is_on() && runs.lock().runs.is_empty(), "and nothing is kept");
    }

    #[tokio::test]
    async fn a_run_keeps_a_bounded_number_of_bounded_lines() {
        let runs = Runs::default();
        runs.look(0);
        let key = ObjectKey::cluster("b");
        let recording = runs.begin(&Arc::from("c"), &kind(), &key, Duration::ZERO).unwrap();
        for _ in 0..LINES * 2 {
            recording.log("INFO", "\u{e9}".repeat(LENGTH));
        }
        runs.end(&recording, RunResult::Success, None, None);
        let run = runs.look(0).remove(0);
        assert_eq!(run.logs.len(), LINES);
        assert!(run.logs.iter().all(|line| line.text.len() < LENGTH + 8));
    }

    #[test]
    fn what_goes_into_secrets_is_known_by_the_path() {
        assert!(
            is_secret("/api/v1/namespaces/a/secrets/b?x=y") && is_secret("/api/v1/namespaces/a/secrets?x")
        );
        assert!(!is_secret("/api/v1/namespaces/a/configmaps/secretsauce"));
    }
}
