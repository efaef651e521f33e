//! The part of Gateway API's `HTTPRoute` that a WebApp writes and reads.
//!
//! Typed here rather than taken from a crate: the fields are few, and what others say in such a route is kept by
//! server-side apply.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Which requests go where.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "HTTPRoute",
    plural = "httproutes",
    namespaced,
    derive = "PartialEq",
    status = "HTTPRouteStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteSpec {
    /// The Gateways that requests come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent_refs: Vec<ParentReference>,

    /// The domains of the requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,

    /// Which requests go to which Services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RouteRule>,
}

/// A Gateway, or one of its listeners.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// The Gateway's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The Gateway's namespace, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 63))]
    pub namespace: Option<String>,

    /// The name of one listener of the Gateway; all that fit, unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

/// Where requests of some paths go.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteRule {
    /// The requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<RouteMatch>,

    /// The Services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backend_refs: Vec<Backend>,
}

/// Some requests.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteMatch {
    /// Their path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PathMatch")]
    pub path: Option<PathMatch>,
}

/// Some paths.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathMatch {
    /// How the value is compared.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub type_: Option<String>,

    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub value: Option<String>,
}

/// A Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// Its name.
    pub name: String,

    /// Its port, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub port: Option<i32>,
}

/// What Gateways say to a route.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteStatus {
    /// Each Gateway's word.
    #[serde(default)]
    pub parents: Vec<RouteParentStatus>,
}

/// What one Gateway says to a route.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteParentStatus {
    /// The Gateway.
    pub parent_ref: ParentReference,

    /// Who speaks for it.
    #[serde(default)]
    pub controller_name: String,

    /// Accepted: requests come. ResolvedRefs: they find their Service.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
