//! The kind and what it wants to exist. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A web server that is served by some Pods behind a Service.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bench.windlass.dev",
    version = "v1",
    kind = "WebServer",
    namespaced,
    status = "WebServerStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct WebServerSpec {
    /// How many Pods.
    pub replicas: i32,
    /// What they run.
    pub image: String,
    /// Where it listens.
    pub port: i32,
}

/// What was last seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebServerStatus {
    /// The generation that the rest of the status is about.
    #[serde(default)]
    pub observed_generation: Option<i64>,
    /// How many Pods are ready.
    #[serde(default)]
    pub ready_replicas: i32,
}

fn labels(web: &WebServer) -> BTreeMap<String, String> {
    [("app".to_owned(), web.name_any())].into()
}

fn metadata(web: &WebServer) -> ObjectMeta {
    ObjectMeta { name: Some(web.name_any()), labels: Some(labels(web)), ..ObjectMeta::default() }
}

/// The Deployment of a WebServer, without an owner.
pub fn deployment(web: &WebServer) -> Deployment {
    let container = Container {
        name: "web".to_owned(),
        image: Some(web.spec.image.clone()),
        ports: Some(vec![ContainerPort { container_port: web.spec.port, ..ContainerPort::default() }]),
        ..Container::default()
    };
    Deployment {
        metadata: metadata(web),
        spec: DeploymentSpec {
            replicas: Some(web.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels(web)), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(web)), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

/// The Service of a WebServer, without an owner.
pub fn service(web: &WebServer) -> Service {
    let port = ServicePort {
        name: Some("http".to_owned()),
        port: web.spec.port,
        target_port: Some(IntOrString::Int(web.spec.port)),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(web),
        spec: Some(ServiceSpec {
            selector: Some(labels(web)),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The status that follows from a Deployment.
pub fn observed(web: &WebServer, deployment: Option<&Deployment>) -> WebServerStatus {
    let ready = deployment.and_then(|deployment| deployment.status.as_ref()?.ready_replicas);
    WebServerStatus { observed_generation: web.metadata.generation, ready_replicas: ready.unwrap_or(0) }
}
