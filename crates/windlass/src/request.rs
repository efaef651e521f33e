//! The requests that the SDK makes, addressed by kind and key, whatever the kind's scope or type.

use std::{borrow::Cow, time::Duration};

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
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey},
    runs,
    wire::{self, Fresh},
};

/// Longer than anybody looks at a stopped process.
pub(crate) const ENDLESS: Duration = Duration::from_hours(24 * 365);

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
    let text = get_text(client, kind, key, K::metadata_api()).await?;
    let read = text.map(|text| wire::read(&text)).transpose();
    read.map_err(|source| unreadable("get", kind, key, source))
}

// What follows is compiled once for all kinds, but for the reading of answers.

async fn get_text(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    metadata_only: bool,
) -> Result<Option<String>> {
    let fail = |source| failed("get", kind, key, source);
    let (target, params) = (target(kind, key), GetParams::default());
    let request = if metadata_only {
        target.get_metadata(key.name(), &params)
    } else {
        target.get(key.name(), &params)
    };
    let request = request.map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match runs::send(client, request).await {
        Ok(text) => Ok(Some(text)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

fn unreadable(operation: &'static str, kind: &Kind, key: &ObjectKey, source: serde_json::Error) -> Error {
    failed(operation, kind, key, kube::Error::SerdeError(source))
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
    let text = create_text(client, kind, key, body, manager).await?;
    Fresh::read(&text).map_err(|source| unreadable("create", kind, key, source))
}

async fn create_text(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    body: &Value,
    manager: &str,
) -> Result<String> {
    let fail = |source| failed("create", kind, key, source);
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let data = serde_json::to_vec(body).map_err(|e| fail(kube::Error::SerdeError(e)))?;
    let request = target(kind, key).create(&params, data).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    runs::send(client, request).await.map_err(fail)
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
    let text = patch_text(client, operation, kind, key, subresource, patch, params).await?;
    Fresh::read(&text).map_err(|source| unreadable(operation, kind, key, source))
}

async fn patch_text(
    client: &Client,
    operation: &'static str,
    kind: &Kind,
    key: &ObjectKey,
    subresource: Option<&str>,
    patch: &Patch<&Value>,
    params: &PatchParams,
) -> Result<String> {
    let fail = |source| failed(operation, kind, key, source);
    let target = target(kind, key);
    let request = match subresource {
        None => target.patch(key.name(), params, patch),
        Some(subresource) => target.patch_subresource(subresource, key.name(), params, patch),
    };
    runs::send(client, request.map_err(|e| fail(kube::Error::BuildRequest(e)))?).await.map_err(fail)
}

pub(crate) async fn delete<K: AnyObject>(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    params: &DeleteParams,
) -> Result<Deleted<K>> {
    let Some(text) = delete_text(client, kind, key, params).await? else { return Ok(Deleted::Gone) };
    Fresh::read(&text).map(Deleted::Object).map_err(|source| unreadable("delete", kind, key, source))
}

/// The object as it was or still is; `None` for a mere Status, or if there is none.
async fn delete_text(
    client: &Client,
    kind: &Kind,
    key: &ObjectKey,
    params: &DeleteParams,
) -> Result<Option<String>> {
    let fail = |source| failed("delete", kind, key, source);
    let request =
        target(kind, key).delete(key.name(), params).map_err(|e| fail(kube::Error::BuildRequest(e)))?;
    match runs::send(client, request).await {
        Ok(text) if is_status(&text).map_err(|e| fail(kube::Error::SerdeError(e)))? => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

fn is_status(text: &str) -> serde_json::Result<bool> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(default, borrow)]
        kind: Cow<'a, str>,
    }
    Ok(serde_json::from_str::<Answer<'_>>(text)?.kind == "Status")
}
