//! Objects to begin with, and waiting for what they become.

use std::{fmt::Debug, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
    kube::{
        Api, Client, Resource,
        api::{ListParams, Patch, PatchParams, PostParams},
        runtime::wait::await_condition,
    },
};

pub(crate) fn decode<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the fixture must be an object of its kind")
}

pub(crate) fn deployment(name: &str, replicas: i32) -> Deployment {
    decode(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
            },
        },
    }))
}

pub(crate) fn api<K>(client: &Client) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), "default")
}

pub(crate) async fn create<K>(client: &Client, object: &K) -> K
where
    K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>
        + serde::Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    api::<K>(client).create(&PostParams::default(), object).await.expect("the object must be accepted")
}

pub(crate) async fn merge<K>(client: &Client, name: &str, patch: Value) -> K
where
    K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>
        + DeserializeOwned
        + Clone
        + Debug,
{
    let patched = api::<K>(client).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.expect("the patch must be accepted")
}

/// Waits until an object is as it should be; after half a minute the test fails and shows the object.
pub(crate) async fn wait<K>(
    api: Api<K>,
    name: &str,
    what: &str,
    test: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + DeserializeOwned + 'static,
{
    let waited = await_condition(api.clone(), name, move |object: Option<&K>| test(object));
    match tokio::time::timeout(Duration::from_secs(30), waited).await {
        Ok(found) => found.expect("the watch must go on"),
        Err(elapsed) => panic!("{name} is not {what} ({elapsed}): {:#?}", api.get_opt(name).await),
    }
}

pub(crate) fn is_complete(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
}

pub(crate) async fn wait_complete(client: &Client, name: &str) -> Deployment {
    let done = wait(api::<Deployment>(client), name, "complete", |d| d.is_some_and(is_complete)).await;
    done.expect("a complete Deployment must be there")
}

/// The condition lines of a Deployment, sorted.
pub(crate) fn conditions(deployment: &Deployment) -> Vec<String> {
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut lines: Vec<String> = conditions
        .map(|c| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("{}={} {}", text(&c.type_), text(&c.status), text(&c.reason))
        })
        .collect();
    lines.sort();
    lines
}

pub(crate) async fn pods_of(client: &Client, app: &str) -> Vec<Pod> {
    let params = ListParams::default().labels(&format!("app={app}"));
    let pods = api::<Pod>(client).list(&params).await.expect("Pods must be listed").items;
    pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
}

pub(crate) async fn sets_of(client: &Client, app: &str) -> Vec<ReplicaSet> {
    let params = ListParams::default().labels(&format!("app={app}"));
    api::<ReplicaSet>(client).list(&params).await.expect("ReplicaSets must be listed").items
}

pub(crate) async fn list<K>(client: &Client, labels: &str) -> Vec<K>
where
    K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>
        + DeserializeOwned
        + Clone
        + Debug,
{
    api::<K>(client).list(&ListParams::default().labels(labels)).await.expect("objects must be listed").items
}

/// The events about an object of a kind, as `reason: message`, in the order in which they were made.
pub(crate) async fn events(client: &Client, kind: &str, name: &str) -> Vec<String> {
    use windlass::k8s_openapi::api::core::v1::Event;
    let mut all =
        api::<Event>(client).list(&ListParams::default()).await.expect("Events must be listed").items;
    all.retain(|event| {
        event.involved_object.kind.as_deref() == Some(kind)
            && event.involved_object.name.as_deref() == Some(name)
    });
    all.sort_by_key(|event| event.metadata.resource_version.as_ref().and_then(|v| v.parse::<u64>().ok()));
    let line = |event: &Event| {
        format!(
            "{}: {}",
            event.reason.as_deref().unwrap_or_default(),
            event.message.as_deref().unwrap_or_default()
        )
    };
    all.iter().map(line).collect()
}
