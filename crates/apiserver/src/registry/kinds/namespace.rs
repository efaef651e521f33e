//! Namespaces: who may decide that one is empty.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Strategy, cells, copy_top, text};
use crate::{
    error::Cause,
    registry::{
        metadata::{self, NameRule},
        strategy::{Part, Selectable},
    },
};

/// Namespace.
pub(super) static NAMESPACE: Strategy = Strategy {
    name_rule: NameRule::Label,
    selectable: &[Selectable::new("status.phase", "/status/phase")],
    defaults,
    prepare_create: |namespace, _| prepare_create(namespace),
    // An ordinary write cannot say that a namespace is empty: what is in it would be left behind.
    prepare_update: |new, old| copy_top(old, new, "spec"),
    parts: &[Part {
        name: "finalize",
        prepare: Some(|new, old, _| keep_all_but_finalizers(new, old)),
        validate: None,
        raises_generation: true,
    }],
    validate_status,
    undeletable: |name| NEEDED.contains(&name).then_some("this namespace may not be deleted"),
    // It takes what it takes to empty one.
    has_grace_period: false,
    terminating: |namespace| namespace["status"] = json!({"phase": "Terminating"}),
    may_vanish: |namespace| {
        namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
    },
    row: Some(row),
    ..Strategy::PLAIN
};

/// Who empties a namespace before it goes.
const FINALIZER: &str = "kubernetes";

/// Those that a cluster cannot do without.
const NEEDED: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Every namespace has its own name for a label, by which selectors find it.
fn defaults(object: &mut Value) {
    let name = text(object, "/metadata/name").to_owned();
    metadata::metadata(object)
        .entry("labels")
        .or_insert_with(|| json!({}))
        .as_object_mut()
        .map(|labels| labels.insert("kubernetes.io/metadata.name".into(), json!(name)));
    if text(object, "/status/phase").is_empty() {
        object["status"]["phase"] = json!("Active");
    }
}

/// What is wrong with the status of a namespace: it is going, or it is not.
fn validate_status(new: &Value) -> Vec<Cause> {
    let (phase, why) = if metadata::is_deleting(new) {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let found = text(new, "/status/phase");
    if found == phase { Vec::new() } else { vec![Cause::invalid("status.Phase", &json!(found), why)] }
}

/// A new one is active, and is emptied by the cluster, whoever else its author wants to be asked.
fn prepare_create(object: &mut Value) {
    let mut finalizers =
        object.pointer("/spec/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(json!(FINALIZER));
    }
    object["spec"] = json!({ "finalizers": finalizers });
    object["status"] = json!({"phase": "Active"});
}

/// `namespaces/finalize` changes `spec.finalizers` and nothing else.
fn keep_all_but_finalizers(new: &mut Value, old: &Value) {
    let finalizers = new.pointer("/spec/finalizers").cloned();
    let mut kept = old.clone();
    for field in ["labels", "annotations"] {
        metadata::copy_meta(new, &mut kept, field);
    }
    let name = text(old, "/metadata/name").to_owned();
    let labels = metadata::metadata(&mut kept).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = json!(name);
    match finalizers.filter(|finalizers| *finalizers != json!([])) {
        Some(finalizers) => kept["spec"]["finalizers"] = finalizers,
        None => drop(kept["spec"].as_object_mut().map(|spec| spec.remove("finalizers"))),
    }
    *new = kept;
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![cells::name(object), json!(text(object, "/status/phase")), cells::age(object, now)]
}
