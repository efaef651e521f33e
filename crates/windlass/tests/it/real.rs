//! The same claims on a real cluster, named by `KUBECONFIG`.

use std::{future::Future, time::Duration};

use serde_json::json;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use windlass::{
    Operator, RunError,
    k8s_openapi::{
        api::{
            apps::v1::Deployment,
            core::v1::{Namespace, Service},
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client, Config, CustomResourceExt, ResourceExt,
        api::{DeleteParams, Patch, PatchParams, PostParams},
        client::ClientBuilder,
        runtime::wait::{await_condition, conditions as until},
    },
};

use crate::{
    counting::Requests,
    gadget::{Gadget, Gadgets, Mood},
};

/// The CRD is one for all tests, so they take turns.
static TURN: Mutex<()> = Mutex::const_new(());

pub struct Cluster {
    /// Not counted: what the user does.
    pub user: Client,
    /// Counted: what the operator does.
    pub operator: Client,
    pub requests: Requests,
    pub namespace: String,
}

impl Cluster {
    pub async fn with<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Cluster) -> F) {
        let _turn = TURN.lock().await;
        let config = Config::infer().await.expect("KUBECONFIG must name a cluster");
        let requests = Requests::default();
        let user = Client::try_from(config.clone()).unwrap();
        let operator = ClientBuilder::try_from(config).unwrap().with_layer(&requests).build();
        let namespace = format!("windlass-it-{name}-{}", std::process::id());
        let cluster = Cluster { user: user.clone(), operator, requests, namespace: namespace.clone() };
        cluster.install().await;
        let body: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        let namespaces = Api::<Namespace>::all(user.clone());
        namespaces.create(&PostParams::default(), &body).await.unwrap();
        test(cluster).await;
        namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    }

    async fn install(&self) {
        let crds = Api::<CustomResourceDefinition>::all(self.user.clone());
        let params = PatchParams::apply("windlass-it").force();
        crds.patch(Gadget::crd_name(), &params, &Patch::Apply(Gadget::crd())).await.unwrap();
        let established = await_condition(crds, Gadget::crd_name(), until::is_crd_established());
        tokio::time::timeout(Duration::from_secs(10), established).await.unwrap().unwrap();
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: windlass::kube::Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.user.clone(), &self.namespace)
    }

    fn start(&self, gadgets: &Gadgets) -> Running {
        let stop = CancellationToken::new();
        let controller = gadgets.controller().namespace(&self.namespace).timeout(Duration::from_secs(1));
        let operator = Operator::new("gadget-operator").controller(controller);
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
    for _ in 0..400 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never happened: {what}");
}

/// Waits until the operator has seen the generation of `name`.
pub async fn observed(gadgets: &Api<Gadget>, name: &str) {
    eventually("the status is current", || async {
        let gadget = gadgets.get(name).await.unwrap();
        gadget.status.as_ref().and_then(|s| s.observed_generation) == gadget.metadata.generation
    })
    .await;
}

/// Waits until no run has started for a while.
async fn quiet(gadgets: &Gadgets) {
    let mut before = usize::MAX;
    while before != gadgets.runs() {
        before = gadgets.runs();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn writes_are_the_least_that_can_be() {
    Cluster::with("count", |cluster| async move {
        let gadgets = Gadgets::default();
        let running = cluster.start(&gadgets);
        let api = cluster.api::<Gadget>();
        api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
        observed(&api, "one").await;
        quiet(&gadgets).await;
        let writes = cluster.requests.take_writes();
        assert_eq!(writes.len(), 3, "one per child and one for the status: {writes:#?}");

        let runs = gadgets.runs();
        let poke = json!({"metadata": {"annotations": {"poked": "yes"}}});
        let deployments = cluster.api::<Deployment>();
        deployments.patch("one", &PatchParams::default(), &Patch::Merge(&poke)).await.unwrap();
        eventually("another run", || async { gadgets.runs() > runs }).await;
        quiet(&gadgets).await;
        let writes = cluster.requests.take_writes();
        assert!(writes.is_empty(), "a second reconcile writes nothing: {writes:#?}");
        running.stop().await;

        let again = Gadgets::default();
        let running = cluster.start(&again);
        eventually("a run after the restart", || async { again.runs() > 0 }).await;
        quiet(&again).await;
        let writes = cluster.requests.take_writes();
        assert!(writes.is_empty(), "a restart writes nothing: {writes:#?}");

        let change = json!({"spec": {"replicas": 3}});
        api.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        observed(&api, "one").await;
        quiet(&again).await;
        let writes = cluster.requests.take_writes();
        assert_eq!(writes.len(), 2, "one for the child and one for the status: {writes:#?}");
        assert!(writes.iter().all(|write| write.status == 200), "{writes:#?}");
        running.stop().await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn a_child_that_is_no_longer_wanted_is_deleted_and_drift_is_repaired() {
    Cluster::with("prune", |cluster| async move {
        let gadgets = Gadgets::default();
        let running = cluster.start(&gadgets);
        let api = cluster.api::<Gadget>();
        api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
        observed(&api, "one").await;
        let services = cluster.api::<Service>();
        assert!(services.get_opt("one").await.unwrap().is_some());

        let drift = json!({"spec": {"replicas": 7}});
        let deployments = cluster.api::<Deployment>();
        deployments.patch("one", &PatchParams::default(), &Patch::Merge(&drift)).await.unwrap();
        eventually("the drift is repaired", || async {
            deployments.get("one").await.unwrap().spec.replicas == Some(2)
        })
        .await;

        let change = json!({"spec": {"port": null}});
        api.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        eventually("the service is gone", || async { services.get_opt("one").await.unwrap().is_none() })
            .await;
        eventually("the port is gone", || async {
            let deployment = deployments.get("one").await.unwrap();
            deployment.spec.template.spec.unwrap().containers[0].ports.is_none()
        })
        .await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn a_foreign_object_of_the_same_name_is_left_alone() {
    Cluster::with("foreign", |cluster| async move {
        let services = cluster.api::<Service>();
        let foreign: Service = serde_json::from_value(json!({
            "metadata": {"name": "one"}, "spec": {"ports": [{"port": 9999}]}
        }))
        .unwrap();
        services.create(&PostParams::default(), &foreign).await.unwrap();
        let gadgets = Gadgets::default();
        let running = cluster.start(&gadgets);
        let api = cluster.api::<Gadget>();
        api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
        eventually("some retries", || async { gadgets.runs() > 3 }).await;
        let service = services.get("one").await.unwrap();
        assert!(service.owner_references().is_empty());
        assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 9999);
        services.delete("one", &DeleteParams::default()).await.unwrap();
        observed(&api, "one").await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn a_panic_and_a_hang_are_survived_and_deletions_are_seen() {
    Cluster::with("panic", |cluster| async move {
        for (name, mood) in [("nervous", Mood::Nervous), ("stuck", Mood::Stuck)] {
            let gadgets = Gadgets { mood, ..Gadgets::default() };
            let running = cluster.start(&gadgets);
            let api = cluster.api::<Gadget>();
            api.create(&PostParams::default(), &Gadget::test(name)).await.unwrap();
            observed(&api, name).await;
            api.delete(name, &DeleteParams::default()).await.unwrap();
            let deletions = &gadgets.deletions;
            eventually("the deletion is seen", || async {
                deletions.load(std::sync::atomic::Ordering::SeqCst) > 0
            })
            .await;
            running.stop().await;
        }
    })
    .await;
}
