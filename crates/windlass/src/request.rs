//! The requests that the SDK makes, typed by kind and addressed by key, whatever the kind's scope.

use kube::{
    Client,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Request},
    core::Status,
};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    object::{Kind, Object, ObjectKey},
};

/// What is left after a delete was accepted.
pub(crate) enum Deleted<K> {
    /// The object waits for its finalizers or its grace period, or was returned as it was last.
    Object(K),
    /// The object is gone.
    Gone,
}

fn target<K: Object>(key: &ObjectKey) -> Request {
    Request::new(K::url_path(&(), key.namespace()))
}

pub(crate) fn failed<K: Object>(operation: &'static str, key: &ObjectKey, source: kube::Error) -> Error {
    Error::Request { operation, kind: Box::new(Kind::of::<K>()), key: key.clone(), source: Box::new(source) }
}

/// Reads one object from the API server; `None` if there is none.
pub(crate) async fn get<K: Object>(client: &Client, key: &ObjectKey) -> Result<Option<K>> {
    let fail = |source| failed::<K>("get", key, source);
    let request = target::<K>(key)
        .get(key.name(), &GetParams::default())
        .map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match client.request(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

pub(crate) async fn create<K: Object>(
    client: &Client,
    key: &ObjectKey,
    body: &Value,
    manager: &str,
) -> Result<K> {
    let fail = |source| failed::<K>("create", key, source);
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let data = serde_json::to_vec(body).map_err(|e| fail(kube::Error::SerdeError(e)))?;
    let request = target::<K>(key).create(&params, data).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    client.request(request).await.map_err(fail)
}

pub(crate) async fn patch<K: Object>(
    client: &Client,
    operation: &'static str,
    key: &ObjectKey,
    subresource: Option<&str>,
    patch: &Patch<&Value>,
    params: &PatchParams,
) -> Result<K> {
    let fail = |source| failed::<K>(operation, key, source);
    let target = target::<K>(key);
    let request = match subresource {
        None => target.patch(key.name(), params, patch),
        Some(subresource) => target.patch_subresource(subresource, key.name(), params, patch),
    };
    client.request(request.map_err(|e| fail(kube::Error::BuildRequest(e)))?).await.map_err(fail)
}

pub(crate) async fn delete<K: Object>(
    client: &Client,
    key: &ObjectKey,
    params: &DeleteParams,
) -> Result<Deleted<K>> {
    let fail = |source| failed::<K>("delete", key, source);
    let request =
        target::<K>(key).delete(key.name(), params).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match client.request_status::<K>(request).await {
        Ok(answer) => Ok(answer.either(Deleted::Object, |_: Status| Deleted::Gone)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Deleted::Gone),
        Err(error) => Err(fail(error)),
    }
}
