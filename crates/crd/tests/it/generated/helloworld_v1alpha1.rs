//! The types of `test.jiaozi.com/v1alpha1`, kind `HelloWorld`.

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

/// What a HelloWorld should be.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "test.jiaozi.com", version = "v1alpha1", kind = "HelloWorld")]
#[kube(plural = "helloworlds", singular = "helloworld", shortname = "hw", category = "windlass", namespaced)]
#[kube(status = "HelloWorldStatus")]
#[kube(derive = "PartialEq")]
#[kube(doc = "HelloWorld runs a Deployment of nginx of the same name and lists its Pods.")]
#[kube(scale(
    spec_replicas_path = ".spec.size",
    status_replicas_path = ".status.replicas",
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
#[kube(printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", priority = 1))]
#[kube(printcolumn(
    name = "Reason",
    type_ = "string",
    json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
    description = "Why it is ready, or is not"
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
pub struct HelloWorldSpec {
    /// The container image.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pod")]
    pub pod: Option<Pod>,

    /// How many Pods of nginx run.
    #[schemars(range(min = 0, max = 1000))]
    pub size: i32,
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

/// What was last seen of a HelloWorld.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct HelloWorldStatus {
    /// Pods that have been ready long enough to count on.
    #[serde(default)]
    pub available_replicas: i32,

    /// Ready: enough Pods serve. Progressing: a rollout is under way. Degraded: something needs a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The names of the Pods, sorted.
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
    "nginx:1.27".to_owned()
}
