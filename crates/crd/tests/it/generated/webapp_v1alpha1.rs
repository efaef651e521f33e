//! The types of `apps.example.com/v1alpha1`, kind `WebApp`.

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
use windlass::k8s_openapi::api::core::v1::Affinity;
use windlass::k8s_openapi::api::core::v1::EnvFromSource;
use windlass::k8s_openapi::api::core::v1::EnvVar;
use windlass::k8s_openapi::api::core::v1::PodSecurityContext;
use windlass::k8s_openapi::api::core::v1::Probe;
use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::k8s_openapi::api::core::v1::SecurityContext;
use windlass::k8s_openapi::api::core::v1::Toleration;
use windlass::k8s_openapi::api::core::v1::TopologySpreadConstraint;
use windlass::k8s_openapi::api::core::v1::Volume;
use windlass::k8s_openapi::api::core::v1::VolumeMount;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass::kube::{CustomResource, KubeSchema};

/// What a WebApp should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "apps.example.com", version = "v1alpha1", kind = "WebApp")]
#[kube(plural = "webapps", singular = "webapp", shortname = "wa", category = "windlass", namespaced)]
#[kube(status = "WebAppStatus")]
#[kube(derive = "PartialEq")]
#[kube(
    doc = "WebApp runs an application behind a Service of the same name and, if it has a domain, behind that."
)]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "integer",
    json_path = ".status.readyReplicas",
    description = "Replicas that serve"
))]
#[kube(printcolumn(
    name = "Desired",
    type_ = "integer",
    json_path = ".status.desiredReplicas",
    description = "Replicas that are asked for, by the spec or the autoscaler"
))]
#[kube(printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"))]
#[kube(printcolumn(name = "URL", type_ = "string", json_path = ".status.url"))]
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
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(
    validation = Rule::new("!has(self.tls) || has(self.domain) || (has(self.domains) && self.domains.size() > 0)").message("tls needs a domain that it is for")
)]
#[x_kube(
    validation = Rule::new("!has(self.tls) || !has(self.route) || self.route.type != 'Gateway'").message("tls is for an Ingress: with a Gateway the certificates are those of its listeners, so name them there and leave tls out")
)]
#[serde(rename_all = "camelCase")]
pub struct WebAppSpec {
    /// Which nodes and Pods to be near, and which not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Affinity")]
    pub affinity: Option<Affinity>,

    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,

    /// Lets the load decide how many Pods serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Autoscaling")]
    pub autoscaling: Option<Autoscaling>,

    /// The program, in place of the image's entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,

    /// How many Pods may be drained at once: one, unless set. A single replica has no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Disruption")]
    pub disruption: Option<Disruption>,

    /// The domain under which the application is reached from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(length(max = 253))]
    #[schemars(regex(
        pattern = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ))]
    pub domain: Option<String>,

    /// More domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(
        extend("items" = {"maxLength": 253, "pattern": r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "type": "string"})
    )]
    pub domains: Vec<String>,

    /// Environment variables. A change of a ConfigMap or Secret that they come from rolls the Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,

    /// ConfigMaps and Secrets whose keys become environment variables. A change of them rolls the Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,

    /// The container image. Name a version: what `latest` means changes under running Pods.
    #[schemars(length(min = 1))]
    pub image: String,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// Secrets with the credentials of private registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<ImagePullSecret>,

    /// For how long a Pod must be ready before it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 86400))]
    pub min_ready_seconds: Option<i32>,

    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// The path below the domains that is the application's.
    #[serde(default = "default_path")]
    #[schemars(length(max = 1024), regex(pattern = "^/"))]
    pub path: String,

    /// Holds rollouts back: changes of the Pods are taken, but not rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub paused: Option<bool>,

    /// Annotations of the Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,

    /// The security context of the Pods, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodSecurityContext")]
    pub pod_security_context: Option<PodSecurityContext>,

    /// The port that the container listens on and that the Service offers.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// More ports of the container, which the Service offers as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(
        validation = Rule::new("self.all(port, port.name != 'http')").message("http is the name of spec.port")
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub ports: Vec<Port>,

    /// Probes. If unset, an open port is what readiness takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probes")]
    pub probes: Option<Probes>,

    /// After how long a rollout without progress counts as stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 604800))]
    pub progress_deadline_seconds: Option<i32>,

    /// How many Pods serve. The autoscaler decides, if there is one.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 0, max = 10000))]
    pub replicas: i32,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,

    /// How many old versions are kept to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 1000))]
    pub revision_history_limit: Option<i32>,

    /// How the domains lead to the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Route")]
    pub route: Option<Route>,

    /// The security context of the container, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityContext")]
    pub security_context: Option<SecurityContext>,

    /// The Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Service")]
    pub service: Option<Service>,

    /// The service account of the Pods. Only with one of their own they get a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub service_account_name: Option<String>,

    /// How one version replaces another. If unset, no Pod goes before the one that replaces it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Strategy")]
    pub strategy: Option<Strategy>,

    /// TLS for the domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Tls")]
    pub tls: Option<Tls>,

    /// Taints of nodes that the Pods bear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// How the Pods are spread over nodes and zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,

    /// Where the container has the volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub volume_mounts: Vec<VolumeMount>,

    /// Volumes of the Pods. What changes in a ConfigMap or Secret reaches the files by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub volumes: Vec<Volume>,
}

