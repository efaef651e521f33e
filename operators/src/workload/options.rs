//! What users may say about the Pods of any kind here, beyond what the kind itself is about.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, LocalObjectReference, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements,
        SecurityContext, Toleration,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a node pulls an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    Always,
    IfNotPresent,
    Never,
}

impl ImagePullPolicy {
    /// The word that a container's `imagePullPolicy` takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// Options of the Pods.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodOptions {
    /// Annotations of the Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// Secrets with the credentials of private registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,

    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Taints of nodes that the Pods bear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// The service account of the Pods. They get no token of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub service_account_name: Option<String>,

    /// The security context of the Pods, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodSecurityContext")]
    pub security_context: Option<PodSecurityContext>,

    /// The security context of the container, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityContext")]
    pub container_security_context: Option<SecurityContext>,

    /// How long a Pod may take to end, in seconds: 30 days at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0, max = 2_592_000))]
    pub termination_grace_period_seconds: Option<i64>,
}

impl PodOptions {
    /// The operator's template, changed as the user says. The first container is the one that options are about.
    pub(crate) fn applied_to(options: Option<&Self>, mut template: PodTemplateSpec) -> PodTemplateSpec {
        if let Some(options) = options {
            let metadata = template.metadata.get_or_insert_default();
            options.change_metadata(metadata);
            options.change_pod(template.spec.get_or_insert_default());
        }
        template
    }

    fn change_metadata(&self, metadata: &mut ObjectMeta) {
        if !self.annotations.is_empty() {
            // What the operator notes on the Pods itself is not the user's to replace.
            let mut annotations = self.annotations.clone();
            annotations.extend(metadata.annotations.take().unwrap_or_default());
            metadata.annotations = Some(annotations);
        }
    }

    fn change_pod(&self, pod: &mut PodSpec) {
        if let Some(container) = pod.containers.first_mut() {
            self.change_container(container);
        }
        if !self.image_pull_secrets.is_empty() {
            pod.image_pull_secrets = Some(self.image_pull_secrets.clone());
        }
        if !self.node_selector.is_empty() {
            pod.node_selector = Some(self.node_selector.clone());
        }
        if !self.tolerations.is_empty() {
            pod.tolerations = Some(self.tolerations.clone());
        }
        if self.security_context.is_some() {
            pod.security_context.clone_from(&self.security_context);
        }
        if self.service_account_name.is_some() {
            pod.service_account_name.clone_from(&self.service_account_name);
            // The server sets the old name beside the new one; whoever does not own both cannot take them away again.
            pod.service_account.clone_from(&self.service_account_name);
        }
        if self.termination_grace_period_seconds.is_some() {
            pod.termination_grace_period_seconds = self.termination_grace_period_seconds;
        }
    }

    fn change_container(&self, container: &mut Container) {
        if let Some(policy) = self.image_pull_policy {
            container.image_pull_policy = Some(policy.as_str().into());
        }
        if self.resources.is_some() {
            container.resources.clone_from(&self.resources);
        }
        if self.container_security_context.is_some() {
            container.security_context.clone_from(&self.container_security_context);
        }
    }
}
