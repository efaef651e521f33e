//! The types of `apps.mycompany.com/v1alpha1`, kind `PodManager`.

#![allow(unreachable_pub, reason = "KubeSchema makes a public copy of each struct inside a function")]
#![allow(
    clippy::doc_lazy_continuation,
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the descriptions are the definition's"
)]
#![allow(clippy::duplicated_attributes, reason = "two columns may be of the same type")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::kube::{CustomResource, KubeSchema};

/// What a PodManager should be.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "apps.mycompany.com", version = "v1alpha1", kind = "PodManager")]
#[kube(plural = "podmanagers", singular = "podmanager", shortname = "pm", category = "windlass", namespaced)]
#[kube(status = "PodManagerStatus")]
#[kube(derive = "PartialEq")]
#[kube(storage = false)]
#[kube(doc = "PodManager keeps a number of Pods of one image running, named after it and an index.")]
#[kube(scale(
    spec_replicas_path = ".spec.size",
    status_replicas_path = ".status.currentReplicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "integer",
    json_path = ".status.readyReplicas",
    description = "Pods that serve"
))]
#[kube(printcolumn(
    name = "Desired",
    type_ = "integer",
    json_path = ".spec.size",
    description = "Pods that are asked for"
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[kube(attr = r#"x_kube(crates(kube_core = "windlass::kube::core"))"#)]
#[kube(
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name is also a label of the Pods: at most 63 characters")
)]
#[kube(crates(
    kube = "windlass::kube",
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[serde(rename_all = "camelCase")]
pub struct PodManagerSpec {
    /// The container of the Pods.
    pub container: PodManagerContainer,

    /// How many Pods run: `replicas` in v1.
    #[serde(default = "default_size")]
    #[schemars(range(min = 1, max = 1000))]
    pub size: i32,
}

/// The container of the Pods.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodManagerContainer {
    /// The container image.
    #[schemars(length(min = 1))]
    pub image: String,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,
}

/// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// What was last seen of a PodManager.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct PodManagerStatus {
    /// Ready: as many Pods serve as are asked for. Progressing: Pods are made or replaced. Degraded:
    /// something needs
    /// a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Pods that run, or are going to.
    #[serde(default)]
    pub current_replicas: i32,

    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Pods that pass their readiness probe.
    #[serde(default)]
    pub ready_replicas: i32,

    /// The label selector of the Pods, as the scale subresource wants it.
    #[serde(default)]
    pub selector: String,

    /// Pods that run the current spec.
    #[serde(default)]
    pub updated_replicas: i32,
}

fn default_size() -> i32 {
    3
}
