//! The operator as a cluster runs it: under its service account, with its webhooks, and started again whenever it has
//! died or ended.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass::{Handle, LeaderElection, Operator, kube::Client, testing};
use windlass_apiserver::webhook::ServicePort;
use windlass_cluster::{Cluster, Identity};

use crate::{network::Network, story::Story};

/// How long it takes until a container that has ended runs again.
const AGAIN: Duration = Duration::from_secs(1);

/// How many runs may end at one moment of the paused clock.
const MOST_AT_ONCE: usize = 500;

pub(crate) type MakeOperator = dyn Fn() -> Operator + Send + Sync;

/// The operator of a day.
#[derive(Clone)]
pub(crate) struct Replica {
    restart: mpsc::UnboundedSender<()>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    handle: Option<Handle>,
    /// Panics of reconcilers and of the operator itself.
    panics: Vec<String>,
    runs: Runs,
}

/// How often reconcilers have run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// All in all.
    pub(crate) all: usize,
    /// The last moment at which one ended, and how many ended at that very moment.
    last: (Duration, usize),
    /// The object whose runs leave the clock no time to go on.
    pub(crate) endless: Option<String>,
}

/// What a life of the operator is made of.
struct Stage {
    make: Arc<MakeOperator>,
    network: Network,
    story: Story,
    /// The client of the operator's service account.
    account: Client,
    clock: windlass::clock::TokioClock,
    server: windlass_apiserver::ApiServer,
    leader: bool,
    shared: Arc<Mutex<Shared>>,
}

/// The namespace in which an operator runs, by kubebuilder's convention.
pub(crate) fn system(operator: &Operator) -> String {
    format!("{}-system", operator.name())
}

/// The Service of the webhooks; `None` without webhooks.
pub(crate) fn webhook_service(operator: &mut Operator) -> Option<ServicePort> {
    let namespace = system(operator);
    let connector = testing::serve_webhooks(operator, &namespace)?;
    Some(ServicePort { namespace, name: connector.service().to_owned(), port: 443 })
}

impl Replica {
    pub(crate) fn start(
        make: Arc<MakeOperator>,
        cluster: &Cluster,
        network: &Network,
        story: &Story,
        leader: bool,
    ) -> Self {
        let operator = make();
        let system = system(&operator);
        let account = Identity::service_account(&system, operator.name());
        let account = Client::new(cluster.server().as_user(account), system);
        let (restart, asked) = mpsc::unbounded_channel();
        let shared = Arc::<Mutex<Shared>>::default();
        let stage = Stage {
            make,
            network: network.clone(),
            story: story.clone(),
            account,
            clock: cluster.clock(),
            server: cluster.server().clone(),
            leader,
            shared: shared.clone(),
        };
        tokio::spawn(stage.run(asked));
        Self { restart, shared }
    }

    /// Stops the operator and starts it anew, as a rollout does.
    pub(crate) fn restart(&self) {
        let _ = self.restart.send(());
    }

    /// Whether it runs and has nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.handle().is_some_and(|handle| handle.is_idle())
    }

    /// Reconciles every object once more.
    pub(crate) fn requeue_all(&self) {
        if let Some(handle) = self.handle() {
            handle.requeue_all();
        }
    }

    pub(crate) fn runs(&self) -> Runs {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).runs.clone()
    }

    pub(crate) fn panics(&self) -> Vec<String> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).panics.clone()
    }

    fn handle(&self) -> Option<Handle> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).handle.clone()
    }
}

impl Stage {
    async fn run(self, mut asked: mpsc::UnboundedReceiver<()>) {
        for life in 1_u64.. {
            let dead = CancellationToken::new();
            let (operator, stop) = (self.operator(life, &dead), CancellationToken::new());
            let client = self.network.client(&self.account, life, &dead);
            let mut task = tokio::spawn(operator.run(client, stop.clone().cancelled_owned()));
            let ended = tokio::select! {
                biased;
                () = dead.cancelled() => None,
                ended = &mut task => Some(ended),
                Some(()) = asked.recv() => {
                    stop.cancel();
                    tokio::select! {
                        biased;
                        () = dead.cancelled() => None,
                        ended = &mut task => Some(ended),
                    }
                }
            };
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).handle = None;
            match ended {
                None => {
                    task.abort();
                    let _ = task.await;
                }
                Some(Ok(Ok(()))) => self.story.tell("operator", "has stopped as it was asked to"),
                Some(Ok(Err(error))) => self.story.tell("operator", format!("has ended: {error}")),
                Some(Err(error)) => self.panicked(format!("the operator has panicked: {error}")),
            }
            if self.shared.lock().unwrap_or_else(PoisonError::into_inner).runs.endless.is_some() {
                return self.story.tell("operator", "runs without a pause, and is stopped for good");
            }
            tokio::time::sleep(AGAIN).await;
            self.story.tell("operator", format!("starts again (life {})", life + 1));
        }
    }

    fn operator(&self, life: u64, dead: &CancellationToken) -> Operator {
        let mut operator = (self.make)().clock(self.clock);
        let system = system(&operator);
        if let Some(connector) = testing::serve_webhooks(&mut operator, &system) {
            let name = connector.service().to_owned();
            let service = ServicePort { namespace: system.clone(), name, port: 443 };
            self.server.registry().routes().add_in_process(service, move || connector.connect());
        }
        if self.leader {
            let lease = operator.name().to_owned();
            let identity = format!("life-{life}");
            operator = operator.leader_election(LeaderElection::new(lease, system, identity));
        }
        let handle = operator.handle();
        let (story, shared, dead) = (self.story.clone(), self.shared.clone(), dead.clone());
        handle.observe(move |run| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (now, runs) = (story.now(), &mut shared.runs);
            runs.all += 1;
            runs.last = if runs.last.0 == now { (now, runs.last.1 + 1) } else { (now, 1) };
            // The paused clock goes on only when nobody has anything to do: this one always has.
            if runs.last.1 > MOST_AT_ONCE {
                runs.endless = Some(format!("{} {}", run.controller, run.key));
                dead.cancel();
                drop(shared);
                // Such a worker never gives way to others on its thread: this ends it, without a word on the screen.
                std::panic::resume_unwind(Box::new("an endless loop of runs was stopped"));
            }
            let Some(failure) = &run.failure else { return };
            story.tell("operator", format!("a run fails: {}: {}", failure.reason, failure.message));
            if failure.reason == "ReconcilePanicked" {
                shared.panics.push(failure.to_string());
            }
        });
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).handle = Some(handle);
        operator
    }

    fn panicked(&self, text: String) {
        self.story.tell("operator", text.clone());
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).panics.push(text);
    }
}
