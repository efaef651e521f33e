//! A cluster to test against, embedded or real, and ways to wait for what must happen.

use std::{future::Future, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tower::Layer;
use windlass::{
    Operator, RunError,
    clock::TokioClock,
    jiff::Timestamp,
    k8s_openapi::{
        NamespaceResourceScope, api::core::v1::Namespace,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client, Config, CustomResourceExt, Resource,
        api::{DeleteParams, Patch, PatchParams, PostParams},
        client::ClientBuilder,
        runtime::wait::{await_condition, conditions as until},
    },
};
use windlass_apiserver::{ApiServer, AsUser, auth::Identity, environment, registry::Registry, store::Store};

use crate::{
    counting::Requests,
    gadget::{Gadget, Gadgets},
    pool::Pool,
};

/// The CRDs are one for all tests of a real cluster, so these take turns.
static TURN: Mutex<()> = Mutex::const_new(());

#[derive(Clone)]
pub struct Cluster {
    /// Not counted: what the user does.
    pub user: Client,
    /// Counted: what the operator does.
    pub operator: Client,
    pub requests: Requests,
    pub namespace: String,
    pub clock: TokioClock,
    real: bool,
}

/// An API server in this process, and the time at which its clock starts.
pub fn server() -> (AsUser, Timestamp) {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let environment = environment::Environment::new(environment::TokioClock::starting_at(start), 7);
    let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
    (ApiServer::new(Arc::new(registry)).as_user(Identity::admin()), start)
}

/// A prepared cluster of that server, with a client of the caller's making for the operator.
pub async fn cluster(server: AsUser, operator: Client, start: Timestamp) -> Cluster {
    let cluster = Cluster {
        user: Client::new(server, "default"),
        operator,
        requests: Requests::default(),
        namespace: "scenario".into(),
        clock: TokioClock::starting_at(start),
        real: false,
    };
    cluster.prepare().await;
    cluster
}

/// Runs a scenario in this process.
pub async fn embedded<F: Future<Output = ()>>(scenario: impl FnOnce(Cluster) -> F) {
    let (server, start) = server();
    let requests = Requests::default();
    let operator = Client::new(requests.layer(server.clone()), "default");
    scenario(Cluster { requests, ..cluster(server, operator, start).await }).await;
}

/// Runs a scenario on the cluster that `KUBECONFIG` names.
pub async fn real<F: Future<Output = ()>>(scenario: impl FnOnce(Cluster) -> F) {
    let _turn = TURN.lock().await;
    let config = Config::infer().await.expect("KUBECONFIG must name a cluster");
    let requests = Requests::default();
    let cluster = Cluster {
        user: Client::try_from(config.clone()).unwrap(),
        operator: ClientBuilder::try_from(config).unwrap().with_layer(&requests).build(),
        requests,
        namespace: format!("windlass-it-{:x}", Timestamp::now().as_microsecond()),
        clock: TokioClock::starting_at(Timestamp::now()),
        real: true,
    };
    cluster.prepare().await;
    scenario(cluster.clone()).await;
    let namespaces = Api::<Namespace>::all(cluster.user.clone());
    namespaces.delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
    cluster.uninstall(Gadget::crd_name()).await;
    cluster.uninstall(Pool::crd_name()).await;
}

impl Cluster {
    async fn prepare(&self) {
        self.install(Gadget::crd(), Gadget::crd_name()).await;
        self.install(Pool::crd(), Pool::crd_name()).await;
        let body: Namespace = serde_json::from_value(json!({"metadata": {"name": self.namespace}})).unwrap();
        Api::<Namespace>::all(self.user.clone()).create(&PostParams::default(), &body).await.unwrap();
    }

    pub async fn install(&self, crd: CustomResourceDefinition, name: &str) {
        let crds = Api::<CustomResourceDefinition>::all(self.user.clone());
        let params = PatchParams::apply("windlass-it").force();
        crds.patch(name, &params, &Patch::Apply(crd)).await.unwrap();
        let established = await_condition(crds, name, until::is_crd_established());
        tokio::time::timeout(Duration::from_secs(10), established).await.unwrap().unwrap();
    }

    pub async fn uninstall(&self, name: &str) {
        let crds = Api::<CustomResourceDefinition>::all(self.user.clone());
        let uid = crds.get(name).await.unwrap().metadata.uid.unwrap();
        crds.delete(name, &DeleteParams::default()).await.unwrap();
        let gone = await_condition(crds, name, until::is_deleted(&uid));
        tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap().unwrap();
    }

    /// The same cluster, seen by the operator through another client.
    pub fn with_operator(&self, operator: Client) -> Self {
        Self { operator, ..self.clone() }
    }

    /// Whether requests take time, so that less is tried.
    pub fn is_real(&self) -> bool {
        self.real
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), &self.namespace)
    }

    /// Starts an operator for gadgets.
    pub fn start(&self, gadgets: &Gadgets) -> Running {
        let controller = gadgets.controller().namespace(&self.namespace).timeout(Duration::from_secs(1));
        self.run(Operator::new("gadget-operator").controller(controller))
    }

    /// Starts any operator.
    pub fn run(&self, operator: Operator) -> Running {
        let stop = CancellationToken::new();
        let operator = operator.clock(self.clock);
        let run = operator.run(self.operator.clone(), stop.clone().cancelled_owned());
        Running { stop, task: tokio::spawn(run) }
    }
}

pub struct Running {
    pub stop: CancellationToken,
    pub task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

pub async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    for _ in 0..2400 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never happened: {what}");
}

/// Waits until the operator has seen the newest generation of a gadget.
pub async fn observed(gadgets: &Api<Gadget>, name: &str) {
    eventually("the status is current", || async {
        let gadget = gadgets.get(name).await.unwrap();
        gadget.status.as_ref().and_then(|s| s.observed_generation) == gadget.metadata.generation
    })
    .await;
}

/// Waits until no run has started for a while.
pub async fn quiet(runs: impl Fn() -> usize) {
    let mut before = usize::MAX;
    while before != runs() {
        before = runs();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
