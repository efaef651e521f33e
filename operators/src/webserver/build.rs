//! What a WebServer wants to exist. Pure: a spec comes in, children leave.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Container, ContainerPort, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, SeccompProfile,
            SecurityContext, Service, ServicePort, ServiceSpec, TCPSocketAction,
        },
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt;
use windlass::Children;

use super::api::{ImagePullPolicy, WebServer};

/// The label that ties Pods to one WebServer and no other, even one of the same name that came before.
const UID: &str = "webserver.example.com/uid";
const INSTANCE: &str = "app.kubernetes.io/instance";
/// The name of the port in the container and the Service.
const PORT: &str = "http";

/// A name that the children cannot have.
#[derive(Debug, thiserror::Error)]
#[error(
    "the name {0:?} cannot be a Service's name, which has at most 63 lower-case letters, digits and '-', \
     starts with a letter and ends with a letter or digit; create the WebServer under another name"
)]
pub struct InvalidName(String);

/// The children of a WebServer.
pub(super) fn children(web: &WebServer) -> Children {
    Children::new().with(deployment(web)).with(service(web))
}

/// Refuses a name that the Service cannot have. The CRD says the same, but the object may be older than the rule.
pub(super) fn check_name(web: &WebServer) -> Result<(), InvalidName> {
    let name = web.name_any();
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let valid = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(inner);
    if valid { Ok(()) } else { Err(InvalidName(name)) }
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

/// Whether an image's reference leaves open which version runs: no tag, or `latest`, and no digest.
pub(super) fn is_floating(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    // A colon before the last slash belongs to a registry's port.
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
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
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(web)), ..ObjectMeta::default() }),
                spec: Some(pod_spec(web)),
            },
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

fn pod_spec(web: &WebServer) -> PodSpec {
    PodSpec {
        // A web server has no business with the Kubernetes API.
        automount_service_account_token: Some(false),
        security_context: Some(PodSecurityContext {
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".into(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(web)],
        ..PodSpec::default()
    }
}

fn container(web: &WebServer) -> Container {
    Container {
        name: "webserver".into(),
        image: Some(web.spec.image.clone()),
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
