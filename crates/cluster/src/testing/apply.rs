//! Objects of any kind into the cluster and out of it, as `kubectl apply --server-side` would do it.

use windlass::{
    kube::{
        Api, Client, Error,
        api::{DeleteParams, DynamicObject, Patch, PatchParams},
        core::GroupVersionKind,
        discovery::{Scope, pinned_kind},
    },
    serde_json::Value,
};

/// Applies an object; one without a namespace whose kind needs one goes into `namespace`.
pub async fn apply(client: &Client, namespace: &str, object: &Value) -> Result<DynamicObject, Error> {
    let (api, name) = place(client, namespace, object).await?;
    let params = PatchParams::apply("kubectl").force();
    api.patch(&name, &params, &Patch::Apply(object)).await
}

/// Deletes an object; one that is not there is no error.
pub async fn delete(client: &Client, namespace: &str, object: &Value) -> Result<(), Error> {
    let (api, name) = place(client, namespace, object).await?;
    match api.delete(&name, &DeleteParams::background()).await {
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// Where objects of this kind are, and the name of this one.
async fn place(
    client: &Client,
    namespace: &str,
    object: &Value,
) -> Result<(Api<DynamicObject>, String), Error> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let metadata = &object["metadata"];
    let api = match capabilities.scope {
        Scope::Cluster => Api::<DynamicObject>::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = metadata["namespace"].as_str().unwrap_or(namespace);
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    Ok((api, text(&metadata["name"])))
}

/// The documents of a YAML stream.
///
/// # Panics
///
/// When it is no YAML.
pub fn documents(yaml: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("this is no YAML: {error}\n{yaml}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}
