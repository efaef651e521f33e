//! The types of `apps.mycompany.com/v1`, from which the CRD is generated; [`v1alpha1`] has those of the older version.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

pub mod v1alpha1;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::workload::{PodOptions, Reported};

/// What a PodManager should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "apps.mycompany.com",
    version = "v1",
    kind = "PodManager",
    plural = "podmanagers",
    shortname = "pm",
    category = "windlass",
    namespaced,
    doc = "PodManager keeps a number of Pods of one image running, named after it and an index.",
    derive = "PartialEq",
    status = "PodManagerStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.currentReplicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Pods that serve"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.currentReplicas", description = "Pods that exist"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "Pods that are asked for"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
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
pub struct PodManagerSpec {
    /// How many Pods run, up to 1000.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: i32,

    /// The container image. Another one is rolled out Pod by Pod.
    #[schemars(length(min = 1))]
    pub image: String,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodOptions")]
    pub pod: Option<PodOptions>,
}

/// What was last seen of a PodManager.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodManagerStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Pods that pass their readiness probe.
    #[serde(default)]
    pub ready_replicas: i32,

    /// Pods that run, or are going to.
    #[serde(default)]
    pub current_replicas: i32,

    /// Pods that run the current spec.
    #[serde(default)]
    pub updated_replicas: i32,

    /// The label selector of the Pods, as the scale subresource wants it.
    #[serde(default)]
    pub selector: String,

    /// Ready: as many Pods serve as are asked for. Progressing: Pods are made or replaced. Degraded: something needs
    /// a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for PodManagerStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

fn default_replicas() -> i32 {
    3
}
