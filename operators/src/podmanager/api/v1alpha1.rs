//! `apps.mycompany.com/v1alpha1`: the form that PodManager had first. It is served beside v1 and converted to and from
//! it; what only v1 can say is kept in an annotation.

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use windlass::webhook::{ConversionError, Spoke, keep, kept};

use super::{PodManagerStatus, default_replicas};
use crate::workload::{ImagePullPolicy, PodOptions};

/// The version whose fields an annotation keeps.
const HUB: &str = "v1";

/// What a PodManager should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "apps.mycompany.com",
    version = "v1alpha1",
    kind = "PodManager",
    plural = "podmanagers",
    shortname = "pm",
    category = "windlass",
    namespaced,
    doc = "PodManager keeps a number of Pods of one image running, named after it and an index.",
    derive = "PartialEq",
    status = "PodManagerStatus",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.currentReplicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas", description = "Pods that serve"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.size", description = "Pods that are asked for"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("the name is also a label of the Pods: at most 63 characters")
)]
#[serde(rename_all = "camelCase")]
pub struct PodManagerSpec {
    /// How many Pods run: `replicas` in v1.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 1000))]
    pub size: i32,

    /// The container of the Pods.
    pub container: Container,
}

/// The container of the Pods.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The container image.
    #[schemars(length(min = 1))]
    pub image: String,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,
}

impl PodManagerSpec {
    /// What this version can say of a hub.
    fn of(hub: &super::PodManagerSpec) -> Self {
        let pod = hub.pod.clone().unwrap_or_default();
        let container = Container {
            image: hub.image.clone(),
            image_pull_policy: pod.image_pull_policy,
            resources: pod.resources,
        };
        Self { size: hub.replicas, container }
    }

    /// The hub that says this, and for the rest of the Pods what `more` says.
    fn hub(self, more: Option<PodOptions>) -> super::PodManagerSpec {
        let Container { image, image_pull_policy, resources } = self.container;
        let given = more.is_some();
        let pod = PodOptions { image_pull_policy, resources, ..more.unwrap_or_default() };
        let pod = Some(pod).filter(|pod| given || *pod != PodOptions::default());
        super::PodManagerSpec { replicas: self.size, image, pod }
    }
}

impl Spoke for PodManager {
    type Hub = super::PodManager;

    fn into_hub(mut self) -> Result<super::PodManager, ConversionError> {
        let more = kept::<PodOptions, _>(&mut self, HUB)?;
        Ok(super::PodManager { metadata: self.metadata, spec: self.spec.hub(more), status: self.status })
    }

    fn from_hub(mut hub: super::PodManager) -> Result<Self, ConversionError> {
        // The annotation is ours: one that is on a hub already came from nowhere.
        kept::<serde::de::IgnoredAny, _>(&mut hub, HUB)?;
        let spec = PodManagerSpec::of(&hub.spec);
        let says_all = spec.clone().hub(None) == hub.spec;
        let mut object = Self { metadata: hub.metadata, spec, status: hub.status };
        if !says_all {
            keep(&mut object, HUB, &hub.spec.pod)?;
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests;
