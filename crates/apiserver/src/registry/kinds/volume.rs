//! PersistentVolumes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default,
    storage::{access_modes, class_name, class_of, modes, phase, positive},
    text,
};
use crate::{environment::Environment, error::Cause, registry::metadata};

/// PersistentVolume.
pub(super) static VOLUME: Strategy = Strategy {
    defaults,
    complete_create,
    validate,
    returns_deleted: true,
    row: Some(row),
    ..Strategy::PLAIN
};

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

fn defaults(object: &mut Value) {
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

/// What is in use is not taken away: the finalizer that protects it is there from the start.
fn complete_create(volume: &mut Value, environment: &Environment) {
    volume["status"]["lastPhaseTransitionTime"] = json!(environment.now_text());
    metadata::add_finalizer(volume, "kubernetes.io/pv-protection");
}

fn validate(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    volume(&mut causes, &new["spec"]);
    if let Some(old) = old {
        volume_update(&mut causes, &new["spec"], &old["spec"]);
    }
    causes
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = object
        .pointer("/spec/claimRef")
        .map_or(String::new(), |claim| format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")));
    vec![
        cells::name(object),
        cells::or(&cells::plain(object.pointer("/spec/capacity/storage")), "0"),
        json!(modes(cells::list(object, "/spec/accessModes"))),
        json!(text(object, "/spec/persistentVolumeReclaimPolicy")),
        phase(object),
        json!(claim),
        class_of(object),
        cells::or(text(object, "/spec/volumeAttributesClassName"), "<unset>"),
        json!(text(object, "/status/reason")),
        cells::age(object, now),
        cells::or(text(object, "/spec/volumeMode"), "<unset>"),
    ]
}
