//! The types of `apps.example.com/v1alpha1`, from which the CRD is generated; [`gateway`] has those of Gateway API.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

pub mod gateway;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::DeploymentStrategy,
        autoscaling::v2::HorizontalPodAutoscalerBehavior,
        core::v1::{
            Affinity, EnvFromSource, EnvVar, LocalObjectReference, PodSecurityContext, Probe,
            ResourceRequirements, SecurityContext, Toleration, TopologySpreadConstraint, Volume, VolumeMount,
        },
    },
    apimachinery::pkg::{apis::meta::v1::Condition, util::intstr::IntOrString},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::gateway::ParentReference;
use crate::workload::{ImagePullPolicy, Reported};

/// What a WebApp should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "apps.example.com",
    version = "v1alpha1",
    kind = "WebApp",
    plural = "webapps",
    shortname = "wa",
    category = "windlass",
    namespaced,
    doc = "WebApp runs an application behind a Service of the same name and, if it has a domain, behind that.",
    derive = "PartialEq",
    status = "WebAppStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Replicas that serve"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".status.desiredReplicas", description = "Replicas that are asked for, by the spec or the autoscaler"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
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
#[x_kube(
    validation = Rule::new("!has(self.tls) || has(self.domain) || (has(self.domains) && self.domains.size() > 0)")
        .message("tls needs a domain that it is for"),
    validation = Rule::new("!has(self.tls) || !has(self.route) || self.route.type != 'Gateway'")
        .message("tls is for an Ingress: with a Gateway the certificates are those of its listeners, so name them there and leave tls out")
)]
#[serde(rename_all = "camelCase")]
pub struct WebAppSpec {
    /// How many Pods serve. The autoscaler decides, if there is one.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 0, max = 10_000))]
    pub replicas: i32,

    /// The container image. Name a version: what `latest` means changes under running Pods.
    #[schemars(length(min = 1))]
    pub image: String,

    /// The port that the container listens on and that the Service offers.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// More ports of the container, which the Service offers as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".into()]),
        validation = Rule::new("self.all(port, port.name != 'http')").message("http is the name of spec.port")
    )]
    pub ports: Vec<Port>,

    /// The domain under which the application is reached from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(max = 253),
        regex(pattern = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub domain: Option<String>,

    /// More domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(
            length(max = 253),
            regex(pattern = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
        )
    )]
    pub domains: Vec<String>,

    /// The path below the domains that is the application's.
    #[serde(default = "default_path")]
    #[schemars(length(max = 1024), regex(pattern = "^/"))]
    pub path: String,

    /// TLS for the domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Tls")]
    pub tls: Option<Tls>,

    /// How the domains lead to the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Route")]
    pub route: Option<Route>,

    /// The Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ServiceOptions")]
    pub service: Option<ServiceOptions>,

    /// Lets the load decide how many Pods serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Autoscaling")]
    pub autoscaling: Option<Autoscaling>,

    /// How many Pods may be drained at once: one, unless set. A single replica has no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Disruption")]
    pub disruption: Option<Disruption>,

    /// Holds rollouts back: changes of the Pods are taken, but not rolled out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// Secrets with the credentials of private registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// The program, in place of the image's entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,

    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,

    /// Environment variables. A change of a ConfigMap or Secret that they come from rolls the Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,

    /// ConfigMaps and Secrets whose keys become environment variables. A change of them rolls the Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,

    /// Volumes of the Pods. What changes in a ConfigMap or Secret reaches the files by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub volumes: Vec<Volume>,

    /// Where the container has the volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub volume_mounts: Vec<VolumeMount>,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,

    /// Probes. If unset, an open port is what readiness takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probes")]
    pub probes: Option<Probes>,

    /// The service account of the Pods. Only with one of their own they get a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub service_account_name: Option<String>,

    /// The security context of the container, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityContext")]
    pub security_context: Option<SecurityContext>,

    /// The security context of the Pods, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodSecurityContext")]
    pub pod_security_context: Option<PodSecurityContext>,

    /// How one version replaces another. If unset, no Pod goes before the one that replaces it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeploymentStrategy")]
    pub strategy: Option<DeploymentStrategy>,

    /// For how long a Pod must be ready before it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 86_400))]
    pub min_ready_seconds: Option<i32>,

    /// After how long a rollout without progress counts as stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 604_800))]
    pub progress_deadline_seconds: Option<i32>,

    /// How many old versions are kept to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0, max = 1000))]
    pub revision_history_limit: Option<i32>,

    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Which nodes and Pods to be near, and which not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Affinity")]
    pub affinity: Option<Affinity>,

    /// Taints of nodes that the Pods bear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// How the Pods are spread over nodes and zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,

    /// Annotations of the Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
}

