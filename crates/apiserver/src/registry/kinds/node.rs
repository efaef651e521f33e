//! Nodes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    error::Cause,
    registry::{metadata::qualified_name_error, strategy::Selectable},
};

/// Node.
pub(super) static NODE: Strategy = Strategy {
    selectable: &[Selectable::with_default("spec.unschedulable", "/spec/unschedulable", "false")],
    defaults,
    // Kubelets label the nodes that they report on.
    status_metadata: &["annotations", "finalizers", "labels"],
    validate: |new, _| taints(&new["spec"]),
    row: Some(row),
    ..Strategy::PLAIN
};

/// What a node has can be given away, unless it says otherwise.
fn defaults(node: &mut Value) {
    if let Some(status) = node.get_mut("status")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        default(status, "allocatable", || capacity);
    }
}

fn taints(spec: &Value) -> Causes {
    let mut causes = Vec::new();
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        let place = format!("metadata.taints[{index}]");
        if let Some(why) = qualified_name_error(text(taint, "/key")) {
            causes.push(Cause::invalid(at(&place, "key"), &taint["key"], why));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        check::required_one_of(&mut causes, taint, &place, "effect", &effects);
    }
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = cells::list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready");
    let mut status = match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if cells::flag(object, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = cells::list(object, "/status/addresses").iter().find(|one| text(one, "/type") == kind);
        cells::or_none(found.map_or("", |one| text(one, "/address")))
    };
    let info = |field: &str| text(object, &format!("/status/nodeInfo/{field}")).to_owned();
    let kernel = match (info("kernelVersion"), info("architecture")) {
        (kernel, machine) if machine.is_empty() => kernel,
        (kernel, machine) if kernel.is_empty() => format!("<unknown> ({machine})"),
        (kernel, machine) => format!("{kernel} ({machine})"),
    };
    vec![
        cells::name(object),
        json!(status),
        cells::or_none(&roles(object)),
        cells::age(object, now),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        cells::or(&info("osImage"), "<unknown>"),
        cells::or(&kernel, "<unknown>"),
        cells::or(&info("containerRuntimeVersion"), "<unknown>"),
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
