//! The requests that the SDK makes, addressed by kind and key, whatever the kind's scope or type.

use kube::{
    Client,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Request},
    core::Status,
};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey},
};

/// What is left after a delete was accepted.
pub(crate) enum Deleted<K> {
    /// The object waits for its finalizers or its grace period, or was returned as it was last.
    Object(K),
    /// The object is gone.
    Gone,
}

fn target(kind: &Kind, key: &ObjectKey) -> Request {
    Request::new(kind.path(key.namespace()))
}

fn failed(operation: &'static str, kind: &Kind, key: &ObjectKey, source: kube::Error) -> Error {
    Error::Request { operation, kind: Box::new(kind.clone()), key: key.clone(), source: Box::new(source) }
}

/// Reads one object from the API server; `None` if there is none.
pub(crate) async fn get<K: AnyObject>(client: &Client, kind: &Kind, key: &ObjectKey) -> Result<Option<K>> {
    let fail = |source| failed("get", kind, key, source);
    let (target, params) = (target(kind, key), GetParams::default());
    let request = if K::metadata_api() {
        target.get_metadata(key.name(), &params)
    } else {
        target.get(key.name(), &params)
    };
    let request = request.map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match client.request(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

pub(crate) async fn create<K: AnyObject>(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    body: &Value,
    manager: &str,
) -> Result<K> {
    let fail = |source| failed("create", kind, key, source);
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let data = serde_json::to_vec(body).map_err(|e| fail(kube::Error::SerdeError(e)))?;
    let request = target(kind, key).create(&params, data).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    client.request(request).await.map_err(fail)
}

pub(crate) async fn patch<K: AnyObject>(
    client: &Client,
    operation: &'static str,
    kind: &Kind,
    key: &ObjectKey,
    subresource: Option<&str>,
    patch: &Patch<&Value>,
    params: &PatchParams,
) -> Result<K> {
    let fail = |source| failed(operation, kind, key, source);
    let target = target(kind, key);
    let request = match subresource {
        None => target.patch(key.name(), params, patch),
        Some(subresource) => target.patch_subresource(subresource, key.name(), params, patch),
    };
    client.request(request.map_err(|e| fail(kube::Error::BuildRequest(e)))?).await.map_err(fail)
}

pub(crate) async fn delete<K: AnyObject>(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    params: &DeleteParams,
) -> Result<Deleted<K>> {
    let fail = |source| failed("delete", kind, key, source);
    let request =
        target(kind, key).delete(key.name(), params).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match client.request_status::<K>(request).await {
        Ok(answer) => Ok(answer.either(Deleted::Object, |_: Status| Deleted::Gone)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Deleted::Gone),
        Err(error) => Err(fail(error)),
    }
}
