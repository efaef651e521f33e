//! Nodes, namespaces, events and the kinds that configure the cluster.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::format,
    age,
    cells::{flag, joined, list, name, number, or, or_none, plain, text},
};

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready");
    let mut status = match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if flag(object, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = list(object, "/status/addresses").iter().find(|one| text(one, "/type") == kind);
        or_none(found.map_or("", |one| text(one, "/address")))
    };
    let info = |field: &str| text(object, &format!("/status/nodeInfo/{field}")).to_owned();
    let kernel = match (info("kernelVersion"), info("architecture")) {
        (kernel, machine) if machine.is_empty() => kernel,
        (kernel, machine) if kernel.is_empty() => format!("<unknown> ({machine})"),
        (kernel, machine) => format!("{kernel} ({machine})"),
    };
    vec![
        name(object),
        json!(status),
        or_none(&roles(object)),
        age(object, now),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        or(&info("osImage"), "<unknown>"),
        or(&kernel, "<unknown>"),
        or(&info("containerRuntimeVersion"), "<unknown>"),
    ]
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles.join(",")
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/status/phase")), age(object, now)]
}

fn entries(object: &Value, fields: &[&str]) -> usize {
    fields.iter().filter_map(|field| object.get(field).and_then(Value::as_object)).map(|map| map.len()).sum()
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(entries(object, &["data", "binaryData"])), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/type")), json!(entries(object, &["data"])), age(object, now)]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/spec/holderIdentity")), age(object, now)]
}

pub(super) fn definition(object: &Value, _: Timestamp) -> Vec<Value> {
    let versions = list(object, "/spec/versions").iter().map(|version| {
        let mark = if flag(version, "/storage") { "(storage)" } else { "" };
        format!("{}{mark}", text(version, "/name"))
    });
    let short = list(object, "/spec/names/shortNames").iter().map(|one| plain(Some(one)));
    let established = list(object, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "Established" && text(one, "/status") == "True");
    vec![
        name(object),
        json!(text(object, "/spec/scope")),
        json!(joined(versions)),
        json!(text(object, "/metadata/creationTimestamp")),
        json!(text(object, "/spec/group")),
        json!(text(object, "/spec/names/kind")),
        json!(joined(short)),
        json!(established),
    ]
}

pub(super) fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = object.pointer("/spec/service").map_or("Local".to_owned(), |service| {
        format!("{}/{}", text(service, "/namespace"), text(service, "/name"))
    });
    let available = list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Available");
    let shown = match available {
        Some(one) if text(one, "/status") == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", text(one, "/status"), text(one, "/reason")),
        None => "Unknown".to_owned(),
    };
    vec![name(object), json!(service), json!(shown), age(object, now)]
}

pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, modern: &str| match text(object, core) {
        "" => text(object, modern).to_owned(),
        value => value.to_owned(),
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
    let count = ["/series/count", "/count", "/deprecatedCount"].map(|pointer| number(object, pointer));
    let count = count.into_iter().find(|count| *count > 0).unwrap_or(1);
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let about = either("/involvedObject/name", "/regarding/name");
    let about = if about.is_empty() { kind } else { format!("{kind}/{about}") };
    vec![
        json!(format::age(&last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(about),
        json!(either("/involvedObject/fieldPath", "/regarding/fieldPath")),
        json!(source(object)),
        json!(either("/message", "/note").trim()),
        json!(format::age(&first, now)),
        json!(count),
        name(object),
    ]
}

/// Who reports, and from where.
fn source(event: &Value) -> String {
    let first = |pointers: &[&str]| {
        pointers
            .iter()
            .map(|pointer| text(event, pointer))
            .find(|one| !one.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let who = first(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first(&["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    if host.is_empty() { who } else { format!("{who}, {host}") }
}

pub(super) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
    let subjects = |kind: &str| {
        let found = list(object, "/subjects").iter().filter(|one| text(one, "/kind") == kind);
        let names: Vec<String> = found
            .map(|one| match (kind, text(one, "/namespace")) {
                ("ServiceAccount", namespace) => format!("{namespace}/{}", text(one, "/name")),
                _ => text(one, "/name").to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        name(object),
        json!(role),
        age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

pub(super) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(list(object, "/webhooks").len()), age(object, now)]
}

pub(super) fn admission_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let param = object.pointer("/spec/paramKind").map_or("<unset>".to_owned(), |param| {
        format!("{}/{}", text(param, "/apiVersion"), text(param, "/kind"))
    });
    let rules = list(object, "/spec/validations").len() + list(object, "/spec/mutations").len();
    vec![name(object), json!(rules), json!(param), age(object, now)]
}

pub(super) fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let reference = object.pointer("/spec/paramRef").map_or("<unset>".to_owned(), |param| {
        let any = |text: &str| if text.is_empty() { "*".to_owned() } else { text.to_owned() };
        format!("{}/{}", any(text(param, "/namespace")), any(text(param, "/name")))
    });
    vec![name(object), json!(text(object, "/spec/policyName")), json!(reference), age(object, now)]
}

pub(super) fn signing_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |kind: &str| list(object, "/status/conditions").iter().any(|one| text(one, "/type") == kind);
    let mut condition = match () {
        () if has("Denied") => "Denied".to_owned(),
        () if has("Approved") => "Approved".to_owned(),
        () => "Pending".to_owned(),
    };
    if has("Failed") {
        condition.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    let wanted = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        name(object),
        age(object, now),
        or_none(text(object, "/spec/signerName")),
        json!(text(object, "/spec/username")),
        json!(wanted.map_or("<none>".to_owned(), format::duration)),
        json!(condition),
    ]
}

pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "/handler")), age(object, now)]
}