/// Lets the load decide how many Pods serve.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(validation = Rule::new("self.min <= self.max").message("min must not be greater than max"))]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// How fast it goes up and down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Behavior")]
    pub behavior: Option<Behavior>,

    /// The average use of the CPU that is aimed at, in percent of what the Pods ask for: 80 if no aim is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 10000))]
    pub cpu: Option<i32>,

    /// The largest number of Pods.
    #[schemars(range(min = 1, max = 10000))]
    pub max: i32,

    /// The average use of memory that is aimed at, in percent of what the Pods ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 10000))]
    pub memory: Option<i32>,

    /// The smallest number of Pods.
    #[serde(default = "default_min")]
    #[schemars(range(min = 1, max = 10000))]
    pub min: i32,
}

/// How fast it goes up and down.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Behavior {
    /// scaleDown is scaling policy for scaling Down. If not set, the default value is to allow to scale down
    /// to minReplicas pods, with a 300 second stabilization window (i.e., the highest recommendation for the
    /// last 300sec is used).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ScaleDown")]
    pub scale_down: Option<ScaleDown>,

    /// scaleUp is scaling policy for scaling Up. If not set, the default value is the higher of:
    /// * increase no more than 4 pods per 60 seconds
    /// * double the number of pods per 60 seconds
    /// No stabilization is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ScaleDown")]
    pub scale_up: Option<ScaleDown>,
}

/// scaleDown is scaling policy for scaling Down. If not set, the default value is to allow to scale down to
/// minReplicas pods, with a 300 second stabilization window (i.e., the highest recommendation for the last
/// 300sec is used).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleDown {
    /// policies is a list of potential scaling polices which can be used during scaling. If not set, use the
    /// default values: - For scale up: allow doubling the number of pods, or an absolute change of 4 pods in
    /// a 15s window. - For scale down: allow all pods to be removed in a 15s window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Policy>,

    /// selectPolicy is used to specify which policy should be used. If not set, the default value Max is
    /// used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub select_policy: Option<String>,

    /// stabilizationWindowSeconds is the number of seconds for which past recommendations should be
    /// considered while scaling up or scaling down. StabilizationWindowSeconds must be greater than or equal
    /// to zero and less than or equal to 3600 (one hour). If not set, use the default values: - For scale up:
    /// 0 (i.e. no stabilization is done). - For scale down: 300 (i.e. the stabilization window is 300 seconds
    /// long).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub stabilization_window_seconds: Option<i32>,

    /// tolerance is the tolerance on the ratio between the current and desired metric value under which no
    /// updates are made to the desired number of replicas (e.g. 0.01 for 1%). Must be greater than or equal
    /// to zero. If not set, the default cluster-wide tolerance is applied (by default 10%).
    ///
    /// For example, if autoscaling is configured with a memory consumption target of 100Mi, and scale-down
    /// and scale-up tolerances of 5% and 1% respectively, scaling will be triggered when the actual
    /// consumption falls below 95Mi or exceeds 101Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = true))]
    pub tolerance: Option<IntOrString>,
}

/// HPAScalingPolicy is a single policy which must hold true for a specified past interval.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// periodSeconds specifies the window of time for which the policy should hold true. PeriodSeconds must
    /// be greater than zero and less than or equal to 1800 (30 min).
    pub period_seconds: i32,

    /// type is used to specify the scaling policy.
    pub r#type: String,

    /// value contains the amount of change which is permitted by the policy. It must be greater than zero
    pub value: i32,
}

/// How many Pods may be drained at once: one, unless set. A single replica has no budget.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(
    validation = Rule::new("has(self.minAvailable) != has(self.maxUnavailable)").message("set either minAvailable or maxUnavailable")
)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How many Pods may go: a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = true))]
    pub max_unavailable: Option<IntOrString>,

    /// How many Pods must stay: a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = true))]
    pub min_available: Option<IntOrString>,
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

/// A port of the container and the Service.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Its name.
    #[schemars(length(min = 1, max = 15))]
    #[schemars(regex(pattern = "^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// The port that the Service offers.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// The protocol.
    #[serde(default)]
    pub protocol: Protocol,

    /// The port that the container listens on: the same unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 65535))]
    pub target_port: Option<i32>,
}

/// The protocol.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    #[default]
    #[serde(rename = "TCP")]
    Tcp,
    #[serde(rename = "UDP")]
    Udp,
    #[serde(rename = "SCTP")]
    Sctp,
}

