//! What a HelloWorld wants to exist. Pure: a spec comes in, children leave.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Container, ContainerPort, PodSpec, PodTemplateSpec, Probe, SecurityContext, TCPSocketAction,
        },
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt;
use windlass::Children;

use super::api::HelloWorld;
use crate::workload::{INSTANCE, PodOptions, Problem, pods};

/// The label that ties Pods to one HelloWorld and no other, even one of the same name that came before.
pub(super) const UID: &str = "test.jiaozi.com/uid";
/// The label that the Deployment selects by.
const NAME: &str = "hello_name";
const PORT: &str = "nginx";

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(hello: &HelloWorld) -> Result<(), Problem> {
    Problem::check_label_name(hello)?;
    Problem::check_range("spec.size", hello.spec.size, 0, 1000)
}

/// The children of a HelloWorld.
pub(super) fn children(hello: &HelloWorld) -> Children {
    Children::new().with(deployment(hello))
}

/// The labels that the Deployment selects by. A Deployment's selector can never change, so neither may this.
fn selector_labels(hello: &HelloWorld) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME.to_owned(), hello.name_any())])
}

/// The selector in the form that `kubectl get pods -l` and the scale subresource take.
pub(super) fn selector(hello: &HelloWorld) -> String {
    format!("{NAME}={},{UID}={}", hello.name_any(), hello.uid().unwrap_or_default())
}

fn labels(hello: &HelloWorld) -> BTreeMap<String, String> {
    let mut labels = selector_labels(hello);
    labels.insert(INSTANCE.to_owned(), hello.name_any());
    labels.insert(UID.to_owned(), hello.uid().unwrap_or_default());
    labels
}

fn deployment(hello: &HelloWorld) -> Deployment {
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(hello)), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            security_context: Some(pods::confined()),
            containers: vec![container(hello)],
            ..PodSpec::default()
        }),
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(hello.name_any()),
            labels: Some(labels(hello)),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: Some(hello.spec.size),
            selector: LabelSelector {
                match_labels: Some(selector_labels(hello)),
                ..LabelSelector::default()
            },
            template: PodOptions::applied_to(hello.spec.pod.as_ref(), template),
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

fn container(hello: &HelloWorld) -> Container {
    Container {
        name: "nginx".into(),
        image: Some(hello.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            name: Some(PORT.into()),
            container_port: 80,
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
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
