//! What a Memcached wants to exist. Pure: a spec comes in, children leave.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{
            Container, ContainerPort, PodSpec, PodTemplateSpec, Probe, Service, ServicePort, ServiceSpec,
            TCPSocketAction,
        },
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt;
use windlass::Children;

use super::api::{Exporter, Memcached};
use crate::workload::{INSTANCE, PodOptions, Problem, pods};

/// The label that ties Pods to one Memcached and no other, even one of the same name that came before.
pub(super) const UID: &str = "cache.example.com/uid";
/// The name of the port in the container and the Service, and of the container.
const MEMCACHED: &str = "memcached";
const PORT: i32 = 11211;
const METRICS: &str = "metrics";
/// The user that the stock image runs as.
const USER: i64 = 11211;

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(cache: &Memcached) -> Result<(), Problem> {
    Problem::check_service_name(cache)?;
    Problem::check_range("spec.size", cache.spec.size, 1, 10)
}

/// The children of a Memcached.
pub(super) fn children(cache: &Memcached) -> Children {
    Children::new().with(deployment(cache)).with(service(cache)).with_some(budget(cache))
}

/// The labels that the Deployment selects by. A Deployment's selector can never change, so neither may this.
fn selector_labels(cache: &Memcached) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), MEMCACHED.to_owned()), ("memcached_cr".to_owned(), cache.name_any())])
}

/// The labels by which Pods are found, which no other Memcached's Pods have.
fn own_labels(cache: &Memcached) -> BTreeMap<String, String> {
    let mut labels = selector_labels(cache);
    labels.insert(UID.to_owned(), cache.uid().unwrap_or_default());
    labels
}

fn labels(cache: &Memcached) -> BTreeMap<String, String> {
    let mut labels = own_labels(cache);
    labels.insert(INSTANCE.to_owned(), cache.name_any());
    labels
}

/// The selector in the form that `kubectl get pods -l` and the scale subresource take.
pub(super) fn selector(cache: &Memcached) -> String {
    let pairs: Vec<String> =
        own_labels(cache).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

fn metadata(cache: &Memcached) -> ObjectMeta {
    ObjectMeta { name: Some(cache.name_any()), labels: Some(labels(cache)), ..ObjectMeta::default() }
}

fn deployment(cache: &Memcached) -> Deployment {
    let mut containers = vec![container(cache)];
    containers.extend(cache.spec.exporter.as_ref().map(exporter));
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(cache)), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            security_context: Some(pods::confined_to_user(USER)),
            containers,
            ..PodSpec::default()
        }),
    };
    Deployment {
        metadata: metadata(cache),
        spec: DeploymentSpec {
            replicas: Some(cache.spec.size),
            selector: LabelSelector {
                match_labels: Some(selector_labels(cache)),
                ..LabelSelector::default()
            },
            strategy: Some(one_at_a_time()),
            template: PodOptions::applied_to(cache.spec.pod.as_ref(), template),
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

/// A node that goes takes its items with it: never lose two at once, and never have fewer than asked for.
fn one_at_a_time() -> DeploymentStrategy {
    DeploymentStrategy {
        type_: Some("RollingUpdate".into()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(1)),
            max_unavailable: Some(IntOrString::Int(0)),
        }),
    }
}

fn arguments(cache: &Memcached) -> Option<Vec<String>> {
    let spec = &cache.spec;
    let options = [
        ("-m", spec.memory_mb.map(|size| size.to_string())),
        ("-I", spec.max_item_size.clone()),
        ("-c", spec.connections.map(|count| count.to_string())),
    ];
    let given = options.into_iter().filter_map(|(flag, value)| value.map(|value| [flag.to_owned(), value]));
    let arguments: Vec<String> = given.flatten().collect();
    (!arguments.is_empty()).then_some(arguments)
}

fn port(name: &str, number: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.into()),
        container_port: number,
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    }
}

fn container(cache: &Memcached) -> Container {
    let answers = |period: i32| Probe {
        tcp_socket: Some(TCPSocketAction { port: IntOrString::String(MEMCACHED.into()), host: None }),
        period_seconds: Some(period),
        ..Probe::default()
    };
    Container {
        name: MEMCACHED.into(),
        image: Some(cache.spec.image.clone()),
        // Not every image's entry point takes bare options.
        command: arguments(cache).map(|_| vec![MEMCACHED.into()]),
        args: arguments(cache),
        ports: Some(vec![port(MEMCACHED, PORT)]),
        readiness_probe: Some(answers(5)),
        liveness_probe: Some(answers(10)),
        security_context: Some(pods::unprivileged()),
        ..Container::default()
    }
}

fn exporter(exporter: &Exporter) -> Container {
    Container {
        name: "exporter".into(),
        image: Some(exporter.image.clone()),
        ports: Some(vec![port(METRICS, 9150)]),
        security_context: Some(pods::unprivileged()),
        ..Container::default()
    }
}

/// Headless: clients choose the node of a key themselves, and need every node's address.
fn service(cache: &Memcached) -> Service {
    let offer = |name: &str, number: i32| ServicePort {
        name: Some(name.into()),
        port: number,
        protocol: Some("TCP".into()),
        target_port: Some(IntOrString::String(name.into())),
        ..ServicePort::default()
    };
    let mut ports = vec![offer(MEMCACHED, PORT)];
    ports.extend(cache.spec.exporter.as_ref().map(|_| offer(METRICS, 9150)));
    Service {
        metadata: metadata(cache),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            selector: Some(own_labels(cache)),
            ports: Some(ports),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// One node at a time may be drained. A single node gets no budget: it could never be drained at all.
fn budget(cache: &Memcached) -> Option<PodDisruptionBudget> {
    (cache.spec.size > 1).then(|| PodDisruptionBudget {
        metadata: metadata(cache),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector {
                match_labels: Some(own_labels(cache)),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
