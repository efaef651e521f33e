//! Where the tests over all kinds run: the embedded cluster, or a real control plane over our simulated node.
//!
//! The real one is a testbed of the test's own, since its objects are in the namespace `default` and its operators work
//! everywhere. Its controllers and its scheduler are Kubernetes'; that no container runs is what lets hundreds of Pods be
//! judged. `WINDLASS_KUBERNETES_VERSION` says which Kubernetes: `just oldest` runs the oldest that is supported.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass::{
    Failure, Operator,
    clock::SystemClock,
    testing::{Requests, Running},
};
use windlass_cluster::{Cluster, Controllers, Identity, testing::Environment};
use windlass_operators::{catalogue, install, operator, webhooks};

use crate::{
    bed::{ACCOUNT, Ground, eventually},
    children::kind_api,
    hooks,
};

pub(crate) const NAMESPACE: &str = "default";

/// All operators, as one.
pub(crate) fn all() -> Operator {
    operator("windlass", catalogue())
}

/// A control plane on which no operator runs yet.
pub(crate) enum Plane {
    Embedded(Box<Cluster>),
    Real(Box<Testbed>),
}

impl Plane {
    pub(crate) async fn start(ground: Ground) -> Self {
        match ground {
            Ground::Embedded => Self::Embedded(Box::new(Cluster::start().await.unwrap())),
            Ground::Real => Self::Real(Box::new(Testbed::start().await)),
        }
    }

    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Embedded(cluster) => cluster.client(),
            Self::Real(testbed) => Client::try_from(testbed.config.clone()).unwrap(),
        }
    }

    /// Waits until the Pods of the namespace run, and for a second nothing happens to any.
    pub(crate) async fn pods_run(&self) {
        let api = Api::<Pod>::namespaced(self.client(), NAMESPACE);
        let list = || async { api.list(&ListParams::default()).await.unwrap().items };
        let versions =
            |pods: &[Pod]| pods.iter().map(|pod| (pod.uid(), pod.resource_version())).collect::<Vec<_>>();
        eventually("the Pods run", || async {
            let before = list().await;
            let idle = before.iter().any(|pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                !matches!(phase, Some("Running" | "Succeeded"))
            });
            tokio::time::sleep(Duration::from_secs(1)).await;
            (!idle && !before.is_empty() && versions(&before) == versions(&list().await)).then_some(())
        })
        .await;
    }

    /// Installs the kinds, the permissions and the webhooks of all operators, and runs them.
    pub(crate) async fn operate(self) -> Site {
        match self {
            Self::Embedded(cluster) => Site::Embedded(Environment::on(*cluster, all).await),
            Self::Real(testbed) => {
                let client = Client::try_from(testbed.config.clone()).unwrap();
                let operator = all();
                install::crds(&client, operator.crds()).await.unwrap();
                testbed.serve_webhooks(&client, &operator).await;
                install::permissions(&client, NAMESPACE, ACCOUNT, operator.rbac(), true).await.unwrap();
                let account = Identity::service_account(NAMESPACE, ACCOUNT);
                let mut limited = testbed.config.clone();
                limited.auth_info.impersonate = Some(account.name);
                limited.auth_info.impersonate_groups = Some(account.groups);
                let requests = Requests::default();
                let limited = ClientBuilder::try_from(limited).unwrap().with_layer(&requests).build();
                let running = Running::start(operator, limited, &requests).await;
                Site::Real { running, client, testbed }
            }
        }
    }
}

/// A control plane with all operators.
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub(crate) enum Site {
    Embedded(Environment),
    // In this order: the operators go first.
    Real { running: Running, client: Client, testbed: Box<Testbed> },
}