/// A port of the container and the Service.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Its name.
    #[schemars(length(min = 1, max = 15), regex(pattern = "^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// The port that the Service offers.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// The port that the container listens on: the same unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 65535))]
    pub target_port: Option<i32>,

    /// The protocol.
    #[serde(default)]
    pub protocol: Protocol,
}

/// The protocols of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// The word that a container's port takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// TLS for the domains behind an Ingress: a certificate that is there, or one that cert-manager is to issue.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("has(self.secretName) || has(self.issuerRef)")
        .message("name a Secret with a certificate, or an issuer")
)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The Secret with the certificate. An issuer writes to it: `<name>-tls` unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub secret_name: Option<String>,

    /// The issuer of cert-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IssuerRef")]
    pub issuer_ref: Option<IssuerRef>,
}

/// An issuer of certificates.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// The issuer's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Whether it is one of the namespace or of the cluster.
    #[serde(default)]
    pub kind: IssuerKind,
}

/// The kinds of issuers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IssuerKind {
    #[default]
    Issuer,
    ClusterIssuer,
}

/// How the domains lead to the application.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("self.type != 'Gateway' || (has(self.parentRefs) && self.parentRefs.size() > 0)")
        .message("name a Gateway in parentRefs")
)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The kind of route.
    #[serde(default, rename = "type")]
    pub type_: RouteType,

    /// The Gateways that requests come from. They need Gateway API in the cluster; the certificates for TLS are theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub parent_refs: Vec<ParentReference>,

    /// The class of the Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub ingress_class_name: Option<String>,

    /// Annotations of the Ingress or HTTPRoute.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The kinds of routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RouteType {
    /// An HTTPRoute if a Gateway is named and the cluster serves Gateway API, else an Ingress.
    #[default]
    Auto,
    /// An HTTPRoute of Gateway API.
    Gateway,
    /// An Ingress.
    Ingress,
    /// No route.
    None,
}

/// The Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOptions {
    /// From where it is reached.
    #[serde(default, rename = "type")]
    pub type_: ServiceType,

    /// Annotations of the Service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The kinds of Services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    #[default]
    ClusterIP,
    NodePort,
    LoadBalancer,
}

/// The autoscaler.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.min <= self.max").message("min must not be greater than max"))]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// The smallest number of Pods.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 10_000))]
    pub min: i32,

    /// The largest number of Pods.
    #[schemars(range(min = 1, max = 10_000))]
    pub max: i32,

    /// The average use of the CPU that is aimed at, in percent of what the Pods ask for: 80 if no aim is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 10_000))]
    pub cpu: Option<i32>,

    /// The average use of memory that is aimed at, in percent of what the Pods ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 10_000))]
    pub memory: Option<i32>,

    /// How fast it goes up and down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HorizontalPodAutoscalerBehavior")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// The disruption budget.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("has(self.minAvailable) != has(self.maxUnavailable)")
        .message("set either minAvailable or maxUnavailable")
)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How many Pods must stay: a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    pub min_available: Option<IntOrString>,

    /// How many Pods may go: a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IntOrString")]
    pub max_unavailable: Option<IntOrString>,
}

/// The probes of the container.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probes {
    /// Whether the container serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probe")]
    pub readiness: Option<Probe>,

    /// Whether the container lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probe")]
    pub liveness: Option<Probe>,

    /// Whether the container has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Probe")]
    pub startup: Option<Probe>,
}

/// What was last seen of a WebApp.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebAppStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Where the application is reached: from outside, or within the cluster if it has no domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub url: Option<String>,

    /// Pods that are asked for, by the spec or the autoscaler.
    #[serde(default)]
    pub desired_replicas: i32,

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
    /// RoutesReady: the domains lead to the application. AutoscalerReady: the load decides how many Pods serve.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for WebAppStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

fn default_replicas() -> i32 {
    1
}

fn default_port() -> i32 {
    80
}

fn default_path() -> String {
    "/".into()
}
