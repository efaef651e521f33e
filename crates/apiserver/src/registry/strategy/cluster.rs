//! Nodes, leases, events, endpoints, quotas, limits and priorities.

use serde_json::{Map, Value, json};

use super::{
    Resource,
    check::{self, Causes, at, entries, list},
    default, text,
};
use crate::{error::Cause, registry::metadata::qualified_name_error, schema::quantity};

/// Resources that a quota can bound without a prefix.
const QUOTA: [&str; 14] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "requests.cpu",
    "limits.cpu",
];

/// The priority classes that every cluster has.
pub(super) const SYSTEM_CLASSES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// Defaults of an object of this room.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    match &*resource.plural {
        "nodes" => {
            if let Some(status) = object.get_mut("status")
                && let Some(capacity) = status.get("capacity").cloned()
            {
                default(status, "allocatable", || capacity);
            }
        }
        "priorityclasses" => default(object, "preemptionPolicy", || json!("PreemptLowerPriority")),
        "limitranges" => {
            let limits = object.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
            limits.into_iter().flatten().for_each(default_limit);
        }
        "endpoints" => {
            for subset in object.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
                for port in subset.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                    default(port, "protocol", || json!("TCP"));
                }
            }
        }
        _ => {}
    }
}

/// What a container may have at most it gets, and what it gets it asks for.
fn default_limit(limit: &mut Value) {
    if text(limit, "/type") != "Container" {
        return;
    }
    for (from, into) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(amounts) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
        let target = limit
            .as_object_mut()
            .expect("a limit that has a type must be an object")
            .entry(into)
            .or_insert_with(|| Value::Object(Map::new()));
        for (name, amount) in amounts {
            default(target, &name, || amount);
        }
    }
}

/// What is wrong with an object of this room.
pub(super) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    match &*resource.plural {
        "nodes" => taints(&mut causes, &new["spec"]),
        "leases" => lease(&mut causes, &new["spec"]),
        "events" => event(&mut causes, resource, new, old),
        "endpoints" => endpoints(&mut causes, new),
        "resourcequotas" => quota(&mut causes, &new["spec"]),
        "limitranges" => limits(&mut causes, &new["spec"]),
        "priorityclasses" => priority(&mut causes, new, old),
        _ => {}
    }
    causes
}

fn taints(causes: &mut Causes, spec: &Value) {
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        let place = format!("metadata.taints[{index}]");
        if let Some(why) = qualified_name_error(text(taint, "/key")) {
            causes.push(Cause::invalid(at(&place, "key"), &taint["key"], why));
        }
        check::required_one_of(
            causes,
            taint,
            &place,
            "effect",
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
        );
    }
}

fn lease(causes: &mut Causes, spec: &Value) {
    if let Some(seconds) = spec.get("leaseDurationSeconds").and_then(Value::as_i64).filter(|one| *one <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), "must be greater than 0"));
    }
    check::non_negative(causes, spec, "spec", &["leaseTransitions"]);
}

fn event(causes: &mut Causes, resource: &Resource, new: &Value, old: Option<&Value>) {
    let namespace = text(new, "/metadata/namespace");
    if &*resource.group == "events.k8s.io" {
        if old.is_none() {
            modern_event(causes, new);
        }
        return;
    }
    let about = text(new, "/involvedObject/namespace");
    let wrong = if about.is_empty() { namespace != "default" } else { about != namespace };
    if wrong {
        let why = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &json!(about), why));
    }
}

fn modern_event(causes: &mut Causes, event: &Value) {
    if text(event, "/eventTime").is_empty() {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = text(event, "/type");
    if !matches!(kind, "Normal" | "Warning") {
        causes.push(Cause::invalid("type", &json!(""), format!("has invalid value: {kind}")));
    }
}

fn endpoints(causes: &mut Causes, new: &Value) {
    for (index, subset) in list(new, "subsets").iter().enumerate() {
        let place = format!("subsets[{index}]");
        let ports = list(subset, "ports");
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            let why = "must specify `addresses` or `notReadyAddresses`";
            causes.push(Cause::required(&*place, why));
        }
        for (index, port) in ports.iter().enumerate() {
            if ports.len() > 1 && text(port, "/name").is_empty() {
                causes.push(Cause::required(format!("{place}.ports[{index}].name"), ""));
            }
        }
    }
}

fn plain(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}

fn quota(causes: &mut Causes, spec: &Value) {
    for (name, amount) in entries(spec, "hard") {
        let field = format!("spec.hard[{name}]");
        let known = QUOTA.contains(&name.as_str())
            || ["requests.", "limits.", "count/"].iter().any(|prefix| name.starts_with(prefix));
        if !known && !name.contains('/') {
            let why = "must be a standard resource type or fully qualified";
            causes.push(Cause::invalid(&*field, &json!(name), why));
            causes.push(Cause::invalid(&*field, &json!(name), "must be a standard resource for quota"));
        }
        let amount = plain(amount);
        if amount.starts_with('-') {
            causes.push(Cause::invalid(field, &json!(amount), "must be greater than or equal to 0"));
        }
    }
    let scopes = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    ];
    if list(spec, "scopes").iter().any(|scope| !scopes.contains(&scope.as_str().unwrap_or_default())) {
        causes.push(Cause::invalid("spec.scopes", &spec["scopes"], "unsupported scope"));
    }
}

fn limits(causes: &mut Causes, spec: &Value) {
    for (index, limit) in list(spec, "limits").iter().enumerate() {
        for (name, least) in entries(limit, "min") {
            let (shown, least) = (plain(least), quantity::parse(&plain(least)));
            for (kind, words, value_of_min) in [
                ("max", "max value", true),
                ("defaultRequest", "default request value", false),
                ("default", "default value", true),
            ] {
                let Some(other) = limit.get(kind).and_then(|all| all.get(name)).map(plain) else { continue };
                if least > quantity::parse(&other) {
                    let field = if kind == "max" { "min" } else { kind };
                    let value = if value_of_min { &shown } else { &other };
                    causes.push(Cause::invalid(
                        format!("spec.limits[{index}].{field}[{name}]"),
                        &json!(value),
                        format!("min value {shown} is greater than {words} {other}"),
                    ));
                }
            }
        }
    }
}

fn priority(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let value = new["value"].as_i64().unwrap_or(0);
    let name = text(new, "/metadata/name");
    let system = SYSTEM_CLASSES.contains(&name);
    if let Some(old) = old {
        if new["value"] != old["value"] {
            causes.push(Cause::forbidden("value", "may not be changed in an update."));
        }
        check::immutable(causes, new, old, "", "preemptionPolicy");
        return;
    }
    if name.starts_with("system-") && !system {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
             known system priority class"
        );
        causes.push(Cause::forbidden("metadata.name", &why));
    }
    if value > 1_000_000_000 && !system {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        causes.push(Cause::forbidden("value", why));
    }
    check::one_of(causes, new, "", "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
}
