//! The types of `webserver.example.com/v1`, from which the CRD is generated.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::workload::{ImagePullPolicy, PodOptions, Reported};

/// What a WebServer should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "webserver.example.com",
    version = "v1",
    kind = "WebServer",
    plural = "webservers",
    shortname = "ws",
    category = "windlass",
    namespaced,
    doc = "WebServer runs replicas of a web server image behind a Service of the same name.",
    derive = "PartialEq",
    status = "WebServerStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Replicas that serve"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "Replicas that are asked for"),
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
pub struct WebServerSpec {
    /// How many Pods serve.
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i32,

    /// The container image. Name a version: what `latest` means changes under running Pods.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1))]
    pub image: String,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// The port that the container listens on and that the Service offers.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// Files to serve, by name, in place of the image's own. They are mounted at `/usr/share/nginx/html`; a change
    /// rolls the Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub content: BTreeMap<String, String>,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodOptions")]
    pub pod: Option<PodOptions>,
}

/// What was last seen of a WebServer.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebServerStatus {
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

    /// Ready: enough replicas serve. Progressing: a rollout is under way. Degraded: something needs a person.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for WebServerStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

pub(super) fn default_image() -> String {
    "nginx:latest".into()
}

pub(super) fn default_port() -> i32 {
    80
}
