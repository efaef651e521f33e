//! What a case runs in: a cluster, a namespace of its own, and an operator that works there and nowhere else.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::{Namespace, Pod},
        events::v1::Event,
    },
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, PostParams},
    client::ClientBuilder,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::{
    Operator, RunError,
    testing::{self, Requests},
};
use windlass_cluster::{Cluster, Identity, testing::Environment};
use windlass_operators::{install, webhooks};

use crate::hooks;

/// How long anything may take. Real Pods on a busy machine need it; nothing waits longer than it must.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// The service account that the operator runs as.
pub(crate) const ACCOUNT: &str = "operator";

/// A client and a namespace for one case.
#[derive(Clone)]
pub(crate) struct Bed {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    expected: Arc<Mutex<Vec<&'static str>>>,
}

impl Bed {
    /// A namespace of its own.
    pub(crate) async fn new(client: Client) -> Self {
        Self { namespace: create_namespace(&client).await, client, expected: Arc::default() }
    }

    /// Says that runs may fail for a reason: everything else that fails fails the case.
    pub(crate) fn expects(&self, reason: &'static str) {
        self.expected.lock().unwrap().push(reason);
    }

    /// The objects of a kind in the case's namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// How many objects of a kind there are.
    pub(crate) async fn count<K>(&self) -> usize
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items.len()
    }
}

impl Bed {
    /// The objects of a kind of the catalogue, untyped.
    pub(crate) fn dynamic(&self, name: &str) -> Api<DynamicObject> {
        let resource = windlass_operators::entry(name).unwrap().resource();
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Creates an object from JSON.
    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + serde::Serialize,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// The names of the Pods that are not on their way out, sorted.
    pub(crate) async fn pod_names(&self) -> Vec<String> {
        self.pods().await.into_iter().map(|pod| pod.name_any()).collect()
    }

    /// The Pods that are not on their way out.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        let pods = self.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
        pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
    }

    /// Waits for an event with this reason about an object of this kind, and returns what it says.
    pub(crate) async fn recorded(&self, kind: &str, reason: &str) -> Vec<String> {
        eventually(&format!("the event {reason} of {kind}"), || async {
            let events = self.api::<Event>().list(&ListParams::default()).await.unwrap().items;
            let notes: Vec<String> = events
                .into_iter()
                .filter(|event| {
                    let regarding = event.regarding.as_ref().and_then(|regarding| regarding.kind.as_deref());
                    event.reason.as_deref() == Some(reason) && regarding == Some(kind)
                })
                .filter_map(|event| event.note)
                .collect();
            (!notes.is_empty()).then_some(notes)
        })
        .await
    }
}

/// Which cluster a case runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ground {
    Embedded,
    Real,
}

/// Runs a case in a namespace of its own, beside an operator for that namespace, and cleans up whatever happens.
///
/// The case has the administrator's client, the operator one that may do only what its own RBAC rules say: a
/// permission that these lack fails the test, and so does every run that the case does not [expect](Bed::expects) to fail.
pub(crate) async fn run<F>(ground: Ground, operator: fn(&str) -> Operator, case: fn(Bed) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    match ground {
        Ground::Embedded => embedded(operator, case).await,
        Ground::Real => real(operator, case).await,
    }
}

async fn embedded<F>(operator: fn(&str) -> Operator, case: fn(Bed) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let cluster = Cluster::start().await.unwrap();
    let bed = Bed::new(cluster.client()).await;
    let namespace = bed.namespace.clone();
    let env = Environment::on(cluster, move || operator(&namespace)).await;
    observed(env.running(), bed, case, Ground::Embedded).await;
    env.stop().await;
}

async fn real<F>(operator: fn(&str) -> Operator, case: fn(Bed) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let config = Config::infer().await.expect("KUBECONFIG must name a cluster");
    let bed = Bed::new(Client::try_from(config.clone()).unwrap()).await;
    let operator = operator(&bed.namespace);
    // The CRDs stay behind: to delete them would delete every object of their kinds, whoever's these are.
    install::crds(&bed.client, operator.crds()).await.unwrap();
    webhooks::converted(&bed.client, operator.crds(), hooks::real(&config)).await.unwrap();
    install::permissions(&bed.client, &bed.namespace, ACCOUNT, operator.rbac(), false).await.unwrap();
    let account = Identity::service_account(&bed.namespace, ACCOUNT);
    let mut limited = config;
    limited.auth_info.impersonate = Some(account.name);
    limited.auth_info.impersonate_groups = Some(account.groups);
    let requests = Requests::default();
    let client = ClientBuilder::try_from(limited).unwrap().with_layer(&requests).build();
    let running = testing::Running::start(operator, client, &requests).await;
    let (client, namespace) = (bed.client.clone(), bed.namespace.clone());
    let outcome = AssertUnwindSafe(observed(&running, bed, case, Ground::Real)).catch_unwind().await;
    let stopped = AssertUnwindSafe(running.stop()).catch_unwind().await;
    let namespaces = Api::<Namespace>::all(client);
    namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    if let Err(failed) = outcome.and(stopped) {
        resume_unwind(failed);
    }
}

/// Runs a case. One that fails says more than its operator, whose failures are printed then.
async fn observed<F>(running: &testing::Running, bed: Bed, case: fn(Bed) -> F, ground: Ground)
where
    F: Future<Output = ()> + Send + 'static,
{
    let expected = bed.expected.clone();
    // A real cluster takes its time to clear away what a case deletes, and a run that meets it is tried again: which
    // failures are right is seen on the embedded one.
    let lenient = matches!(ground, Ground::Real);
    // A case writes while its operator runs: whoever loses such a race tries again.
    running.allow_failures(move |failure| {
        lenient || failure.reason == "Conflict" || expected.lock().unwrap().contains(&failure.reason)
    });
    if let Err(failed) = tokio::spawn(case(bed)).await {
        for failure in running.take_failures() {
            eprintln!("failed run: {failure}");
        }
        resume_unwind(failed.into_panic());
    }
}

/// A namespace that no other case of this or another run has.
pub(crate) async fn create_namespace(client: &Client) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("windlass-it-{}-{number}", std::process::id());
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    name
}

/// An operator that runs and may die.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub(crate) fn start(operator: Operator, client: Client) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(operator.run(client, stop.clone().cancelled_owned()));
        Self { stop, task }
    }

    /// Ends it as `kill -9` would: nothing more is done.
    pub(crate) fn kill(self) {
        self.stop.cancel();
        self.task.abort();
    }
}

/// Waits until a check gives something, and returns it.
pub(crate) async fn eventually<T, F>(what: &str, mut check: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let search = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, search).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// Waits until nothing is found any more; says what was, if that never comes.
pub(crate) async fn until_empty<F>(what: &str, mut find: impl FnMut() -> F)
where
    F: Future<Output = Vec<String>>,
{
    let mut left = Vec::new();
    let search = async {
        loop {
            left = find().await;
            if left.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, search).await;
    assert!(ended.is_ok(), "never happened: {what}; there are {left:#?}");
}
