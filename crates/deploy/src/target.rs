//! Which object a manifest is about, and the requests that are made for it.

use std::fmt;

use serde_json::Value;
use windlass::kube::{
    self, Api, Client,
    api::{DeleteParams, DynamicObject, Preconditions},
    core::{ApiResource, GroupVersionKind},
};

use crate::error::Error;

/// An object by its kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// Kinds, not versions, tell objects apart.
pub(crate) type Identity = (String, String, String, String);

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.resource.kind, self.name),
            None => write!(f, "{} {}", self.resource.kind, self.name),
        }
    }
}

impl Target {
    pub(crate) fn of(manifest: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&manifest["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let gvk = GroupVersionKind::gvk(group, version, &text(&manifest["kind"]));
        Self {
            // The kinds that run operators have regular plurals.
            resource: ApiResource::from_gvk(&gvk),
            namespace: manifest["metadata"]["namespace"].as_str().map(ToOwned::to_owned),
            name: text(&manifest["metadata"]["name"]),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        let namespace = self.namespace.clone().unwrap_or_default();
        (self.resource.group.clone(), self.resource.kind.clone(), namespace, self.name.clone())
    }

    pub(crate) fn is_crd(&self) -> bool {
        self.resource.kind == "CustomResourceDefinition"
    }

    pub(crate) fn api(&self, client: &Client) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }

    /// The object as it is, or none.
    pub(crate) async fn found(&self, client: &Client) -> Result<Option<DynamicObject>, Error> {
        match self.api(client).get_opt(&self.name).await {
            Ok(found) => Ok(found),
            // A kind that is not served has no objects.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(self.failed("read", error)),
        }
    }

    /// Deletes the object as it was seen; one that somebody has made anew since stays. Whether it was there.
    pub(crate) async fn delete(&self, client: &Client, uid: Option<String>) -> Result<bool, Error> {
        let preconditions = uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::background() };
        match self.api(client).delete(&self.name, &params).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(false),
            Err(error) => Err(self.failed("delete", error)),
        }
    }

    pub(crate) fn failed(&self, verb: &'static str, error: kube::Error) -> Error {
        Error::Request { verb, what: self.to_string(), source: error.into() }
    }
}
