//! The reconciles of operators, gathered while a page is open: from an operator in this process, or over the metrics port
//! of another.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::{sync::watch, time::Instant};
use windlass::{
    Handle,
    kube::{Client, Config},
    runs::{Looked, Queued, Recorded},
};

use crate::{
    deployed::{self, Deployed},
    index::Index,
};

/// How often operators are asked.
const ASK: Duration = Duration::from_millis(250);
/// How many runs are kept.
const KEPT: usize = 2000;
/// How many of them are those of Kubernetes' own controllers.
const BUILT_IN: usize = 500;

/// How often operators are looked for in the cluster.
const FIND: Duration = Duration::from_secs(10);

/// Where runs come from. Clones share it; operators may come and go while the page is served.
#[derive(Clone, Default)]
pub struct Operators(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    sources: Vec<Source>,
    /// By whom the cluster is asked for more of them.
    finder: Option<Client>,
}

#[derive(Clone)]
struct Source {
    way: Way,
    /// The number of its last run that was seen.
    since: u64,
    /// Whether these are controllers of Kubernetes itself: there is much of it, and it is seldom what somebody looks for.
    built_in: bool,
}

impl Source {
    fn new(way: Way) -> Self {
        Self { way, since: 0, built_in: false }
    }
}

#[derive(Clone)]
enum Way {
    Here(Handle),
    /// In this process, and perhaps another one each time.
    Now(Arc<dyn Fn() -> Option<Handle> + Send + Sync>),
    There(Client),
    /// In a Pod, through the API server's proxy.
    Deployed(Client, Arc<Deployed>),
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operators").field(&self.lock().sources.len()).finish()
    }
}

impl Operators {
    /// Adds an operator of this process.
    pub fn add(&self, handle: Handle) {
        self.lock().sources.push(Source::new(Way::Here(handle)));
    }

    /// Adds controllers of Kubernetes itself that run in this process: those that are there when they are asked for.
    pub fn add_built_in(&self, controllers: impl Fn() -> Option<Handle> + Send + Sync + 'static) {
        let way = Way::Now(Arc::new(controllers));
        self.lock().sources.push(Source { built_in: true, ..Source::new(way) });
    }

    /// Reads the runs of this operator, by its metrics port, and no longer of those that were added before.
    pub fn replace(&self, config: Config) -> Result<(), windlass::kube::Error> {
        let client = Client::try_from(config)?;
        let mut known = self.lock();
        known.sources.retain(|source| source.built_in);
        known.sources.push(Source::new(Way::There(client)));
        Ok(())
    }

    /// Looks for operators in the cluster itself, for as long as somebody sees their runs.
    pub fn find(&self, client: Client) {
        self.lock().finder = Some(client);
    }

    /// Those in the cluster are these now.
    async fn refresh(&self) {
        let Some(client) = self.lock().finder.clone() else { return };
        // Who may not list Pods sees no operators.
        let Ok(found) = deployed::find(&client).await else { return };
        let mut known = self.lock();
        known.sources.retain(|source| match &source.way {
            Way::Deployed(_, deployed) => found.iter().any(|found| found.uid == deployed.uid),
            Way::Here(_) | Way::Now(_) | Way::There(_) => true,
        });
        for found in found {
            let same = |source: &Source| matches!(&source.way, Way::Deployed(_, deployed) if deployed.uid == found.uid);
            if !known.sources.iter().any(same) {
                known.sources.push(Source::new(Way::Deployed(client.clone(), Arc::new(found))));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        let known = self.lock();
        known.sources.is_empty() && known.finder.is_none()
    }

    /// What is new at all of them.
    async fn look(&self) -> (Vec<(Recorded, bool)>, Vec<Queued>) {
        let sources = self.lock().sources.clone();
        let (mut runs, mut queue) = (Vec::new(), Vec::new());
        for (at, source) in sources.into_iter().enumerate() {
            let looked = match &source.way {
                Way::Here(handle) => handle.look(source.since),
                Way::Now(handle) => handle().map(|handle| handle.look(source.since)).unwrap_or_default(),
                Way::There(client) => ask(client, source.since).await.unwrap_or_default(),
                Way::Deployed(client, deployed) => {
                    deployed.ask(client, source.since).await.unwrap_or_default()
                }
            };
            if let Some(last) = looked.runs.last()
                && let Some(source) = self.lock().sources.get_mut(at)
            {
                source.since = last.id;
            }
            runs.extend(looked.runs.into_iter().map(|run| (run, source.built_in)));
            if !source.built_in {
                queue.extend(looked.queue);
            }
        }
        (runs, queue)
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
    pub(crate) built_in: bool,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    built_in: bool,
}

impl From<&Numbered> for Summary {
    fn from(Numbered { id, run, built_in }: &Numbered) -> Self {
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
            built_in: *built_in,
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
        let mut found: Option<Instant> = None;
        loop {
            tokio::time::sleep(ASK).await;
            if !index.is_viewed() || operators.is_empty() {
                continue;
            }
            if found.is_none_or(|found| found.elapsed() >= FIND) {
                operators.refresh().await;
                found = Some(Instant::now());
            }
            let (runs, queue) = operators.look().await;
            let mut state = self.lock();
            let new = !runs.is_empty() || state.queue != queue;
            for (run, built_in) in runs {
                state.last += 1;
                let id = state.last;
                // What Kubernetes itself does must not push out what an operator did.
                let built_ins = state.runs.iter().filter(|run| run.built_in).count();
                if built_in && built_ins == BUILT_IN {
                    let oldest = state.runs.iter().position(|run| run.built_in).unwrap_or(0);
                    state.runs.remove(oldest);
                } else if state.runs.len() == KEPT {
                    state.runs.pop_front();
                }
                state.runs.push_back(Numbered { id, run, built_in });
            }
            state.queue = queue;
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
