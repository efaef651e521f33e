//! The types of `test.jiaozi.com/v1alpha1`, from which the CRD is generated.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::workload::{PodOptions, Reported};

/// What a HelloWorld should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "test.jiaozi.com",
    version = "v1alpha1",
    kind = "HelloWorld",
    plural = "helloworlds",
    shortname = "hw",
    category = "windlass",
    namespaced,
    doc = "HelloWorld runs a Deployment of nginx of the same name and lists its Pods.",
    derive = "PartialEq",
    status = "HelloWorldStatus",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Pods that serve"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.size", description = "Pods that are asked for"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", priority = 1),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Why it is ready, or is not"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("the name is also a label of the Pods: at most 63 characters")
)]
#[serde(rename_all = "camelCase")]
pub struct HelloWorldSpec {
    /// How many Pods of nginx run.
    #[schemars(range(min = 0, max = 1000))]
    pub size: i32,

    /// The container image.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodOptions")]
    pub pod: Option<PodOptions>,
}

/// What was last seen of a HelloWorld.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloWorldStatus {
    /// The names of the Pods, sorted.
    pub nodes: Vec<String>,

    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Pods that exist.
    #[serde(default)]
    pub replicas: i32,

    /// Pods that pass their readiness probe.
    #[serde(default)]
    pub ready_replicas: i32,

    /// Pods that run the current spec.
    #[serde(default)]
    pub updated_replicas: i32,

    /// Pods that have been ready long enough to count on.
    #[serde(default)]
    pub available_replicas: i32,

    /// The label selector of the Pods, as the scale subresource wants it.
    #[serde(default)]
    pub selector: String,

    /// Ready: enough Pods serve. Progressing: a rollout is under way. Degraded: something needs a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for HelloWorldStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

pub(super) fn default_image() -> String {
    "nginx:1.27".into()
}
