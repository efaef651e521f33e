//! What the tests share: a cluster, releases to deploy, and what is in the cluster afterwards.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use windlass::kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use windlass_cluster::Cluster;
use windlass_deploy::{Deployer, Error, Options, Release};

pub(crate) const NAME: &str = "box-operator";
pub(crate) const HOME: &str = "boxes";

/// A cluster and what was told.
pub(crate) struct Bed {
    pub(crate) cluster: Cluster,
    told: Arc<Mutex<Vec<String>>>,
}

impl Bed {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
        Self { cluster, told: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        self.cluster.client()
    }

    pub(crate) async fn deploy(&self, release: &Release) -> Result<(), Error> {
        self.deploy_with(release, Options::default()).await
    }

    pub(crate) async fn deploy_with(&self, release: &Release, options: Options) -> Result<(), Error> {
        self.with(options, |deployer| async move { deployer.deploy(release).await }).await
    }

    pub(crate) async fn undo(&self, options: Options) -> Result<(), Error> {
        self.with(options, |deployer| async move { deployer.undo(NAME, HOME, None).await }).await
    }

    /// Does something with a deployer whose words are kept.
    pub(crate) async fn with<T, F: Future<Output = T>>(
        &self,
        options: Options,
        work: impl FnOnce(Deployer<'static>) -> F,
    ) -> T {
        self.with_client(self.client(), options, work).await
    }

    pub(crate) async fn with_client<T, F: Future<Output = T>>(
        &self,
        client: Client,
        options: Options,
        work: impl FnOnce(Deployer<'static>) -> F,
    ) -> T {
        let told = self.told.clone();
        let tell: &'static (dyn Fn(&str) + Send + Sync) =
            Box::leak(Box::new(move |line: &str| told.lock().unwrap().push(line.to_owned())));
        work(Deployer::new(client, options, tell)).await
    }

    /// What was told since the last time.
    pub(crate) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    pub(crate) fn api(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client(), namespace, &resource),
            None => Api::all_with(self.client(), &resource),
        }
    }

    /// Applies an object as somebody else.
    pub(crate) async fn put(&self, manager: &str, object: Value) -> DynamicObject {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let namespace = Some(text("/metadata/namespace")).filter(|it| !it.is_empty());
        let api = self.api(group, version, text("/kind"), namespace);
        let params = PatchParams::apply(manager).force();
        api.patch(text("/metadata/name"), &params, &Patch::Apply(&object)).await.unwrap()
    }

    /// Everything of the kinds that releases here have, but for the server's own books.
    pub(crate) async fn state(&self) -> Vec<Value> {
        let mut state = Vec::new();
        let kinds = [
            ("", "v1", "Namespace"),
            ("", "v1", "ServiceAccount"),
            ("", "v1", "ConfigMap"),
            ("", "v1", "Service"),
            ("apps", "v1", "Deployment"),
            ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ];
        for (group, version, kind) in kinds {
            let found = self.api(group, version, kind, None).list(&ListParams::default()).await.unwrap();
            for object in found.items {
                // What controllers make for every namespace comes when it comes.
                let name = object.metadata.name.as_deref().unwrap_or_default();
                if name.starts_with("system:")
                    || (kind == "ServiceAccount" && name == "default")
                    || name == "kube-root-ca.crt"
                {
                    continue;
                }
                let mut value = serde_json::to_value(object).unwrap();
                value["kind"] = kind.into();
                value.as_object_mut().unwrap().remove("status");
                let metadata = value["metadata"].as_object_mut().unwrap();
                for field in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"] {
                    metadata.remove(field);
                }
                if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                    annotations.remove("deployment.kubernetes.io/revision");
                    if annotations.is_empty() {
                        metadata.remove("annotations");
                    }
                }
                state.push(value);
            }
        }
        state
    }

    pub(crate) async fn get(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        let found = self.api(group, "v1", kind, namespace).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }
}

pub(crate) fn options() -> Options {
    Options { wait: Some(Duration::from_mins(2)), ..Options::default() }
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "windlass"})
}

/// A Deployment, its account and its namespace.
pub(crate) fn objects(image: &str) -> Vec<Value> {
    let chosen = json!({"app.kubernetes.io/name": NAME});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME, "labels": labels()}}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": HOME, "labels": labels()},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "box-operator-manager-role", "labels": labels()},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": HOME, "labels": labels()},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": chosen},
                "template": {
                    "metadata": {"labels": chosen},
                    "spec": {"serviceAccountName": NAME, "containers": [{"name": "manager", "image": image}]},
                },
            },
        }),
    ]
}

pub(crate) fn release(image: &str) -> Release {
    Release::new(objects(image)).unwrap()
}

/// The same, and more.
pub(crate) fn release_with(image: &str, more: impl IntoIterator<Item = Value>) -> Release {
    Release::new(objects(image).into_iter().chain(more).collect()).unwrap()
}

/// A definition with these versions, of which the first is stored, and these fields of the spec.
pub(crate) fn definition(versions: &[&str], fields: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    let version = |(place, name): (usize, &&str)| {
        json!({
            "name": name, "served": true, "storage": place == 0,
            "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": properties}},
            }},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crates.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Crate", "plural": "crates"},
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    })
}

/// An object of that kind.
pub(crate) fn object(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Crate",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"size": "big"},
    })
}
