//! What is wrong with the containers of a Pod.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{amounts, handlers, security};
use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at, list},
        metadata::NameRule,
        resource::text,
    },
};

/// Checks containers and init containers.
pub(super) fn containers(causes: &mut Causes, spec: &Value, path: &str) {
    let volumes: BTreeSet<&str> = list(spec, "volumes").iter().map(|volume| text(volume, "/name")).collect();
    let containers = list(spec, "containers");
    let place = at(path, "containers");
    if containers.is_empty() {
        causes.push(Cause::required(&*place, ""));
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let place = format!("{place}[{index}]");
        common(causes, container, &volumes, spec["hostUsers"] != false, &place);
        unique(causes, &mut names, text(container, "/name"), &place);
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if let Some(probe_spec) = container.get(probe) {
                handlers::probe(causes, probe_spec, &at(&place, probe), probe);
            }
        }
        if let Some(hooks) = container.get("lifecycle") {
            let grace = spec["terminationGracePeriodSeconds"].as_i64();
            handlers::lifecycle(causes, hooks, grace, &at(&place, "lifecycle"));
        }
    }
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let place = format!("{path}.initContainers[{index}]");
        common(causes, container, &volumes, spec["hostUsers"] != false, &place);
        unique(causes, &mut names, text(container, "/name"), &place);
        if text(container, "/restartPolicy") != "Always" {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.get(field).is_some() {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    causes.push(Cause::forbidden(at(&place, field), why));
                }
            }
        }
    }
}

fn unique<'a>(causes: &mut Causes, names: &mut BTreeSet<&'a str>, name: &'a str, place: &str) {
    if !names.insert(name) && !name.is_empty() {
        causes.push(check::duplicate(at(place, "name"), name));
    }
}

fn common(causes: &mut Causes, container: &Value, volumes: &BTreeSet<&str>, host_users: bool, place: &str) {
    let name = text(container, "/name");
    if name.is_empty() {
        causes.push(Cause::required(at(place, "name"), ""));
    } else {
        check::name(causes, name, at(place, "name"), NameRule::Label);
    }
    check::required(causes, container, place, "image");
    let policies = ["File", "FallbackToLogsOnError"];
    check::required_one_of(causes, container, place, "terminationMessagePolicy", &policies);
    ports(causes, container, place);
    variables(causes, container, place);
    handlers::env_from(causes, container, place);
    mounts(causes, container, volumes, place);
    check::required_one_of(causes, container, place, "imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    amounts::resources(causes, &container["resources"], &at(place, "resources"));
    if let Some(context) = container.get("securityContext") {
        security::container(causes, context, &at(place, "securityContext"), host_users);
    }
}

fn port_number(causes: &mut Causes, port: i64, field: String) {
    if !(1..=65_535).contains(&port) {
        causes.push(Cause::invalid(field, &json!(port), "must be between 1 and 65535, inclusive"));
    }
}

fn ports(causes: &mut Causes, container: &Value, place: &str) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let place = format!("{place}.ports[{index}]");
        let name = text(port, "/name");
        if !name.is_empty() {
            let wrong = port_name_errors(name);
            if wrong.is_empty() {
                unique(causes, &mut names, name, &place);
            }
            causes.extend(wrong.iter().map(|why| Cause::invalid(at(&place, "name"), &json!(name), why)));
        }
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => causes.push(Cause::required(at(&place, "containerPort"), "")),
            number => port_number(causes, number, at(&place, "containerPort")),
        }
        if let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) {
            port_number(causes, number, at(&place, "hostPort"));
        }
        check::required_one_of(causes, port, &place, "protocol", &["SCTP", "TCP", "UDP"]);
    }
}

/// What is wrong with the name of a port.
pub(in crate::registry::kinds) fn port_name_errors(name: &str) -> Vec<&'static str> {
    let bytes = name.as_bytes();
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    if !bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !bytes.iter().any(u8::is_ascii_lowercase) {
        wrong.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    wrong
}

fn variables(causes: &mut Causes, container: &Value, place: &str) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let place = format!("{place}.env[{index}]");
        let name = text(variable, "/name");
        if name.is_empty() {
            causes.push(Cause::required(at(&place, "name"), ""));
        } else if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let why = "a valid environment variable name must consist only of printable ASCII characters other than \
                       '='";
            causes.push(Cause::invalid(at(&place, "name"), &json!(name), why));
        }
        if let Some(from) = variable.get("valueFrom") {
            value_from(causes, from, text(variable, "/value"), &at(&place, "valueFrom"));
        }
    }
}

fn value_from(causes: &mut Causes, from: &Value, value: &str, place: &str) {
    for (source, field) in [("configMapKeyRef", "key"), ("secretKeyRef", "key"), ("fieldRef", "fieldPath")] {
        if let Some(reference) = from.get(source) {
            if source == "fieldRef" {
                check::required(causes, reference, &at(place, source), field);
            } else {
                let (name, place) = (text(reference, "/name"), at(place, source));
                check::name(causes, name, at(&place, "name"), NameRule::Subdomain);
                handlers::key(causes, text(reference, "/key"), at(&place, "key"));
            }
        }
    }
    let path = text(from, "/fieldRef/fieldPath");
    if !path.is_empty() && !is_field(path) {
        let why = format!("error converting fieldPath: field label not supported: {path}");
        causes.push(Cause::invalid(format!("{place}.fieldRef.fieldPath"), &json!(path), why));
    }
    let sources = from.as_object().map_or(0, serde_json::Map::len);
    let why = match (sources, value.is_empty()) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        (_, false) => "may not be specified when `value` is not empty",
        (1, true) => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.push(Cause::invalid(place, &json!(""), why));
}

/// The fields of a Pod that a container may learn.
fn is_field(path: &str) -> bool {
    let plain = path.split_once('[').map_or(path, |(field, _)| field);
    [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ]
    .contains(&plain)
}

fn mounts(causes: &mut Causes, container: &Value, volumes: &BTreeSet<&str>, place: &str) {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let place = format!("{place}.volumeMounts[{index}]");
        let (name, path) = (text(mount, "/name"), text(mount, "/mountPath"));
        if name.is_empty() {
            causes.push(Cause::required(at(&place, "name"), ""));
        }
        if !volumes.contains(name) {
            causes.push(Cause {
                reason: "FieldValueNotFound".into(),
                message: format!("Not found: {}", json!(name)),
                field: at(&place, "name"),
            });
        }
        if path.is_empty() {
            causes.push(Cause::required(at(&place, "mountPath"), ""));
        }
        if !paths.insert(path) {
            causes.push(Cause::invalid(at(&place, "mountPath"), &json!(path), "must be unique"));
        }
        let all = place.rsplit_once('[').map_or(place.as_str(), |(list, _)| list).to_owned();
        for field in ["subPath", "subPathExpr"] {
            let inner = text(mount, &format!("/{field}"));
            if field == "subPathExpr" && !inner.is_empty() && !text(mount, "/subPath").is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                causes.push(Cause::invalid(at(&place, field), &json!(inner), why));
            }
            security::descending(causes, inner, &at(&all, field));
        }
    }
}
