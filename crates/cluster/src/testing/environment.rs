//! The environment of one test: a cluster, an operator that runs there as its manifests say, and the test's own access.

use std::{fmt, time::Duration};

use windlass::{
    Failure, Operator, Placement,
    k8s_openapi::NamespaceResourceScope,
    kube::{Api, Client, Resource},
    serde_json::{self, Value},
    testing::{self, Fuse, Requests, Running},
};
use windlass_apiserver::webhook::ServicePort;

use super::apply::{apply, documents};
use crate::{Cluster, Identity};

/// Where the objects of a test are unless they say otherwise.
pub(super) const NAMESPACE: &str = "default";
/// How long the cluster may take until it is quiet.
const LIMIT: Duration = Duration::from_mins(1);

/// An operator under test, and the cluster that it runs on. See the [module](super).
///
/// What goes wrong panics, as a test wants it: an operator that does not start, webhooks that cannot be registered, an
/// object that is refused, a run that fails. Dropping it ends everything; [`stop`](Self::stop) also lets the operator
/// finish, and reports how that went.
pub struct Environment {
    // In this order: the operator goes first.
    running: Option<Running>,
    cluster: Cluster,
    requests: Requests,
    operator: Box<dyn Fn() -> Operator + Send + Sync>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Environment {
    /// Starts a cluster in memory with one simulated node, and on it the operator that `operator` makes. It is called
    /// again for every [restart](Self::restart).
    ///
    /// The node's Lease is not renewed: nothing happens that the test does not cause.
    pub async fn start(operator: impl Fn() -> Operator + Send + Sync + 'static) -> Self {
        let cluster = Cluster::builder().heartbeat(None).start().await;
        Self::on(cluster.unwrap_or_else(|error| panic!("the cluster has not started: {error}")), operator)
            .await
    }

    /// The same on a cluster that was started with [options](Cluster::builder): other nodes, another start time, Pods
    /// that take their time.
    pub async fn on(cluster: Cluster, operator: impl Fn() -> Operator + Send + Sync + 'static) -> Self {
        let (requests, operator) = (Requests::default(), Box::new(operator));
        let mut env = Self { running: None, cluster, requests, operator };
        env.install().await;
        env.launch().await;
        env
    }

    /// The same with an operator that dies with a fuse, maybe before it is [ready](Self::ready), for which this does not
    /// wait.
    pub(super) async fn mortal(
        cluster: Cluster,
        operator: impl Fn() -> Operator + Send + Sync + 'static,
        fuse: Fuse,
    ) -> Self {
        let (requests, operator) = (Requests::default(), Box::new(operator));
        let mut env = Self { running: None, cluster, requests, operator };
        env.install().await;
        env.spawn(Some(&fuse));
        // What fails because the operator is dead is no failure.
        env.allow_failures(move |_| fuse.is_blown());
        env
    }

    /// Waits until the operator works.
    pub(super) async fn ready(&mut self) {
        if let Some(running) = &mut self.running {
            running.ready().await;
        }
    }

    /// Ends the operator as `kill -9` would, and starts another one.
    pub(super) async fn replace(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
        self.launch().await;
    }

    /// The namespace in which the operator would run, by kubebuilder's convention.
    fn system(operator: &Operator) -> String {
        format!("{}-system", operator.name())
    }

    /// Applies what `manifests` prints, but for the Deployment: the operator runs here.
    async fn install(&self) {
        let operator = (self.operator)();
        let placement = Placement::new(Self::system(&operator), "none");
        let manifests = operator.manifests(&placement);
        for manifest in manifests.iter().filter(|manifest| manifest["kind"] != "Deployment") {
            self.apply_value(manifest).await;
        }
    }

    /// Runs the operator, and waits until it works.
    async fn launch(&mut self) {
        self.spawn(None);
        self.ready().await;
    }

    /// Runs the operator as its service account, with its webhooks behind their Service.
    fn spawn(&mut self, fuse: Option<&Fuse>) {
        let mut operator = (self.operator)().clock(self.cluster.clock());
        let system = Self::system(&operator);
        if let Some(connector) = testing::serve_webhooks(&mut operator, &system) {
            let name = connector.service().to_owned();
            let service = ServicePort { namespace: system.clone(), name, port: 443 };
            let routes = self.cluster.server().registry().routes();
            routes.add_in_process(service, move || connector.connect());
        }
        let account = Identity::service_account(&system, operator.name());
        let server = self.cluster.server().as_user(account);
        let client = match fuse {
            Some(fuse) => Client::new(self.requests.around(fuse.around(server)), system),
            None => Client::new(self.requests.around(server), system),
        };
        self.running = Some(Running::spawn(operator.server_in_process(), client, &self.requests));
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The operator that runs.
    pub fn running(&self) -> &Running {
        self.running.as_ref().expect("an environment must have an operator that runs")
    }

    /// A client that may do everything. Its requests are not recorded.
    pub fn client(&self) -> Client {
        self.cluster.client()
    }

    /// The objects of a kind in the namespace `default`, for one who may do everything.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client(), NAMESPACE)
    }

    /// The requests of the operator.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Applies an object, as `kubectl apply --server-side` does, and returns what the API server made of it.
    ///
    /// # Panics
    ///
    /// When the API server refuses it. A test that wants a refusal uses [`api`](Self::api).
    pub async fn apply<K>(&self, object: &K) -> K
    where
        K: windlass::serde::Serialize + windlass::serde::de::DeserializeOwned,
    {
        let object = serde_json::to_value(object).expect("an object must serialise");
        let applied = self.apply_value(&object).await;
        serde_json::from_value(applied).expect("the API server must answer with an object of the kind")
    }

    /// Applies every object of a YAML stream.
    ///
    /// # Panics
    ///
    /// When it is no YAML, and when the API server refuses an object.
    pub async fn apply_yaml(&self, yaml: &str) {
        for object in documents(yaml) {
            self.apply_value(&object).await;
        }
    }

    async fn apply_value(&self, object: &Value) -> Value {
        match apply(&self.client(), NAMESPACE, object).await {
            Ok(applied) => serde_json::to_value(applied).expect("an object must serialise"),
            Err(error) => {
                let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                panic!("the API server has refused {kind} {name}: {error}")
            }
        }
    }

    /// Lets runs fail of which `allowed` says so; see [`Running::allow_failures`].
    pub fn allow_failures(&self, allowed: impl Fn(&Failure) -> bool + Send + 'static) {
        self.running().allow_failures(allowed);
    }

    /// Takes the runs that have failed so far; see [`Running::take_failures`].
    pub fn take_failures(&self) -> Vec<Failure> {
        self.running().take_failures()
    }

    /// Waits until the operator has nothing to do and nothing is written in the whole cluster any more.
    ///
    /// # Panics
    ///
    /// When that takes longer than a minute, and when a run has failed.
    pub async fn settled(&self) {
        let started = tokio::time::Instant::now();
        loop {
            let before = self.cluster.revision();
            self.running().settled().await;
            if self.cluster.revision() == before {
                return;
            }
            assert!(started.elapsed() < LIMIT, "the cluster is still busy after {LIMIT:?}");
        }
    }

    /// Reconciles every object once more, and checks that nothing is written; see
    /// [`Running::assert_second_reconcile_writes_nothing`].
    pub async fn assert_second_reconcile_writes_nothing(&self) {
        self.settled().await;
        self.running().assert_second_reconcile_writes_nothing().await;
    }

    /// Lets time pass, with all that happens in it, and waits until everything has settled.
    ///
    /// # Panics
    ///
    /// Without `#[tokio::test(start_paused = true)]`: an hour would take an hour. And as [`settled`](Self::settled).
    pub async fn advance(&self, time: Duration) {
        assert!(is_paused(), "advance needs a paused clock: #[tokio::test(start_paused = true)]");
        tokio::time::sleep(time).await;
        self.settled().await;
    }

    /// Stops the operator, and starts it anew: a process that was replaced.
    ///
    /// # Panics
    ///
    /// When a run has failed, and when the operator does not start.
    pub async fn restart(&mut self) {
        self.restart_after(Duration::ZERO).await;
    }

    /// The same with some time in between, in which nobody reconciles and the cluster goes on.
    ///
    /// # Panics
    ///
    /// As [`restart`](Self::restart).
    pub async fn restart_after(&mut self, time: Duration) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        tokio::time::sleep(time).await;
        self.launch().await;
    }

    /// Stops the operator and the cluster, and waits until both have ended.
    ///
    /// # Panics
    ///
    /// When a run has failed, and when one of them does not end well.
    pub async fn stop(mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        let Self { cluster, .. } = self;
        cluster.shutdown().await.unwrap_or_else(|error| panic!("the cluster has failed: {error}"));
    }
}

/// Whether tokio's clock stands still while the machine's goes on.
pub(super) fn is_paused() -> bool {
    let (before, started) = (tokio::time::Instant::now(), std::time::Instant::now());
    while started.elapsed() < Duration::from_micros(10) {
        std::hint::spin_loop();
    }
    tokio::time::Instant::now() == before
}
