//! The types of `cache.example.com/v1alpha1`, from which the CRD is generated.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::workload::{PodOptions, Reported};

/// What a Memcached should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    shortname = "mc",
    category = "windlass",
    namespaced,
    doc = "Memcached runs cache nodes behind a headless Service of the same name.",
    derive = "PartialEq",
    status = "MemcachedStatus",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Nodes that serve"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.size", description = "Nodes that are asked for"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Why it is ready, or is not"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // The Service takes this name, and a Service's name is a DNS label that starts with a letter.
    validation = Rule::new("self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name is also the Service's: at most 63 lower-case letters, digits and '-', starting with a letter, ending with a letter or digit")
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// How many nodes serve.
    #[schemars(range(min = 1, max = 10))]
    pub size: i32,

    /// The container image.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,

    /// How much memory each node gives to items, in MiB. The server's own choice is 64.
    #[serde(default, rename = "memoryMB", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 1_048_576))]
    pub memory_mb: Option<i32>,

    /// The size of the largest item, such as `512k` or `2m`. The server's own choice is `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^[1-9][0-9]{0,8}[kKmM]?$"))]
    pub max_item_size: Option<String>,

    /// How many clients each node serves at the same time. The server's own choice is 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 1_000_000))]
    pub connections: Option<i32>,

    /// A second container that offers the node's statistics to Prometheus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Exporter")]
    pub exporter: Option<Exporter>,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodOptions")]
    pub pod: Option<PodOptions>,
}

/// The exporter of statistics.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exporter {
    /// The container image.
    #[serde(default = "default_exporter")]
    #[schemars(length(min = 1))]
    pub image: String,
}

/// What was last seen of a Memcached.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// The names of the Pods that serve, sorted.
    #[serde(default)]
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

    /// Ready: enough nodes serve. Progressing: a rollout is under way. Degraded: something needs a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for MemcachedStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

pub(super) fn default_image() -> String {
    "memcached:1.6".into()
}

fn default_exporter() -> String {
    "prom/memcached-exporter:v0.15.3".into()
}