impl Site {
    pub(crate) async fn start(ground: Ground) -> Self {
        Plane::start(ground).await.operate().await
    }

    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Embedded(env) => env.client(),
            Self::Real { client, .. } => client.clone(),
        }
    }

    fn running(&self) -> &Running {
        match self {
            Self::Embedded(env) => env.running(),
            Self::Real { running, .. } => running,
        }
    }

    pub(crate) fn allow_failures(&self, allowed: impl Fn(&Failure) -> bool + Send + 'static) {
        self.running().allow_failures(allowed);
    }

    /// Applies an object of one of the kinds.
    pub(crate) async fn apply(&self, object: &Value) {
        let entry = catalogue().iter().find(|entry| object["kind"] == entry.kind).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let params = PatchParams::apply("somebody").force();
        let api = kind_api(&self.client(), NAMESPACE, entry);
        let applied = api.patch(name, &params, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name} is refused: {error}", entry.kind));
    }

    pub(crate) async fn settled(&self) {
        match self {
            Self::Embedded(env) => env.settled().await,
            Self::Real { running, .. } => running.settled().await,
        }
    }

    pub(crate) async fn assert_second_reconcile_writes_nothing(&self) {
        self.settled().await;
        self.running().assert_second_reconcile_writes_nothing().await;
    }

    pub(crate) async fn stop(self) {
        match self {
            Self::Embedded(env) => env.stop().await,
            Self::Real { running, testbed, .. } => {
                running.stop().await;
                drop(testbed);
            }
        }
    }
}

/// A real control plane that nobody else uses, with our node. Ends with this value.
pub(crate) struct Testbed {
    name: String,
    xtask: PathBuf,
    kubeconfig: PathBuf,
    pub(crate) config: Config,
    stop: CancellationToken,
}

impl Testbed {
    async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let xtask = std::env::var_os("WINDLASS_XTASK")
            .expect("this test starts a testbed: run it with `cargo xtask kubernetes test` or `just oldest`");
        let name = format!("it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let kubeconfig = std::env::temp_dir().join(format!("windlass-{name}.kubeconfig"));
        let mut up = command(Path::new(&xtask), &name, "up");
        up.arg("--control-plane").arg("--kubeconfig").arg(&kubeconfig);
        up.args(std::env::var("WINDLASS_KUBERNETES_VERSION").map(|version| format!("--version={version}")));
        let status = up.status().unwrap();
        // Made first, so that what was begun is taken down.
        let mut testbed = Self {
            name,
            xtask: xtask.into(),
            kubeconfig,
            config: Config::new("https://127.0.0.1".parse().unwrap()),
            stop: CancellationToken::new(),
        };
        assert!(status.success(), "the testbed has not started");
        let kubeconfig = Kubeconfig::read_from(&testbed.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        testbed.config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        testbed.bring_node().await;
        testbed
    }

    /// Runs a node that runs no containers, and provides volumes.
    async fn bring_node(&self) {
        let node = Controllers {
            workloads: false,
            garbage: false,
            namespaces: false,
            endpoints: false,
            scheduler: false,
            ..Controllers::default()
        };
        let client = Client::try_from(self.config.clone()).unwrap();
        tokio::spawn(node.run(client.clone(), SystemClock, self.stop.clone()));
        let nodes = Api::<Node>::all(client);
        eventually("there is a node", || async {
            let nodes = nodes.list(&ListParams::default()).await.unwrap().items;
            (!nodes.is_empty()).then_some(())
        })
        .await;
    }

    /// Serves conversions and admission from this process, until the end.
    async fn serve_webhooks(&self, client: &Client, operator: &Operator) {
        let server = webhooks::server([127, 0, 0, 1].into(), NAMESPACE).unwrap();
        tokio::spawn(hooks::serve(client.clone(), server.clone(), self.stop.clone()));
        webhooks::converted(client, operator.crds(), &server).await.unwrap();
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.stop.cancel();
        // Best effort: what failed before says more.
        let _ = command(&self.xtask, &self.name, "down").status();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

fn command(xtask: &Path, name: &str, what: &str) -> Command {
    let mut command = Command::new(xtask);
    command.args(["kubernetes", what, "--name", name]).stdin(Stdio::null());
    command
}
