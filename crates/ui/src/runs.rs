//! The reconciles of operators, gathered while a page is open: from an operator in this process, or over the metrics port
//! of another.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::sync::watch;
use windlass::{
    Handle,
    kube::{Client, Config},
    runs::{Looked, Queued, Recorded},
};

use crate::index::Index;

/// How often operators are asked.
const ASK: Duration = Duration::from_millis(250);
/// How many runs are kept.
const KEPT: usize = 2000;

/// Where runs come from. Clones share it; operators may come and go while the page is served.
#[derive(Clone, Default)]
pub struct Operators(Arc<Mutex<Vec<Source>>>);

#[derive(Clone)]
struct Source {
    way: Way,
    /// The number of its last run that was seen.
    since: u64,
}

#[derive(Clone)]
enum Way {
    Here(Handle),
    There(Client),
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operators").field(&self.lock().len()).finish()
    }
}

impl Operators {
    /// Adds an operator of this process.
    pub fn add(&self, handle: Handle) {
        self.lock().push(Source { way: Way::Here(handle), since: 0 });
    }

    /// Reads the runs of this operator, by its metrics port, and no longer of those that were added before.
    pub fn replace(&self, config: Config) -> Result<(), windlass::kube::Error> {
        let client = Client::try_from(config)?;
        *self.lock() = vec![Source { way: Way::There(client), since: 0 }];
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Source>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// What is new at all of them.
    async fn look(&self) -> Looked {
        let sources = self.lock().clone();
        let mut all = Looked::default();
        for (at, source) in sources.into_iter().enumerate() {
            let looked = match &source.way {
                Way::Here(handle) => handle.look(source.since),
                Way::There(client) => ask(client, source.since).await.unwrap_or_default(),
            };
            if let Some(last) = looked.runs.last()
                && let Some(source) = self.lock().get_mut(at)
            {
                source.since = last.id;
            }
            all.runs.extend(looked.runs);
            all.queue.extend(looked.queue);
        }
        all
    }
}

async fn ask(client: &Client, since: u64) -> Option<Looked> {
    let request = http::Request::get(format!("/debug/runs?since={since}")).body(Vec::new()).ok()?;
    // An operator that is being rebuilt does not answer, and is asked again.
    client.request(request).await.ok()
}

/// A run with the number that it has here.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) id: u64,
    pub(crate) run: Recorded,
}

/// What the browser is told of a run; the rest is fetched when somebody opens it.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    id: u64,
    controller: String,
    resource: String,
    namespace: String,
    name: String,
    began: i64,
    waited: u64,
    ran: u64,
    outcome: String,
    writes: usize,
    requests: usize,
}

impl From<&Numbered> for Summary {
    fn from(Numbered { id, run }: &Numbered) -> Self {
        Self {
            id: *id,
            controller: run.controller.clone(),
            resource: run.resource.clone(),
            namespace: run.namespace.clone(),
            name: run.name.clone(),
            began: run.began.as_millisecond(),
            waited: run.waited,
            ran: run.ran,
            outcome: run.outcome.clone(),
            writes: run.requests.iter().filter(|request| request.method != "GET").count(),
            requests: run.requests.len(),
        }
    }
}

/// The runs that were seen.
#[derive(Debug)]
pub(crate) struct Gathered {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    runs: VecDeque<Numbered>,
    last: u64,
    queue: Vec<Queued>,
}

impl Default for Gathered {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(0) }
    }
}

impl Gathered {
    /// Asks the operators for as long as somebody looks.
    pub(crate) async fn gather(self: Arc<Self>, operators: Operators, index: Arc<Index>) {
        loop {
            tokio::time::sleep(ASK).await;
            if !index.is_viewed() || operators.is_empty() {
                continue;
            }
            let looked = operators.look().await;
            let mut state = self.lock();
            let new = !looked.runs.is_empty() || state.queue != looked.queue;
            for run in looked.runs {
                state.last += 1;
                let id = state.last;
                if state.runs.len() == KEPT {
                    state.runs.pop_front();
                }
                state.runs.push_back(Numbered { id, run });
            }
            state.queue = looked.queue;
            if new {
                self.changed.send_modify(|version| *version += 1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The runs after a number, and the queues.
    pub(crate) fn since(&self, id: u64) -> (Vec<Summary>, Vec<Queued>, u64) {
        let state = self.lock();
        let runs = state.runs.iter().filter(|run| run.id > id).map(Summary::from).collect();
        (runs, state.queue.clone(), state.last)
    }

    pub(crate) fn run(&self, id: u64) -> Option<Numbered> {
        self.lock().runs.iter().find(|run| run.id == id).cloned()
    }

    /// The runs for an object, newest first.
    pub(crate) fn of(&self, resource: &str, namespace: &str, name: &str) -> Vec<Numbered> {
        let state = self.lock();
        let same = |run: &&Numbered| {
            run.run.resource == resource && run.run.namespace == namespace && run.run.name == name
        };
        state.runs.iter().rev().filter(same).take(100).cloned().collect()
    }
}
