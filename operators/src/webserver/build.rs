//! What a WebServer wants to exist. Pure: a spec comes in, children leave.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            ConfigMap, ConfigMapVolumeSource, Container, ContainerPort, PodSpec, PodTemplateSpec, Probe,
            SecurityContext, Service, ServicePort, ServiceSpec, TCPSocketAction, Volume, VolumeMount,
        },
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt;
use windlass::Children;

use super::api::WebServer;
use crate::workload::{INSTANCE, ImagePullPolicy, PodOptions, Problem, digest, draining, pods};

/// The label that ties Pods to one WebServer and no other, even one of the same name that came before.
pub(super) const UID: &str = "webserver.example.com/uid";
/// The annotation of Pods that changes with the files that they serve.
const CONTENT_HASH: &str = "webserver.example.com/content-hash";
/// Where the stock image keeps what it serves.
const WEB_ROOT: &str = "/usr/share/nginx/html";
/// The name of the port in the container and the Service.
const PORT: &str = "http";

/// The children of a WebServer.
pub(super) fn children(web: &WebServer) -> Children {
    // What is mounted comes first: a Pod that starts before its files would wait for them.
    Children::new().with_some(content(web)).with(deployment(web)).with(service(web))
}

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(web: &WebServer) -> Result<(), Problem> {
    Problem::check_service_name(web)?;
    Problem::check_range("spec.replicas", web.spec.replicas, 1, 10)?;
    Problem::check_range("spec.port", web.spec.port, 1, 65535)
}

/// The labels that select the Pods.
///
/// A Deployment's selector can never change, so neither may this: new labels go into [`labels`].
fn selector_labels(web: &WebServer) -> BTreeMap<String, String> {
    BTreeMap::from([
        (INSTANCE.to_owned(), web.name_any()),
        (UID.to_owned(), web.metadata.uid.clone().unwrap_or_default()),
    ])
}

fn labels(web: &WebServer) -> BTreeMap<String, String> {
    let mut labels = selector_labels(web);
    labels.insert("app.kubernetes.io/name".to_owned(), "webserver".to_owned());
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "webserver-operator".to_owned());
    labels
}

/// The selector in the form that `kubectl get pods -l` and the scale subresource take.
pub(super) fn selector(web: &WebServer) -> String {
    let pairs: Vec<String> =
        selector_labels(web).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

fn metadata(web: &WebServer) -> ObjectMeta {
    ObjectMeta { name: Some(web.name_any()), labels: Some(labels(web)), ..ObjectMeta::default() }
}

fn deployment(web: &WebServer) -> Deployment {
    Deployment {
        metadata: metadata(web),
        spec: DeploymentSpec {
            replicas: Some(web.spec.replicas),
            selector: LabelSelector { match_labels: Some(selector_labels(web)), ..LabelSelector::default() },
            strategy: Some(draining::without_a_gap()),
            template: draining::lingering(PodOptions::applied_to(web.spec.pod.as_ref(), template(web))),
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

fn template(web: &WebServer) -> PodTemplateSpec {
    let annotations =
        has_content(web).then(|| BTreeMap::from([(CONTENT_HASH.to_owned(), digest::of(&web.spec.content))]));
    let volume = Volume {
        name: "content".into(),
        config_map: Some(ConfigMapVolumeSource {
            name: content_name(web),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    };
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(web)), annotations, ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            // A web server has no business with the Kubernetes API.
            automount_service_account_token: Some(false),
            security_context: Some(pods::confined()),
            containers: vec![container(web)],
            volumes: has_content(web).then(|| vec![volume]),
            ..PodSpec::default()
        }),
    }
}

fn has_content(web: &WebServer) -> bool {
    !web.spec.content.is_empty()
}

fn content_name(web: &WebServer) -> String {
    format!("{}-content", web.name_any())
}

fn content(web: &WebServer) -> Option<ConfigMap> {
    has_content(web).then(|| ConfigMap {
        metadata: ObjectMeta { name: Some(content_name(web)), ..metadata(web) },
        data: Some(web.spec.content.clone()),
        ..ConfigMap::default()
    })
}

fn container(web: &WebServer) -> Container {
    Container {
        name: "webserver".into(),
        image: Some(web.spec.image.clone()),
        volume_mounts: has_content(web).then(|| {
            vec![VolumeMount {
                name: "content".into(),
                mount_path: WEB_ROOT.into(),
                read_only: Some(true),
                ..VolumeMount::default()
            }]
        }),
        image_pull_policy: web.spec.image_pull_policy.map(ImagePullPolicy::as_str).map(Into::into),
        ports: Some(vec![ContainerPort {
            name: Some(PORT.into()),
            container_port: web.spec.port,
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
        // An open port, rather than a page: which paths answer is the image's affair. Without a probe a Pod whose
        // server listens elsewhere would count as ready.
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port: IntOrString::String(PORT.into()), host: None }),
            period_seconds: Some(5),
            ..Probe::default()
        }),
        // The stock nginx image starts as root and binds port 80, so this is as far as a default can go.
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn service(web: &WebServer) -> Service {
    Service {
        metadata: metadata(web),
        spec: Some(ServiceSpec {
            selector: Some(selector_labels(web)),
            ports: Some(vec![ServicePort {
                name: Some(PORT.into()),
                port: web.spec.port,
                protocol: Some("TCP".into()),
                // By name: while a change of the port rolls out, each Pod is reached on its own.
                target_port: Some(IntOrString::String(PORT.into())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
