//! What a WebApp wants to exist. Pure: a spec and the digest of its configuration come in, children leave.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        autoscaling::v2::{
            CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricSpec,
            MetricTarget, ResourceMetricSource,
        },
        core::v1::{
            Container, ContainerPort, PodSpec, PodTemplateSpec, Probe, SecurityContext, Service, ServicePort,
            ServiceSpec, TCPSocketAction,
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

use super::{
    api::{Autoscaling, Protocol, ServiceType, WebApp},
    domains,
    route::{self, Way},
};
use crate::workload::{INSTANCE, ImagePullPolicy, Problem, draining, pods};

/// The label that ties Pods to one WebApp and no other, even one of the same name that came before.
pub(super) const UID: &str = "apps.example.com/uid";
/// The annotation of Pods that changes with the ConfigMaps and Secrets that they use.
pub(super) const CONFIG_HASH: &str = "apps.example.com/config-hash";
/// The name of the port in the container and the Service.
pub(super) const PORT: &str = "http";

/// The most replicas.
const MOST: i32 = 10_000;

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(app: &WebApp) -> Result<(), Problem> {
    Problem::check_service_name(app)?;
    Problem::check_range("spec.replicas", app.spec.replicas, 0, MOST)?;
    Problem::check_range("spec.port", app.spec.port, 1, 65535)?;
    if let Some(autoscaling) = &app.spec.autoscaling {
        Problem::check_range("spec.autoscaling.max", autoscaling.max, 1, MOST)?;
        Problem::check_range("spec.autoscaling.min", autoscaling.min, 1, autoscaling.max)?;
    }
    check_ports(app)?;
    let disruption = app.spec.disruption.as_ref();
    if disruption.is_some_and(|it| it.min_available.is_some() == it.max_unavailable.is_some()) {
        return Err(Problem::spec("spec.disruption: set either minAvailable or maxUnavailable"));
    }
    if app.spec.tls.is_some() && domains::hosts(app).is_empty() {
        return Err(Problem::spec("spec.tls needs a domain that it is for; set spec.domain"));
    }
    Ok(())
}

/// Refuses ports of which two are the same: neither a container nor a Service can have them.
fn check_ports(app: &WebApp) -> Result<(), Problem> {
    let mut seen = BTreeSet::from([("port", app.spec.port, "TCP"), ("targetPort", app.spec.port, "TCP")]);
    for extra in &app.spec.ports {
        Problem::check_range("spec.ports[].port", extra.port, 1, 65535)?;
        let target = extra.target_port.unwrap_or(extra.port);
        Problem::check_range("spec.ports[].targetPort", target, 1, 65535)?;
        for (field, number) in [("port", extra.port), ("targetPort", target)] {
            if !seen.insert((field, number, extra.protocol.as_str())) {
                let name = &extra.name;
                return Err(Problem::spec(format!(
                    "spec.ports: {name} has the {field} {number} of another one; write a number of its own"
                )));
            }
        }
    }
    Ok(())
}

/// The children of a WebApp. `config` is the digest of the ConfigMaps and Secrets that its Pods use, if they use any.
///
/// `hosts` are the domains that are this WebApp's own.
pub(super) fn children(app: &WebApp, config: Option<&str>, way: Way, hosts: &[String]) -> Children {
    let children = Children::new().with(deployment(app, config)).with(service(app));
    route::with_route(children, app, way, hosts)
        .with_some(app.spec.autoscaling.as_ref().map(|autoscaling| autoscaler(app, autoscaling)))
        .with_some(budget(app))
}

/// The labels that select the Pods.
///
/// A Deployment's selector can never change, so neither may this: new labels go into [`labels`].
fn selector_labels(app: &WebApp) -> BTreeMap<String, String> {
    BTreeMap::from([(INSTANCE.to_owned(), app.name_any()), (UID.to_owned(), app.uid().unwrap_or_default())])
}

fn labels(app: &WebApp) -> BTreeMap<String, String> {
    let mut labels = selector_labels(app);
    labels.insert("app.kubernetes.io/name".to_owned(), "webapp".to_owned());
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "webapp-operator".to_owned());
    labels
}

/// The selector in the form that `kubectl get pods -l` and the scale subresource take.
pub(super) fn selector(app: &WebApp) -> String {
    let pairs: Vec<String> =
        selector_labels(app).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

pub(super) fn metadata(app: &WebApp) -> ObjectMeta {
    ObjectMeta { name: Some(app.name_any()), labels: Some(labels(app)), ..ObjectMeta::default() }
}

fn given<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

fn deployment(app: &WebApp, config: Option<&str>) -> Deployment {
    let spec = &app.spec;
    Deployment {
        metadata: metadata(app),
        spec: DeploymentSpec {
            // With an autoscaler the number is its own: what is not said here is not taken back.
            replicas: spec.autoscaling.is_none().then_some(spec.replicas),
            selector: LabelSelector { match_labels: Some(selector_labels(app)), ..LabelSelector::default() },
            strategy: Some(spec.strategy.clone().unwrap_or_else(draining::without_a_gap)),
            min_ready_seconds: spec.min_ready_seconds,
            progress_deadline_seconds: spec.progress_deadline_seconds,
            revision_history_limit: spec.revision_history_limit,
            paused: spec.paused.then_some(true),
            template: draining::lingering(template(app, config)),
        },
        status: None,
    }
}

fn template(app: &WebApp, config: Option<&str>) -> PodTemplateSpec {
    let spec = &app.spec;
    let mut annotations = spec.pod_annotations.clone();
    annotations.extend(config.map(|digest| (CONFIG_HASH.to_owned(), digest.to_owned())));
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(app)),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(spec.service_account_name.is_some()),
            service_account_name: spec.service_account_name.clone(),
            // The server sets the old name beside the new one; whoever does not own both cannot take them away again.
            service_account: spec.service_account_name.clone(),
            security_context: Some(spec.pod_security_context.clone().unwrap_or_else(pods::confined)),
            image_pull_secrets: given(&spec.image_pull_secrets),
            node_selector: Some(spec.node_selector.clone()).filter(|labels| !labels.is_empty()),
            affinity: spec.affinity.clone(),
            tolerations: given(&spec.tolerations),
            topology_spread_constraints: given(&spec.topology_spread_constraints),
            volumes: given(&spec.volumes),
            containers: vec![container(app)],
            ..PodSpec::default()
        }),
    }
}

