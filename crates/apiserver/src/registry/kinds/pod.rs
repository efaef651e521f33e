//! Pods and the Pod specs inside templates: what they start with, and how they end.

pub(super) mod amounts;
pub(super) mod container;
mod handlers;
pub(super) mod placement;
mod row;
mod security;
mod update;
pub(super) mod validate;
pub(super) mod warnings;

use serde_json::{Value, json};

use super::{Strategy, check::Causes, default, text};
use crate::registry::{
    metadata::meta,
    strategy::{Generation, Part, Selectable},
};

/// Pod.
pub(super) static POD: Strategy = Strategy {
    generation: Generation::SPEC,
    selectable: &[
        Selectable::new("spec.nodeName", "/spec/nodeName"),
        Selectable::new("spec.restartPolicy", "/spec/restartPolicy"),
        Selectable::new("spec.schedulerName", "/spec/schedulerName"),
        Selectable::new("spec.serviceAccountName", "/spec/serviceAccountName"),
        Selectable::with_default("spec.hostNetwork", "/spec/hostNetwork", "false"),
        Selectable::new("status.phase", "/status/phase"),
        Selectable::new("status.podIP", "/status/podIP"),
        Selectable::new("status.nominatedNodeName", "/status/nominatedNodeName"),
    ],
    defaults: default_pod,
    prepare_update: update::keep_priority,
    // Kubelets label the Pods that they report on.
    status_metadata: &["annotations", "finalizers", "labels"],
    parts: &[
        Part {
            name: "binding",
            // The scheduler's word changes nothing that the author of the Pod wrote.
            prepare: Some(|_, _, _| {}),
            validate: Some(|_, _| Vec::new()),
            raises_generation: false,
        },
        Part {
            name: "ephemeralcontainers",
            prepare: None,
            validate: Some(|new, old| changed_by(update::debug, new, old)),
            raises_generation: true,
        },
        Part {
            name: "resize",
            prepare: None,
            validate: Some(|new, old| changed_by(update::resize, new, old)),
            raises_generation: true,
        },
    ],
    validate: validate_pod,
    warnings: |pod, _| warnings::of_pod(pod, ""),
    grace_period,
    marked_first: true,
    may_vanish: |pod| meta(pod, "deletionGracePeriodSeconds").as_i64().unwrap_or(0) == 0,
    returns_deleted: true,
    row: Some(row::row),
    row_conditions: row::conditions,
    ..Strategy::PLAIN
};

/// What is wrong with a Pod.
fn validate_pod(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    validate::spec(&mut causes, &new["spec"], "spec");
    if let Some(old) = old {
        update::update(&mut causes, new, old);
    }
    causes
}

/// What is wrong with a change through a subresource.
fn changed_by(rules: fn(&mut Causes, &Value, &Value), new: &Value, old: Option<&Value>) -> Causes {
    let Some(old) = old else { return validate_pod(new, old) };
    let mut causes = Vec::new();
    rules(&mut causes, new, old);
    causes
}

/// Defaults of a Pod of its own: those of its spec, and what admission adds to every Pod.
fn default_pod(pod: &mut Value) {
    default(pod, "spec", || json!({}));
    let spec = &mut pod["spec"];
    default_spec(spec);
    for list in ["containers", "initContainers"] {
        each(spec, list).for_each(|container| default_requests(&mut container["resources"]));
    }
    default(spec, "enableServiceLinks", || json!(true));
    default(spec, "serviceAccountName", || json!("default"));
    let account = spec["serviceAccountName"].clone();
    default(spec, "serviceAccount", || account);
    tolerate_lost_nodes(spec);
    if text(pod, "/status/phase").is_empty() {
        let class = quality_of_service(&pod["spec"]);
        pod["status"] = json!({"phase": "Pending", "qosClass": class});
        if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
                "lastTransitionTime": null,
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
    }
}

/// A Pod stays for five minutes on a node that is not ready or cannot be reached.
fn tolerate_lost_nodes(spec: &mut Value) {
    default(spec, "tolerations", || json!([]));
    let Some(list) = spec["tolerations"].as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let known = |toleration: &Value| {
            (text(toleration, "/key") == key || text(toleration, "/key").is_empty())
                && matches!(text(toleration, "/effect"), "NoExecute" | "")
        };
        if !list.iter().any(known) {
            list.push(
                json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}),
            );
        }
    }
}

