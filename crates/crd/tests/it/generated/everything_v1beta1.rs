//! The types of `test.example.com/v1beta1`, kind `Everything`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::kube::CustomResource;
use windlass::serde_json::Value;

#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "test.example.com", version = "v1beta1", kind = "Everything")]
#[kube(
    plural = "everythings",
    singular = "everything",
    shortname = "ev",
    shortname = "every",
    category = "all",
    category = "tests"
)]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(storage = false)]
#[kube(deprecated = r#"use "v1""#)]
#[kube(label("team", "blue"))]
#[kube(annotation("api-approved.kubernetes.io", "unapproved, a test"))]
#[kube(crates(
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "additionalProperties" = null))]
#[serde(rename_all = "camelCase")]
pub struct EverythingSpec {
    /// Fields that the schema does not name.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}
