//! Namespaces: who may decide that one is empty.

use serde_json::{Value, json};

use super::text;
use crate::{error::Cause, registry::metadata};

/// Who empties a namespace before it goes.
const FINALIZER: &str = "kubernetes";

/// Every namespace has its own name for a label, by which selectors find it.
pub(super) fn defaults(object: &mut Value) {
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
pub(super) fn validate_status(new: &Value) -> Vec<Cause> {
    let (phase, why) = if metadata::is_deleting(new) {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let found = text(new, "/status/phase");
    if found == phase { Vec::new() } else { vec![Cause::invalid("status.Phase", &json!(found), why)] }
}

/// A new one is active, and is emptied by the cluster, whoever else its author wants to be asked.
pub(super) fn prepare_create(object: &mut Value) {
    let mut finalizers =
        object.pointer("/spec/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(json!(FINALIZER));
    }
    object["spec"] = json!({ "finalizers": finalizers });
    object["status"] = json!({"phase": "Active"});
}

/// An ordinary write cannot say that a namespace is empty: what is in it would be left behind.
pub(super) fn keep_finalizers(new: &mut Value, old: &Value) {
    super::copy_top(old, new, "spec");
}

/// `namespaces/finalize` changes `spec.finalizers` and nothing else.
pub(super) fn keep_all_but_finalizers(new: &mut Value, old: &Value) {
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
