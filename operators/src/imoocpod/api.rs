//! The types of `batch.tutorial.kubebuilder.io/v1alpha1`, from which the CRD is generated.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::workload::{PodOptions, Reported};

/// What an ImoocPod should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1alpha1",
    kind = "ImoocPod",
    plural = "imoocpods",
    shortname = "imp",
    category = "windlass",
    namespaced,
    doc = "ImoocPod keeps a number of sleeping Pods running.",
    derive = "PartialEq",
    status = "ImoocPodStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Pods that are ready"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.replicas", description = "Pods that run or are going to"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "Pods that are asked for"),
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
pub struct ImoocPodSpec {
    /// How many Pods run.
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,

    /// The container image. It needs the command `sleep`.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodOptions")]
    pub pod: Option<PodOptions>,
}

/// What was last seen of an ImoocPod.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImoocPodStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Pods that run, or are going to.
    #[serde(default)]
    pub replicas: i32,

    /// Pods that are ready.
    #[serde(default)]
    pub ready_replicas: i32,

    /// Pods that run the current spec.
    #[serde(default)]
    pub updated_replicas: i32,

    /// The names of the Pods that run or are going to, sorted.
    #[serde(default)]
    pub pod_names: Vec<String>,

    /// The label selector of the Pods, as the scale subresource wants it.
    #[serde(default)]
    pub selector: String,

    /// Ready: as many Pods run as are asked for. Progressing: Pods are made or replaced. Degraded: something needs a
    /// person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for ImoocPodStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

pub(super) fn default_image() -> String {
    "busybox:1.37".into()
}
