//! The types of `cache.example.com/v1alpha1`, kind `Memcached`.

#![allow(unreachable_pub, reason = "KubeSchema makes a public copy of each struct inside a function")]
#![allow(
    clippy::doc_lazy_continuation,
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the descriptions are the definition's"
)]
#![allow(clippy::duplicated_attributes, reason = "two columns may be of the same type")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::api::core::v1::PodSecurityContext;
use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::k8s_openapi::api::core::v1::SecurityContext;
use windlass::k8s_openapi::api::core::v1::Toleration;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::kube::{CustomResource, KubeSchema};

/// What a Memcached should be.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "cache.example.com", version = "v1alpha1", kind = "Memcached")]
#[kube(plural = "memcacheds", singular = "memcached", shortname = "mc", category = "windlass", namespaced)]
#[kube(status = "MemcachedStatus")]
#[kube(derive = "PartialEq")]
#[kube(doc = "Memcached runs cache nodes behind a headless Service of the same name.")]
#[kube(scale(
    spec_replicas_path = ".spec.size",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "integer",
    json_path = ".status.readyReplicas",
    description = "Nodes that serve"
))]
#[kube(printcolumn(
    name = "Desired",
    type_ = "integer",
    json_path = ".spec.size",
    description = "Nodes that are asked for"
))]
#[kube(printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"))]
#[kube(printcolumn(
    name = "Reason",
    type_ = "string",
    json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
    description = "Why it is ready, or is not"
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[kube(attr = r#"x_kube(crates(kube_core = "windlass::kube::core"))"#)]
#[kube(
    validation = Rule::new("self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')").message("the name is also the Service's: at most 63 lower-case letters, digits and '-', starting with a letter, ending with a letter or digit")
)]
#[kube(crates(
    kube = "windlass::kube",
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// How many clients each node serves at the same time. The server's own choice is 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 1000000))]
    pub connections: Option<i32>,

    /// A second container that offers the node's statistics to Prometheus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Exporter")]
    pub exporter: Option<Exporter>,

    /// The container image.
    #[serde(default = "default_memcached_spec_image")]
    #[schemars(length(min = 1))]
    pub image: String,

    /// The size of the largest item, such as `512k` or `2m`. The server's own choice is `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^[1-9][0-9]{0,8}[kKmM]?$"))]
    pub max_item_size: Option<String>,

    /// How much memory each node gives to items, in MiB. The server's own choice is 64.
    #[serde(rename = "memoryMB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 1048576))]
    pub memory_mb: Option<i32>,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pod")]
    pub pod: Option<Pod>,

    /// How many nodes serve.
    #[schemars(range(min = 1, max = 10))]
    pub size: i32,
}

/// A second container that offers the node's statistics to Prometheus.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exporter {
    /// The container image.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,
}

/// More about the Pods.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Annotations of the Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// The security context of the container, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityContext")]
    pub container_security_context: Option<SecurityContext>,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// Secrets with the credentials of private registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<ImagePullSecret>,

    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,

    /// The security context of the Pods, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodSecurityContext")]
    pub security_context: Option<PodSecurityContext>,

    /// The service account of the Pods. They get no token of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub service_account_name: Option<String>,

    /// How long a Pod may take to end, in seconds: 30 days at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0, max = 2592000))]
    pub termination_grace_period_seconds: Option<i64>,

    /// Taints of nodes that the Pods bear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// LocalObjectReference contains enough information to let you locate the referenced object inside the same
/// namespace.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullSecret {
    /// Name of the referent. This field is effectively required, but due to backwards compatibility is
    /// allowed to be empty. Instances of this type with an empty value here are almost certainly wrong. More
    /// info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names
    pub name: String,
}

/// What was last seen of a Memcached.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// Pods that have been ready long enough to count on.
    #[serde(default)]
    pub available_replicas: i32,

    /// Ready: enough nodes serve. Progressing: a rollout is under way. Degraded: something needs a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The names of the Pods that serve, sorted.
    #[serde(default)]
    pub nodes: Vec<String>,

    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Pods that pass their readiness probe.
    #[serde(default)]
    pub ready_replicas: i32,

    /// Pods that exist.
    #[serde(default)]
    pub replicas: i32,

    /// The label selector of the Pods, as the scale subresource wants it.
    #[serde(default)]
    pub selector: String,

    /// Pods that run the current spec.
    #[serde(default)]
    pub updated_replicas: i32,
}

fn default_image() -> String {
    "prom/memcached-exporter:v0.15.3".to_owned()
}

fn default_memcached_spec_image() -> String {
    "memcached:1.6".to_owned()
}
