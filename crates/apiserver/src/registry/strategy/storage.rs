//! Volumes, claims and classes of storage.

use serde_json::{Value, json};

use super::{
    Resource,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    environment::Environment,
    error::Cause,
    registry::metadata::{self, NameRule},
    schema::quantity,
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// What a volume can be, in the order in which the real server looks.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Defaults of a claim, also of one inside a StatefulSet.
pub(super) fn default_claim(claim: &mut Value) {
    default(claim, "spec", || json!({}));
    default(&mut claim["spec"], "volumeMode", || json!("Filesystem"));
    default(claim, "status", || json!({}));
    default(&mut claim["status"], "phase", || json!("Pending"));
}

/// Defaults of a claim or a volume, and what the server adds to a new one.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    match &*resource.plural {
        "persistentvolumeclaims" => default_claim(object),
        "persistentvolumes" => {
            default(object, "spec", || json!({}));
            let spec = &mut object["spec"];
            default(spec, "persistentVolumeReclaimPolicy", || json!("Retain"));
            default(spec, "volumeMode", || json!("Filesystem"));
            if let Some(path) = spec.get_mut("hostPath") {
                default(path, "type", || json!(""));
            }
            default(object, "status", || json!({}));
            default(&mut object["status"], "phase", || json!("Pending"));
        }
        "storageclasses" => {
            default(object, "reclaimPolicy", || json!("Delete"));
            default(object, "volumeBindingMode", || json!("Immediate"));
        }
        _ => {}
    }
}

/// What is in use is not taken away: the finalizer that protects it is there from the start.
pub(super) fn complete_new(resource: &Resource, object: &mut Value, environment: &Environment) {
    let finalizer = match &*resource.plural {
        "persistentvolumeclaims" => "kubernetes.io/pvc-protection",
        "persistentvolumes" => {
            object["status"]["lastPhaseTransitionTime"] = json!(environment.now_text());
            "kubernetes.io/pv-protection"
        }
        _ => return,
    };
    let finalizers = metadata::metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|one| one == finalizer)
    {
        list.push(json!(finalizer));
    }
}

/// What is wrong with an object of this room.
pub(super) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    match &*resource.plural {
        "persistentvolumeclaims" => {
            validate_claim_spec(&mut causes, &new["spec"], "spec");
            if let Some(old) = old {
                claim_update(&mut causes, new, old);
            }
        }
        "persistentvolumes" => {
            volume(&mut causes, &new["spec"]);
            if let Some(old) = old {
                volume_update(&mut causes, &new["spec"], &old["spec"]);
            }
        }
        "storageclasses" => class(&mut causes, new, old),
        _ => {}
    }
    causes
}

fn access_modes(causes: &mut Causes, spec: &Value, path: &str) {
    let modes: Vec<&str> = list(spec, "accessModes").iter().filter_map(Value::as_str).collect();
    for mode in modes.iter().filter(|mode| !MODES.contains(mode)) {
        causes.push(Cause::not_supported(at(path, "accessModes"), mode, &MODES));
    }
    let alone = modes.contains(&"ReadWriteOncePod");
    if alone && modes.iter().any(|mode| *mode != "ReadWriteOncePod" && MODES.contains(mode)) {
        let why = "may not use ReadWriteOncePod with other access modes";
        causes.push(Cause::forbidden(at(path, "accessModes"), why));
    }
}

/// What is wrong with the spec of a claim, also of one inside a StatefulSet.
pub(super) fn validate_claim_spec(causes: &mut Causes, spec: &Value, path: &str) {
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
}

fn positive(causes: &mut Causes, amount: &Value, field: String) {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let zero = quantity::parse("0");
    if quantity::parse(&text) <= zero {
        causes.push(Cause::invalid(field, &json!(text), "must be greater than zero"));
    }
}

fn class_name(causes: &mut Causes, spec: &Value, path: &str) {
    let name = text(spec, "/storageClassName");
    if !name.is_empty() {
        check::name(causes, name, at(path, "storageClassName"), NameRule::Subdomain);
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

fn volume(causes: &mut Causes, spec: &Value) {
    if list(spec, "accessModes").is_empty() {
        causes.push(Cause::required("spec.accessModes", ""));
    }
    access_modes(causes, spec, "spec");
    let capacity = spec.get("capacity").and_then(Value::as_object);
    if capacity.is_none_or(serde_json::Map::is_empty) {
        causes.push(Cause::required("spec.capacity", ""));
    }
    if capacity.is_none_or(|all| all.len() != 1 || !all.contains_key("storage")) {
        let shown = spec.get("capacity").unwrap_or(&Value::Null);
        causes.push(Cause {
            reason: "FieldValueNotSupported".into(),
            message: format!("Unsupported value: {shown}: supported values: \"storage\""),
            field: "spec.capacity".into(),
        });
    }
    if let Some(storage) = spec.pointer("/capacity/storage") {
        positive(causes, storage, "spec.capacity[storage]".into());
    }
    check::one_of(causes, spec, "spec", "persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"]);
    volume_source(causes, spec);
    class_name(causes, spec, "spec");
    check::one_of(causes, spec, "spec", "volumeMode", &["Block", "Filesystem"]);
}

fn volume_source(causes: &mut Causes, spec: &Value) {
    let sources: Vec<&str> = SOURCES.into_iter().filter(|source| spec.get(*source).is_some()).collect();
    if let Some(path) = spec.get("hostPath") {
        check::required(causes, path, "spec.hostPath", "path");
        if text(path, "/path").split('/').any(|part| part == "..") {
            causes.push(Cause::invalid("spec.hostPath.path", &path["path"], "must not contain '..'"));
        }
    }
    if sources == ["csi"] {
        check::required(causes, &spec["csi"], "spec.csi", "driver");
        check::required(causes, &spec["csi"], "spec.csi", "volumeHandle");
    }
    if sources == ["nfs"] {
        check::required(causes, &spec["nfs"], "spec.nfs", "server");
        check::required(causes, &spec["nfs"], "spec.nfs", "path");
    }
    if sources == ["local"] && spec.get("nodeAffinity").is_none() {
        causes.push(Cause::required("spec.nodeAffinity", "Local volume requires node affinity"));
    }
    for extra in sources.iter().skip(1) {
        causes.push(Cause::forbidden(at("spec", extra), "may not specify more than 1 volume type"));
    }
    if sources.is_empty() {
        causes.push(Cause::required("spec", "must specify a volume type"));
    }
}

fn volume_update(causes: &mut Causes, new: &Value, old: &Value) {
    if SOURCES.iter().any(|source| new.get(*source) != old.get(*source)) {
        let why = "spec.persistentvolumesource is immutable after creation";
        causes.push(Cause::forbidden("spec.persistentvolumesource", why));
    }
    check::immutable(causes, new, old, "", "volumeMode");
}

fn class(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            if new.get(field) != old.get(field) {
                causes.push(Cause::invalid(field, &Value::Null, "field is immutable"));
            }
        }
        return;
    }
    check::one_of(causes, new, "", "reclaimPolicy", &["Delete", "Retain"]);
    check::one_of(causes, new, "", "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
    check::required(causes, new, "", "provisioner");
}
