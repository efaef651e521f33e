//! Applies objects of any kind.

use std::time::Duration;

use serde_json::Value;
use windlass::{
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        self, Api, Client,
        api::{DynamicObject, Patch, PatchParams},
        core::GroupVersionKind,
        discovery::{self, Scope},
        runtime::wait::{await_condition, conditions::is_crd_established},
    },
};

use crate::project::Error;

/// Whose fields these are.
const MANAGER: &str = "windlass-dev";

/// How long the API server may take until it serves a new kind.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Applies CRDs, and waits until they are served.
pub(crate) async fn crds(client: &Client, crds: &[Value]) -> Result<(), Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    // Forced: the operator's program decides what its kinds are.
    let params = PatchParams::apply(MANAGER).force();
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let what = || format!("the CRD {name}");
        let failed = |source: kube::Error| Error::Apply { what: what(), source: source.into() };
        api.patch(name, &params, &Patch::Apply(crd)).await.map_err(failed)?;
        let established = await_condition(api.clone(), name, is_crd_established());
        // One that is refused by name conflicts says so in its conditions; its objects cannot be applied then.
        if !matches!(tokio::time::timeout(TIMEOUT, established).await, Ok(Ok(_))) {
            tracing::warn!(name, "a CRD is not established; `kubectl describe crd` says why");
        }
    }
    Ok(())
}

/// Applies objects, in their order.
pub(crate) async fn all(client: &Client, objects: &[Value]) -> Result<(), Error> {
    for object in objects {
        one(client, object, MANAGER, true).await?;
    }
    Ok(())
}

/// Applies an object, in the namespace `default` if it names none. Returns its kind and name.
pub(crate) async fn one(
    client: &Client,
    object: &Value,
    manager: &str,
    force: bool,
) -> Result<String, Error> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let what = format!("{}/{name}", kind.to_lowercase());
    let failed = |source: kube::Error| Error::Apply { what: what.clone(), source: source.into() };
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let unknown = |source: kube::Error| Error::UnknownKind {
        what: format!("{kind} in {group}/{version}"),
        source: source.into(),
    };
    let (resource, capabilities) = discovery::pinned_kind(client, &gvk).await.map_err(unknown)?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
            Api::namespaced_with(client.clone(), namespace.unwrap_or(client.default_namespace()), &resource)
        }
    };
    let mut params = PatchParams::apply(manager);
    params.force = force;
    api.patch(name, &params, &Patch::Apply(object)).await.map_err(failed)?;
    Ok(what)
}
