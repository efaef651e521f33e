//! The requests that the SDK makes, addressed by kind and key, whatever the kind's scope or type.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Client,
    api::{
        DeleteParams, GetParams, ListParams, ObjectList, Patch, PatchParams, PostParams, Request,
        VersionMatch,
    },
    core::PartialObjectMeta,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    cache::{self, Fresh},
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey},
};

mod patience;
mod repeat;

pub(crate) use patience::{NoAnswer, Patience};

/// What is left after a delete was accepted.
pub(crate) enum Deleted<K> {
    /// The object waits for its finalizers or its grace period, or was returned as it was last.
    Object(Fresh<K>),
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
    match client.request_text(request).await {
        Ok(text) => cache::read(&text).map(Some).map_err(|e| fail(kube::Error::SerdeError(e))),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

/// Reads the metadata of one object as it was at a version; `None` if there was none.
pub(crate) async fn get_at(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    version: u64,
) -> Result<Option<PartialObjectMeta>> {
    let fail = |source| failed("get", kind, key, source);
    let params = ListParams {
        field_selector: Some(format!("metadata.name={}", key.name())),
        resource_version: Some(version.to_string()),
        version_match: Some(VersionMatch::Exact),
        ..ListParams::default()
    };
    let request = target(kind, key).list_metadata(&params).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    let list: ObjectList<PartialObjectMeta> = client.request(request).await.map_err(fail)?;
    Ok(list.items.into_iter().next())
}

/// Reads the metadata of one object from the API server; `None` if there is none.
pub(crate) async fn metadata(client: &Client, kind: &Kind, key: &ObjectKey) -> Result<Option<ObjectMeta>> {
    let fail = |source| failed("get", kind, key, source);
    let request = target(kind, key).get_metadata(key.name(), &GetParams::default());
    let request = request.map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match client.request::<PartialObjectMeta>(request).await {
        Ok(object) => Ok(Some(object.metadata)),
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
) -> Result<Fresh<K>> {
    let fail = |source| failed("create", kind, key, source);
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let data = serde_json::to_vec(body).map_err(|e| fail(kube::Error::SerdeError(e)))?;
    let request = target(kind, key).create(&params, data).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    send(client, request).await.map_err(fail)
}

pub(crate) async fn patch<K: AnyObject>(
    client: &Client,
    operation: &'static str,
    kind: &Kind,
    key: &ObjectKey,
    subresource: Option<&str>,
    patch: &Patch<&Value>,
    params: &PatchParams,
) -> Result<Fresh<K>> {
    let fail = |source| failed(operation, kind, key, source);
    let target = target(kind, key);
    let request = match subresource {
        None => target.patch(key.name(), params, patch),
        Some(subresource) => target.patch_subresource(subresource, key.name(), params, patch),
    };
    send(client, request.map_err(|e| fail(kube::Error::BuildRequest(e)))?).await.map_err(fail)
}

/// Sends a write, and reads the object that it returns as the cache wants it.
async fn send<K: AnyObject>(client: &Client, request: http::Request<Vec<u8>>) -> kube::Result<Fresh<K>> {
    Fresh::read(&client.request_text(request).await?).map_err(kube::Error::SerdeError)
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
    match client.request_text(request).await {
        Ok(text) => deleted(&text).map_err(|e| fail(kube::Error::SerdeError(e))),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Deleted::Gone),
        Err(error) => Err(fail(error)),
    }
}

/// The answer to a deletion: the object as it was or still is, or a mere Status.
fn deleted<K: AnyObject>(text: &str) -> serde_json::Result<Deleted<K>> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(default, borrow)]
        kind: Cow<'a, str>,
    }
    match serde_json::from_str::<Answer<'_>>(text)?.kind {
        kind if kind == "Status" => Ok(Deleted::Gone),
        _ => Fresh::read(text).map(Deleted::Object),
    }
}
