//! Puts the generated files into the cluster, and takes them out again.

use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::json;
use windlass_operators::manifests;

use crate::eventually;

/// The objects of `config/crd` and `config/default`, in the order in which they are applied.
fn objects() -> Vec<DynamicObject> {
    let mut files = manifests::manifests().unwrap();
    // What `default` does not list is for overlays, and some of it for clusters that have more kinds than this one.
    let beside = ["/samples/", "/prometheus/", "/grafana/", "/network-policy/", "kustomization.yaml"];
    files.retain(|file| !beside.iter().any(|part| file.path.contains(part)));
    // Kustomize substitutes the image.
    let parse = |text: &str| {
        let text = text.replace("image: controller:latest", &format!("image: {}", manifests::IMAGE));
        serde_saphyr::from_multiple::<DynamicObject>(&text).unwrap()
    };
    let mut objects: Vec<_> = files.iter().flat_map(|file| parse(&file.content)).collect();
    // What others need comes first, as kustomize has it.
    let rank = |object: &DynamicObject| match kind_of(object) {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        kind if kind.ends_with("WebhookConfiguration") => 3,
        _ => 2,
    };
    objects.sort_by_key(rank);
    objects
}

fn kind_of(object: &DynamicObject) -> &str {
    object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default()
}

fn api(client: &Client, object: &DynamicObject) -> Api<DynamicObject> {
    let types = object.types.as_ref().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// An operator that ran outside the cluster has left its address in the kinds, and an address beside a Service is
/// refused.
async fn forget_webhook(crds: &Api<DynamicObject>, name: &str) {
    if crds.get_opt(name).await.unwrap().is_some() {
        let forget = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        crds.patch(name, &PatchParams::default(), &Patch::Merge(forget)).await.unwrap();
    }
}

/// What `kubectl apply --server-side -k` does.
pub(crate) async fn apply(client: &Client) {
    // Whoever was here before may still be on the way out.
    going_is_gone(client).await;
    let params = PatchParams::apply("windlass-deployed-test").force();
    for object in objects() {
        let name = object.metadata.name.clone().unwrap();
        if kind_of(&object) == "CustomResourceDefinition" {
            forget_webhook(&api(client, &object), &name).await;
        }
        let applied = api(client, &object).patch(&name, &params, &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", kind_of(&object)));
    }
}

/// Removes all but the kinds, and waits until the operators' namespace is gone.
pub(crate) async fn remove(client: &Client) {
    for object in objects().into_iter().rev().filter(|object| kind_of(object) != "CustomResourceDefinition") {
        let name = object.metadata.name.clone().unwrap();
        match api(client, &object).delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => panic!("{} {name}: {error}", kind_of(&object)),
        }
    }
    gone(client, |_| true).await;
}

/// Waits until no namespace of ours is being deleted.
async fn going_is_gone(client: &Client) {
    gone(client, |namespace| namespace.metadata.deletion_timestamp.is_some()).await;
}

/// Waits until the operators' namespace is not there any more, or not in such a way.
async fn gone(client: &Client, so: impl Fn(&DynamicObject) -> bool) {
    for namespace in objects().iter().filter(|object| kind_of(object) == "Namespace") {
        let (namespaces, name) = (api(client, namespace), namespace.metadata.name.clone().unwrap());
        eventually(&format!("the namespace {name} is gone"), || async {
            namespaces.get_opt(&name).await.unwrap().is_none_or(|found| !so(&found)).then_some(())
        })
        .await;
    }
}
