//! The children of the operators' objects, of whatever kind, as values: what the tests over all kinds compare.

use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::{Value, json};
use windlass_operators::{Entry, catalogue};

/// The kinds that the operators make, beside Gateway API's, which no cluster has by itself.
pub(crate) fn kinds() -> Vec<ApiResource> {
    [
        ("apps/v1", "Deployment", "deployments"),
        ("apps/v1", "StatefulSet", "statefulsets"),
        ("v1", "Service", "services"),
        ("v1", "ConfigMap", "configmaps"),
        ("v1", "Secret", "secrets"),
        ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
        ("v1", "Pod", "pods"),
        ("batch/v1", "CronJob", "cronjobs"),
        ("batch/v1", "Job", "jobs"),
        ("networking.k8s.io/v1", "Ingress", "ingresses"),
        ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ]
    .map(|(api_version, kind, plural)| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    })
    .into()
}

/// The objects of a kind that is known by its resource alone.
pub(crate) fn api(client: &Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, resource)
}

/// The objects of a kind of the catalogue.
pub(crate) fn kind_api(client: &Client, namespace: &str, entry: &Entry) -> Api<DynamicObject> {
    api(client, namespace, &entry.resource())
}

/// An object as JSON, with the kind that a list leaves out.
pub(crate) fn value(object: &DynamicObject, resource: &ApiResource) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["apiVersion"] = resource.api_version.clone().into();
    value["kind"] = resource.kind.clone().into();
    value
}

/// Everything that an object of these controls, whatever it is, sorted by kind and name.
pub(crate) async fn controlled_by(client: &Client, namespace: &str, uid: &str) -> Vec<Value> {
    controlled_among(&kinds(), client, namespace, uid).await
}

/// The same of these kinds.
pub(crate) async fn controlled_among(
    kinds: &[ApiResource],
    client: &Client,
    namespace: &str,
    uid: &str,
) -> Vec<Value> {
    let mut found = Vec::new();
    for resource in kinds {
        let list = api(client, namespace, resource).list(&ListParams::default()).await.unwrap();
        let own = list.items.iter().filter(|object| {
            let owners = object.owner_references();
            owners.iter().any(|owner| owner.uid == uid && owner.controller == Some(true))
                && object.metadata.deletion_timestamp.is_none()
        });
        found.extend(own.map(|object| value(object, resource)));
    }
    found
}

/// The resource of a child.
pub(crate) fn resource_of(child: &Value) -> ApiResource {
    let found = kinds().into_iter().find(|resource| child["kind"] == resource.kind.as_str());
    found.unwrap_or_else(|| panic!("{} is a new kind of child: add it here", child["kind"]))
}

/// A child without what differs from one life of it to the next: what is left is what its operator wants of it.
pub(crate) fn wanted(mut child: Value) -> Value {
    let generated = child["metadata"]["generateName"].is_string();
    if let Some(metadata) = child["metadata"].as_object_mut() {
        for field in
            ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"]
        {
            metadata.remove(field);
        }
        if generated {
            metadata.remove("name");
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // The digest of the intent, and what the controllers of the cluster write.
            annotations
                .retain(|key, _| !key.contains("applied.windlass.dev/") && !key.contains("kubernetes.io/"));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    if let Some(child) = child.as_object_mut() {
        child.remove("status");
    }
    // Where a Pod runs is the scheduler's affair.
    if child["kind"] == "Pod" {
        child["spec"]["nodeName"] = json!(null);
        child["spec"]["volumes"] = json!(null);
        if let Some(containers) = child["spec"]["containers"].as_array_mut() {
            for container in containers.iter_mut() {
                container["volumeMounts"] = json!(null);
            }
        }
    }
    child
}

/// `Deployment whole`: how a child is named in messages.
pub(crate) fn title(child: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&child["kind"]), text(&child["metadata"]["name"]))
}

/// The kinds of the catalogue that have children of their own.
pub(crate) fn parents() -> impl Iterator<Item = &'static Entry> {
    catalogue().iter().filter(|entry| entry.name != "databasebackup")
}
