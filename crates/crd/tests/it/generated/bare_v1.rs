//! The types of `test.example.com/v1`, kind `Bare`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::kube::CustomResource;

#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "test.example.com", version = "v1", kind = "Bare")]
#[kube(plural = "bares", singular = "bare", namespaced)]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(no_spec)]
#[kube(crates(
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[serde(rename_all = "camelCase")]
pub struct BareFields {
    pub data: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub immutable: Option<bool>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Spec")]
    pub spec: Option<Spec>,
}

#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub x: Option<String>,
}
