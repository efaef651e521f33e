//! PersistentVolumeClaims, also those inside of StatefulSets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default,
    pod::warnings::fractional,
    storage::{access_modes, class_name, class_of, modes, phase, positive},
    text,
};
use crate::{
    error::Cause,
    registry::metadata::{self, NameRule},
    schema::quantity,
};

/// PersistentVolumeClaim.
pub(super) static CLAIM: Strategy = Strategy {
    defaults,
    prepare_create: |claim, _| data_sources(claim),
    // What is in use is not taken away: the finalizer that protects it is there from the start.
    complete_create: |claim, _| metadata::add_finalizer(claim, "kubernetes.io/pvc-protection"),
    validate,
    warnings: |claim, _| warnings(claim),
    returns_deleted: true,
    row: Some(row),
    ..Strategy::PLAIN
};

/// Defaults of a claim, also of one inside a StatefulSet.
pub(super) fn defaults(claim: &mut Value) {
    default(claim, "spec", || json!({}));
    default(&mut claim["spec"], "volumeMode", || json!("Filesystem"));
    default(claim, "status", || json!({}));
    default(&mut claim["status"], "phase", || json!("Pending"));
}

fn validate(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    validate_spec(&mut causes, &new["spec"], "spec");
    if let Some(old) = old {
        claim_update(&mut causes, new, old);
    }
    causes
}

/// What is wrong with the spec of a claim, also of one inside a StatefulSet.
pub(super) fn validate_spec(causes: &mut Causes, spec: &Value, path: &str) {
    if list(spec, "accessModes").is_empty() {
        causes.push(Cause::required(at(path, "accessModes"), "at least 1 access mode is required"));
    }
    if let Some(selector) = spec.get("selector") {
        check::selector(causes, selector, &at(path, "selector"));
    }
    access_modes(causes, spec, path);
    let field = format!("{path}.resources[storage]");
    match spec.pointer("/resources/requests/storage") {
        None => causes.push(Cause::required(field, "")),
        Some(storage) => positive(causes, storage, field),
    }
    class_name(causes, spec, path);
    check::one_of(causes, spec, path, "volumeMode", &["Block", "Filesystem"]);
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get(field) {
            data_source(causes, source, &at(path, field));
        }
    }
}

/// Where the first content of a volume comes from.
fn data_source(causes: &mut Causes, source: &Value, path: &str) {
    check::required(causes, source, path, "name");
    check::required(causes, source, path, "kind");
    let (kind, group) = (text(source, "/kind"), text(source, "/apiGroup"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        causes.push(Cause::invalid(path, &json!(kind), why));
    }
    if !group.is_empty() {
        check::name(causes, group, at(path, "apiGroup"), NameRule::Subdomain);
    }
}

/// One source is said in two fields, of which the older takes claims and snapshots only.
fn data_sources(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("dataSourceRef").is_some_and(|source| !text(source, "/namespace").is_empty()) {
        // Of a feature that is off.
        spec.remove("dataSourceRef");
    }
    if spec.contains_key("dataSourceRef") {
        return spec_copy(spec, "dataSourceRef", "dataSource");
    }
    let known = spec.get("dataSource").is_some_and(|source| {
        let (kind, group) = (text(source, "/kind"), text(source, "/apiGroup"));
        matches!((kind, group), ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io"))
    });
    if known {
        spec_copy(spec, "dataSource", "dataSourceRef");
    } else {
        spec.remove("dataSource");
    }
}

fn spec_copy(spec: &mut serde_json::Map<String, Value>, from: &str, to: &str) {
    if let Some(source) = spec.get(from).cloned() {
        spec.entry(to).or_insert(source);
    }
}

/// A claim stays as it is, except that a bound one may grow.
fn claim_update(causes: &mut Causes, new: &Value, old: &Value) {
    let bound = text(old, "/status/phase") == "Bound" || !text(old, "/spec/volumeName").is_empty();
    let fixed = |claim: &Value, other: &Value| {
        let mut spec = claim["spec"].clone();
        let Some(map) = spec.as_object_mut() else { return spec };
        map.remove("volumeAttributesClassName");
        if old["spec"].get("storageClassName").is_none() {
            // A claim that names no class gets the default one later, if there was none at first.
            map.remove("storageClassName");
        }
        if text(other, "/spec/volumeName").is_empty() || text(claim, "/spec/volumeName").is_empty() {
            // Whoever binds a claim may name its volume, once.
            map.remove("volumeName");
        }
        if text(old, "/status/phase") == "Bound"
            && let Some(requests) = spec.pointer_mut("/resources/requests").and_then(Value::as_object_mut)
        {
            requests.remove("storage");
        }
        spec
    };
    if fixed(new, old) != fixed(old, new) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                   claims";
        causes.push(Cause::forbidden("spec", why));
        return;
    }
    let amount = |claim: &Value| {
        quantity::parse(
            claim.pointer("/spec/resources/requests/storage").and_then(Value::as_str).unwrap_or("0"),
        )
    };
    if bound && amount(new) < amount(old) {
        let why = "field can not be less than previous value";
        causes.push(Cause::forbidden("spec.resources.requests.storage", why));
    }
}

fn warnings(claim: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations = &claim["metadata"]["annotations"];
    if annotations.get("volume.beta.kubernetes.io/storage-class").is_some() {
        let why = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("metadata.annotations[volume.beta.kubernetes.io/storage-class]: {why}"));
    }
    fractional(&mut warnings, &claim["spec"]["resources"], "spec.resources", &["storage"]);
    warnings
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let volume = text(object, "/spec/volumeName");
    let (capacity, shown) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity = cells::plain(object.pointer("/status/capacity/storage"));
        let capacity = if capacity.is_empty() { "0".to_owned() } else { capacity };
        (capacity, modes(cells::list(object, "/status/accessModes")))
    };
    vec![
        cells::name(object),
        phase(object),
        json!(volume),
        json!(capacity),
        json!(shown),
        class_of(object),
        cells::or(text(object, "/spec/volumeAttributesClassName"), "<unset>"),
        cells::age(object, now),
        cells::or(text(object, "/spec/volumeMode"), "<unset>"),
    ]
}