fn container(app: &WebApp) -> Container {
    let spec = &app.spec;
    let probes = spec.probes.clone().unwrap_or_default();
    // An open port, rather than a page: which paths answer is the application's affair.
    let open = || Probe {
        tcp_socket: Some(TCPSocketAction { port: IntOrString::String(PORT.into()), host: None }),
        period_seconds: Some(5),
        ..Probe::default()
    };
    // What the image needs is unknown: this is as far as a default can go.
    let confined =
        || SecurityContext { allow_privilege_escalation: Some(false), ..SecurityContext::default() };
    Container {
        name: "webapp".into(),
        image: Some(spec.image.clone()),
        image_pull_policy: spec.image_pull_policy.map(ImagePullPolicy::as_str).map(Into::into),
        command: given(&spec.command),
        args: given(&spec.args),
        env: given(&spec.env),
        env_from: given(&spec.env_from),
        resources: spec.resources.clone(),
        volume_mounts: given(&spec.volume_mounts),
        ports: Some(container_ports(app)),
        readiness_probe: Some(probes.readiness.unwrap_or_else(open)),
        liveness_probe: probes.liveness,
        startup_probe: probes.startup,
        security_context: Some(spec.security_context.clone().unwrap_or_else(confined)),
        ..Container::default()
    }
}

fn container_ports(app: &WebApp) -> Vec<ContainerPort> {
    let port = |name: &str, number: i32, protocol: Protocol| ContainerPort {
        name: Some(name.into()),
        container_port: number,
        protocol: Some(protocol.as_str().into()),
        ..ContainerPort::default()
    };
    let extra = app.spec.ports.iter();
    let extra = extra.map(|it| port(&it.name, it.target_port.unwrap_or(it.port), it.protocol));
    std::iter::once(port(PORT, app.spec.port, Protocol::Tcp)).chain(extra).collect()
}

fn service_ports(app: &WebApp) -> Vec<ServicePort> {
    let port = |name: &str, number: i32, protocol: Protocol| ServicePort {
        name: Some(name.into()),
        port: number,
        protocol: Some(protocol.as_str().into()),
        // By name: while a change of the port rolls out, each Pod is reached on its own.
        target_port: Some(IntOrString::String(name.into())),
        ..ServicePort::default()
    };
    let extra = app.spec.ports.iter().map(|it| port(&it.name, it.port, it.protocol));
    std::iter::once(port(PORT, app.spec.port, Protocol::Tcp)).chain(extra).collect()
}

fn service(app: &WebApp) -> Service {
    let options = app.spec.service.clone().unwrap_or_default();
    let type_ = match options.type_ {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    };
    Service {
        metadata: ObjectMeta {
            annotations: Some(options.annotations).filter(|annotations| !annotations.is_empty()),
            ..metadata(app)
        },
        spec: Some(ServiceSpec {
            type_: Some(type_.into()),
            selector: Some(selector_labels(app)),
            ports: Some(service_ports(app)),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn autoscaler(app: &WebApp, autoscaling: &Autoscaling) -> HorizontalPodAutoscaler {
    let cpu = autoscaling.cpu.or_else(|| autoscaling.memory.is_none().then_some(80));
    let aims = [("cpu", cpu), ("memory", autoscaling.memory)];
    let metrics = aims.into_iter().filter_map(|(name, percent)| percent.map(|percent| metric(name, percent)));
    HorizontalPodAutoscaler {
        metadata: metadata(app),
        spec: HorizontalPodAutoscalerSpec {
            scale_target_ref: CrossVersionObjectReference {
                api_version: Some("apps/v1".into()),
                kind: "Deployment".into(),
                name: app.name_any(),
            },
            min_replicas: Some(autoscaling.min),
            max_replicas: autoscaling.max,
            metrics: Some(metrics.collect()),
            behavior: autoscaling.behavior.clone(),
        },
        status: None,
    }
}

fn metric(name: &str, percent: i32) -> MetricSpec {
    MetricSpec {
        type_: "Resource".into(),
        resource: Some(ResourceMetricSource {
            name: name.into(),
            target: MetricTarget {
                type_: "Utilization".into(),
                average_utilization: Some(percent),
                ..MetricTarget::default()
            },
        }),
        ..MetricSpec::default()
    }
}

/// A single replica gets no budget: it could never be drained at all.
fn budget(app: &WebApp) -> Option<PodDisruptionBudget> {
    let least = app.spec.autoscaling.as_ref().map_or(app.spec.replicas, |autoscaling| autoscaling.min);
    let options = app.spec.disruption.clone().unwrap_or_default();
    let one = options.min_available.is_none().then_some(IntOrString::Int(1));
    (least > 1).then(|| PodDisruptionBudget {
        metadata: metadata(app),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: options.max_unavailable.or(one),
            min_available: options.min_available,
            selector: Some(LabelSelector {
                match_labels: Some(selector_labels(app)),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