/// Probes. If unset, an open port is what readiness takes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probes {
    /// Whether the container lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probe")]
    pub liveness: Option<Probe>,

    /// Whether the container serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probe")]
    pub readiness: Option<Probe>,

    /// Whether the container has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probe")]
    pub startup: Option<Probe>,
}

/// How the domains lead to the application.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(
    validation = Rule::new("self.type != 'Gateway' || (has(self.parentRefs) && self.parentRefs.size() > 0)").message("name a Gateway in parentRefs")
)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Annotations of the Ingress or HTTPRoute.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// The class of the Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub ingress_class_name: Option<String>,

    /// The Gateways that requests come from. They need Gateway API in the cluster; the certificates for TLS
    /// are theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub parent_refs: Vec<ParentRef>,

    /// The kind of route.
    #[serde(default)]
    pub r#type: Type,
}

/// A Gateway, or one of its listeners.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// The Gateway's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The Gateway's namespace, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 63))]
    pub namespace: Option<String>,

    /// The name of one listener of the Gateway; all that fit, unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

/// The kind of route.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    #[default]
    Auto,
    Gateway,
    Ingress,
    None,
}

/// The Service.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Annotations of the Service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// From where it is reached.
    #[serde(default)]
    pub r#type: ServiceType,
}

/// From where it is reached.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceType {
    #[default]
    #[serde(rename = "ClusterIP")]
    ClusterIp,
    NodePort,
    LoadBalancer,
}

/// How one version replaces another. If unset, no Pod goes before the one that replaces it serves.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// Rolling update config params. Present only if DeploymentStrategyType = RollingUpdate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RollingUpdate")]
    pub rolling_update: Option<RollingUpdate>,

    /// Type of deployment. Can be "Recreate" or "RollingUpdate". Default is RollingUpdate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub r#type: Option<String>,
}

/// Rolling update config params. Present only if DeploymentStrategyType = RollingUpdate.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// The maximum number of pods that can be scheduled above the desired number of pods. Value can be an
    /// absolute number (ex: 5) or a percentage of desired pods (ex: 10%). This can not be 0 if MaxUnavailable
    /// is 0. Absolute number is calculated from percentage by rounding up. Defaults to 25%. Example: when
    /// this is set to 30%, the new ReplicaSet can be scaled up immediately when the rolling update starts,
    /// such that the total number of old and new pods do not exceed 130% of desired pods. Once old pods have
    /// been killed, new ReplicaSet can be scaled up further, ensuring that total number of pods running at
    /// any time during the update is at most 130% of desired pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = true))]
    pub max_surge: Option<IntOrString>,

    /// The maximum number of pods that can be unavailable during the update. Value can be an absolute number
    /// (ex: 5) or a percentage of desired pods (ex: 10%). Absolute number is calculated from percentage by
    /// rounding down. This can not be 0 if MaxSurge is 0. Defaults to 25%. Example: when this is set to 30%,
    /// the old ReplicaSet can be scaled down to 70% of desired pods immediately when the rolling update
    /// starts. Once new pods are ready, old ReplicaSet can be scaled down further, followed by scaling up the
    /// new ReplicaSet, ensuring that the total number of pods available at all times during the update is at
    /// least 70% of desired pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    #[schemars(extend("nullable" = true))]
    pub max_unavailable: Option<IntOrString>,
}

/// TLS for the domains.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(
    validation = Rule::new("has(self.secretName) || has(self.issuerRef)").message("name a Secret with a certificate, or an issuer")
)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The issuer of cert-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IssuerRef")]
    pub issuer_ref: Option<IssuerRef>,

    /// The Secret with the certificate. An issuer writes to it: `<name>-tls` unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub secret_name: Option<String>,
}

/// The issuer of cert-manager.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// Whether it is one of the namespace or of the cluster.
    #[serde(default)]
    pub kind: Kind,

    /// The issuer's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Whether it is one of the namespace or of the cluster.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    #[default]
    Issuer,
    ClusterIssuer,
}

/// What was last seen of a WebApp.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct WebAppStatus {
    /// Pods that have been ready long enough to count on.
    #[serde(default)]
    pub available_replicas: i32,

    /// Ready: enough replicas serve. Progressing: a rollout is under way. Degraded: something needs a person.
    /// RoutesReady: the domains lead to the application. AutoscalerReady: the load decides how many Pods
    /// serve.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Pods that are asked for, by the spec or the autoscaler.
    #[serde(default)]
    pub desired_replicas: i32,

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

    /// Where the application is reached: from outside, or within the cluster if it has no domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub url: Option<String>,
}

fn default_min() -> i32 {
    1
}

fn default_path() -> String {
    "/".to_owned()
}

fn default_port() -> i32 {
    80
}

fn default_replicas() -> i32 {
    1
}
