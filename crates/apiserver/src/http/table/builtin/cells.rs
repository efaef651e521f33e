//! The cells of each built-in kind.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{super::format, age};

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

fn joined(values: impl Iterator<Item = String>) -> Value {
    json!(values.collect::<Vec<_>>().join(","))
}

fn labels(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(",")
}

/// Containers, images and selector of a kind with a Pod template.
fn template(object: &Value) -> [Value; 3] {
    let containers = list(object, "/spec/template/spec/containers");
    let names = joined(containers.iter().map(|container| text(container, "/name").to_owned()));
    let images = joined(containers.iter().map(|container| text(container, "/image").to_owned()));
    [names, images, json!(labels(object.pointer("/spec/selector/matchLabels")))]
}

pub(super) fn plain(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![age(object, now)]
}

pub(super) fn dated(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![json!(text(object, "/metadata/creationTimestamp"))]
}

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    let mut cells = vec![
        json!(ready),
        json!(number(object, "/status/updatedReplicas")),
        json!(number(object, "/status/availableReplicas")),
        age(object, now),
    ];
    cells.extend(template(object));
    cells
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        json!(number(object, "/spec/replicas")),
        json!(number(object, "/status/replicas")),
        json!(number(object, "/status/readyReplicas")),
        age(object, now),
    ];
    cells.extend(template(object));
    cells
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    let [names, images, _] = template(object);
    vec![json!(ready), age(object, now), names, images]
}

pub(super) fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let statuses = list(object, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status["ready"] == json!(true)).count();
    let total = list(object, "/spec/containers").len();
    let restarts: i64 = statuses.iter().map(|status| number(status, "/restartCount")).sum();
    let last = statuses
        .iter()
        .map(|status| text(status, "/lastState/terminated/finishedAt"))
        .filter(|finished| !finished.is_empty())
        .max();
    let restarts = match last {
        Some(last) if restarts > 0 => format!("{restarts} ({} ago)", format::age(last, now)),
        _ => restarts.to_string(),
    };
    vec![
        json!(format!("{ready}/{total}")),
        json!(pod_status(object)),
        json!(restarts),
        age(object, now),
        or_none(text(object, "/status/podIP")),
        or_none(text(object, "/spec/nodeName")),
        or_none(text(object, "/status/nominatedNodeName")),
        json!("<none>"),
    ]
}

/// The one word that says how a Pod is doing: the most telling reason there is.
fn pod_status(pod: &Value) -> String {
    let phase = text(pod, "/status/phase");
    let mut reason = match text(pod, "/status/reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let scheduled = list(pod, "/status/conditions").iter().find(|one| text(one, "/type") == "PodScheduled");
    if scheduled.is_some_and(|one| text(one, "/reason") == "SchedulingGated") {
        reason = "SchedulingGated".into();
    }
    let statuses = list(pod, "/status/containerStatuses");
    let mut running = false;
    for status in statuses.iter().rev() {
        let waiting = text(status, "/state/waiting/reason");
        let terminated = text(status, "/state/terminated/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if !terminated.is_empty() {
            terminated.clone_into(&mut reason);
        } else if status.pointer("/state/terminated").is_some() {
            reason = format!("ExitCode:{}", number(status, "/state/terminated/exitCode"));
        } else if status["ready"] == json!(true) && status.pointer("/state/running").is_some() {
            running = true;
        }
    }
    if reason == "Completed" && running {
        reason = "Running".into();
    }
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        reason =
            if text(pod, "/status/reason") == "NodeLost" { "Unknown".into() } else { "Terminating".into() };
    }
    reason
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = list(object, "/spec/ports").iter().map(|port| {
        let (number, node) = (number(port, "/port"), number(port, "/nodePort"));
        let protocol = text(port, "/protocol");
        if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
    });
    let kind = text(object, "/spec/type");
    let external = match kind {
        "LoadBalancer" => "<pending>",
        "ExternalName" => text(object, "/spec/externalName"),
        _ => "<none>",
    };
    let ports = match joined(ports) {
        Value::String(text) if text.is_empty() => json!("<none>"),
        ports => ports,
    };
    vec![
        json!(kind),
        or_none(text(object, "/spec/clusterIP")),
        json!(external),
        ports,
        age(object, now),
        or_none(&labels(object.pointer("/spec/selector"))),
    ]
}

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready");
    let mut status = match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let addresses = list(object, "/status/addresses");
        addresses
            .iter()
            .find(|one| text(one, "/type") == kind)
            .map_or("", |one| text(one, "/address"))
            .to_owned()
    };
    let roles = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let roles: Vec<&str> =
        roles.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    let info = |field: &str| text(object, &format!("/status/nodeInfo/{field}")).to_owned();
    let known = |text: String| json!(if text.is_empty() { "<unknown>".to_owned() } else { text });
    vec![
        json!(status),
        or_none(&roles.join(",")),
        age(object, now),
        json!(info("kubeletVersion")),
        or_none(&address("InternalIP")),
        or_none(&address("ExternalIP")),
        known(info("osImage")),
        known(info("kernelVersion")),
        known(info("containerRuntimeVersion")),
    ]
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(text(object, "/status/phase")), age(object, now)]
}

fn entries(object: &Value, fields: &[&str]) -> usize {
    fields.iter().filter_map(|field| object.get(field).and_then(Value::as_object)).map(|map| map.len()).sum()
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(entries(object, &["data", "binaryData"])), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(text(object, "/type")), json!(entries(object, &["data"])), age(object, now)]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(text(object, "/spec/holderIdentity")), age(object, now)]
}

pub(super) fn definition(object: &Value, _: Timestamp) -> Vec<Value> {
    let versions = list(object, "/spec/versions").iter().map(|version| {
        let mark = if version["storage"] == json!(true) { "(storage)" } else { "" };
        format!("{}{mark}", text(version, "/name"))
    });
    let short = list(object, "/spec/names/shortNames").iter().filter_map(Value::as_str).map(str::to_owned);
    let established = list(object, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "Established" && text(one, "/status") == "True");
    vec![
        json!(text(object, "/spec/scope")),
        joined(versions),
        json!(text(object, "/metadata/creationTimestamp")),
        json!(text(object, "/spec/group")),
        json!(text(object, "/spec/names/kind")),
        joined(short),
        json!(established),
    ]
}

pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, modern: &str| {
        let value = text(object, core);
        if value.is_empty() { text(object, modern).to_owned() } else { value.to_owned() }
    };
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp") {
        empty if empty.is_empty() => text(object, "/eventTime").to_owned(),
        first => first,
    };
    let last = [
        text(object, "/series/lastObservedTime").to_owned(),
        either("/lastTimestamp", "/deprecatedLastTimestamp"),
        first.clone(),
    ];
    let last = last.into_iter().find(|one| !one.is_empty()).unwrap_or_default();
    let count =
        [number(object, "/series/count"), number(object, "/count"), number(object, "/deprecatedCount"), 1];
    let count = count.into_iter().find(|count| *count > 0).unwrap_or(1);
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let name = either("/involvedObject/name", "/regarding/name");
    let source = match text(object, "/source/component") {
        "" => either("/reportingComponent", "/reportingController"),
        source => source.to_owned(),
    };
    vec![
        json!(format::age(&last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(if kind.is_empty() { name.clone() } else { format!("{kind}/{name}") }),
        json!(either("/involvedObject/fieldPath", "/regarding/fieldPath")),
        json!(source),
        json!(either("/message", "/note").trim()),
        json!(format::age(&first, now)),
        json!(count),
        json!(text(object, "/metadata/name")),
    ]
}