/// Defaults of a Pod spec, wherever it stands.
pub(super) fn default_spec(spec: &mut Value) {
    default(spec, "restartPolicy", || json!("Always"));
    default(spec, "terminationGracePeriodSeconds", || json!(30));
    default(spec, "dnsPolicy", || json!("ClusterFirst"));
    default(spec, "securityContext", || json!({}));
    default(spec, "schedulerName", || json!("default-scheduler"));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in each(spec, list) {
            default_container(container);
        }
    }
    if spec.get("hostNetwork") == Some(&json!(true)) {
        for list in ["containers", "initContainers"] {
            each(spec, list).for_each(share_ports);
        }
    }
    for volume in each(spec, "volumes") {
        default_volume(volume);
    }
}

fn each<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// On the node's own network a container's port is the node's.
fn share_ports(container: &mut Value) {
    for port in each(container, "ports") {
        let number = port["containerPort"].clone();
        default(port, "hostPort", || number);
    }
}

fn default_container(container: &mut Value) {
    let policy = pull_policy(text(container, "/image"));
    default(container, "imagePullPolicy", || json!(policy));
    default(container, "resources", || json!({}));
    default(container, "terminationMessagePath", || json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", || json!("File"));
    for port in each(container, "ports") {
        default(port, "protocol", || json!("TCP"));
    }
    for variable in each(container, "env") {
        if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
            default(reference, "apiVersion", || json!("v1"));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            default_probe(probe);
        }
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        if let Some(get) = container.pointer_mut(hook) {
            default_http_get(get);
        }
    }
}

/// An image without a tag, or with the tag `latest`, may have changed since it was last pulled.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// What is limited but not requested is requested as far as it is limited.
fn default_requests(resources: &mut Value) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    default(resources, "requests", || json!({}));
    for (name, amount) in limits {
        default(&mut resources["requests"], &name, || amount);
    }
}

fn default_probe(probe: &mut Value) {
    default(probe, "timeoutSeconds", || json!(1));
    default(probe, "periodSeconds", || json!(10));
    default(probe, "successThreshold", || json!(1));
    default(probe, "failureThreshold", || json!(3));
    if let Some(get) = probe.get_mut("httpGet") {
        default_http_get(get);
    }
    if let Some(call) = probe.get_mut("grpc") {
        default(call, "service", || json!(""));
    }
}

fn default_http_get(get: &mut Value) {
    default(get, "path", || json!("/"));
    default(get, "scheme", || json!("HTTP"));
}

fn default_volume(volume: &mut Value) {
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            default(source, "defaultMode", || json!(420));
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        default(path, "type", || json!(""));
    }
    if let Some(sources) = volume.pointer_mut("/projected/sources").and_then(Value::as_array_mut) {
        for token in sources.iter_mut().filter_map(|source| source.get_mut("serviceAccountToken")) {
            default(token, "expirationSeconds", || json!(3600));
        }
    }
    for items in ["/downwardAPI/items"] {
        for item in volume.pointer_mut(items).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(reference) = item.get_mut("fieldRef") {
                default(reference, "apiVersion", || json!("v1"));
            }
        }
    }
    let Some(map) = volume.as_object_mut() else { return };
    if map.len() == 1 && map.contains_key("name") {
        map.insert("emptyDir".into(), json!({}));
    }
}

/// How hard the node holds on to the Pod when memory runs short.
fn quality_of_service(spec: &Value) -> &'static str {
    let containers: Vec<&Value> =
        ["containers", "initContainers"].iter().filter_map(|list| spec[*list].as_array()).flatten().collect();
    let amount = |container: &Value, kind: &str, name: &str| -> Option<String> {
        container.pointer(&format!("/resources/{kind}/{name}")).map(ToString::to_string)
    };
    let says = |container: &&Value| {
        ["cpu", "memory"].iter().any(|name| {
            amount(container, "requests", name).is_some() || amount(container, "limits", name).is_some()
        })
    };
    let guaranteed = |container: &&Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            limit.is_some() && limit == amount(container, "requests", name)
        })
    };
    if !containers.iter().any(says) {
        "BestEffort"
    } else if containers.iter().all(guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// How long the Pod may take: as asked, else as its spec says; no time at all if nothing runs.
fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    let runs = !text(pod, "/spec/nodeName").is_empty()
        && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    match asked.unwrap_or(own) {
        _ if !runs => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}
