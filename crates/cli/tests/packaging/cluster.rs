//! A release of the chart on a cluster: installed, upgraded, rolled back, tested and uninstalled by Helm.
//!
//! It begins with the chart of an earlier commit, as Helm packed it then. To be recorded once for each release:
//! `windlass operators manifests --only memcached --format helm --out chart && helm package chart`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::{
        api::{apps::v1::Deployment, core::v1::Namespace},
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client, Config,
        api::{DeleteParams, Patch, PatchParams, PostParams, ValidationDirective},
        config::{KubeConfigOptions, Kubeconfig},
        core::{ApiResource, DynamicObject, GroupVersionKind},
    },
};

use crate::tools::{Key, Place, judge, rendered, run, windlass};

/// Where the operator lives, on whatever cluster.
const NAMESPACE: &str = "packaging-test";

/// The cluster: one that was given, or one of ours until this is dropped.
struct Cluster {
    kubeconfig: PathBuf,
    own: Option<Child>,
}

impl Cluster {
    fn new(place: &Place) -> Self {
        if let Some(given) = std::env::var_os("WINDLASS_PACKAGING_KUBECONFIG") {
            return Self { kubeconfig: given.into(), own: None };
        }
        let kubeconfig = place.path("kubeconfig");
        let mut command = windlass();
        command.args(["cluster", "up", "--kubeconfig"]).arg(&kubeconfig);
        let own = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (cluster, begin) = (Self { kubeconfig, own: Some(own) }, Instant::now());
        while !cluster.kubeconfig.exists() {
            assert!(begin.elapsed() < Duration::from_mins(1), "the cluster did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    fn helm(&self, arguments: &[&str], more: &[&Path]) -> String {
        let mut command = judge("helm");
        command.args(arguments).args(more).args(["--namespace", NAMESPACE]);
        if arguments[0] != "history" {
            command.args(["--timeout", "180s"]);
        }
        run(command.env("KUBECONFIG", &self.kubeconfig))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(own) = &mut self.own {
            let _ = own.kill();
            let _ = own.wait();
        }
    }
}

/// The chart of 0.1.0, by the sources of 22bd621.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packaging/recorded/memcached-operator-0.1.0.tgz")
}

fn chart(place: &Place, version: &str) -> PathBuf {
    let out = place.path(version);
    let mut command = windlass();
    command.args([
        "operators",
        "manifests",
        "--only",
        "memcached",
        "--format",
        "helm",
        "--version",
        version,
        "--out",
    ]);
    run(command.arg(&out));
    out
}

async fn annotation(client: &Client) -> Value {
    let deployment =
        Api::<Deployment>::namespaced(client.clone(), NAMESPACE).get("memcached-operator").await.unwrap();
    serde_json::to_value(&deployment).unwrap()["spec"]["template"]["metadata"]["annotations"]["step"].clone()
}

/// Every object is one that the API server takes without a field that it does not know, or one that is there twice.
async fn accepted_strictly(client: &Client, all: &BTreeMap<Key, Value>) {
    let mut params = PatchParams::apply("packaging-test").force().dry_run();
    params.field_validation = Some(ValidationDirective::Strict);
    for ((kind, namespace, name), object) in all {
        let api_version = object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), namespace, &resource)
        };
        let sent = api.patch(name, &params, &Patch::Apply(object)).await;
        assert!(sent.is_ok(), "{kind} {name}: {sent:?}");
    }
}

#[tokio::test]
async fn a_release_is_installed_upgraded_rolled_back_tested_and_uninstalled_and_objects_stay() {
    let place = Place::new();
    let cluster = Cluster::new(&place);
    let client = cluster.client().await;
    let (first, second) = (recorded(), chart(&place, "0.2.0"));
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    });
    let namespaces = Api::<Namespace>::all(client.clone());
    let params = PatchParams::apply("packaging-test").force();
    namespaces.patch(NAMESPACE, &params, &Patch::Apply(namespace)).await.unwrap();
    cluster.helm(&["install", "m", "--wait"], &[&first]);
    accepted_strictly(&client, &rendered(&first, NAMESPACE, &[])).await;

    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cache.example.com", "v1alpha1", "Memcached"));
    let objects = Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &kind);
    let sample = json!({
        "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "kept"},
        "spec": {"size": 1},
    });
    let made =
        objects.create(&PostParams::default(), &serde_json::from_value(sample).unwrap()).await.unwrap();

    cluster.helm(&["upgrade", "m", "--wait", "--set", "podAnnotations.step=second"], &[&second]);
    assert_eq!(annotation(&client).await, "second");
    accepted_strictly(&client, &rendered(&second, NAMESPACE, &[])).await;
    let told = cluster.helm(&["history", "m"], &[]);
    assert!(told.contains("memcached-operator-0.1.0") && told.contains("memcached-operator-0.2.0"), "{told}");
    cluster.helm(&["rollback", "m", "1", "--wait"], &[]);
    assert_eq!(annotation(&client).await, Value::Null);
    let told = cluster.helm(&["test", "m"], &[]);
    assert!(told.contains("Succeeded"), "{told}");

    let told = cluster.helm(&["uninstall", "m", "--wait"], &[]);
    assert!(told.contains("[CustomResourceDefinition] memcacheds.cache.example.com"), "{told}");
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let crd = crds.get("memcacheds.cache.example.com").await.unwrap();
    assert!(crd.metadata.deletion_timestamp.is_none());
    let kept = objects.get("kept").await.unwrap();
    assert_eq!((kept.metadata.uid, kept.metadata.deletion_timestamp), (made.metadata.uid, None));
    let gone =
        Api::<Deployment>::namespaced(client.clone(), NAMESPACE).get_opt("memcached-operator").await.unwrap();
    assert!(gone.is_none(), "the operator itself is gone");

    // A second life takes over what was left.
    cluster.helm(&["install", "m", "--wait"], &[&second]);
    assert!(objects.get("kept").await.is_ok());
    cluster.helm(&["uninstall", "m", "--wait"], &[]);
    // For a cluster that is not ours: everything as it was.
    objects.delete("kept", &DeleteParams::default()).await.unwrap();
    crds.delete("memcacheds.cache.example.com", &DeleteParams::default()).await.unwrap();
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
}
