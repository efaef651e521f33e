//! Volumes, claims, classes and drivers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    age,
    cells::{flag, joined, list, name, or, or_none, plain, text},
};

const CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

/// `RWO,ROX`: the modes in short.
fn modes(list: &[Value]) -> String {
    let has = |mode: &str| list.iter().any(|one| one == mode);
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    joined(known.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| (*short).to_owned()))
}

fn phase(object: &Value) -> Value {
    let deleting = !text(object, "/metadata/deletionTimestamp").is_empty();
    json!(if deleting { "Terminating" } else { text(object, "/status/phase") })
}

fn class_of(object: &Value) -> Value {
    match text(object, CLASS) {
        "" => json!(text(object, "/spec/storageClassName")),
        class => json!(class),
    }
}

pub(super) fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = object
        .pointer("/spec/claimRef")
        .map_or(String::new(), |claim| format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")));
    vec![
        name(object),
        or(&plain(object.pointer("/spec/capacity/storage")), "0"),
        json!(modes(list(object, "/spec/accessModes"))),
        json!(text(object, "/spec/persistentVolumeReclaimPolicy")),
        phase(object),
        json!(claim),
        class_of(object),
        or(text(object, "/spec/volumeAttributesClassName"), "<unset>"),
        json!(text(object, "/status/reason")),
        age(object, now),
        or(text(object, "/spec/volumeMode"), "<unset>"),
    ]
}

pub(super) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let volume = text(object, "/spec/volumeName");
    let (capacity, shown) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity = plain(object.pointer("/status/capacity/storage"));
        let capacity = if capacity.is_empty() { "0".to_owned() } else { capacity };
        (capacity, modes(list(object, "/status/accessModes")))
    };
    vec![
        name(object),
        phase(object),
        json!(volume),
        json!(capacity),
        json!(shown),
        class_of(object),
        or(text(object, "/spec/volumeAttributesClassName"), "<unset>"),
        age(object, now),
        or(text(object, "/spec/volumeMode"), "<unset>"),
    ]
}

pub(super) fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let default =
        text(object, "/metadata/annotations/storageclass.kubernetes.io~1is-default-class") == "true";
    let shown = text(object, "/metadata/name");
    vec![
        json!(if default { format!("{shown} (default)") } else { shown.to_owned() }),
        json!(text(object, "/provisioner")),
        or(text(object, "/reclaimPolicy"), "Delete"),
        or(text(object, "/volumeBindingMode"), "Immediate"),
        json!(flag(object, "/allowVolumeExpansion")),
        age(object, now),
    ]
}

pub(super) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(list(object, "/spec/drivers").len()), age(object, now)]
}

pub(super) fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let tokens = match object.pointer("/spec/tokenRequests") {
        None => "<unset>".to_owned(),
        Some(_) => {
            joined(list(object, "/spec/tokenRequests").iter().map(|one| text(one, "/audience").to_owned()))
        }
    };
    let modes = joined(list(object, "/spec/volumeLifecycleModes").iter().map(|one| plain(Some(one))));
    vec![
        name(object),
        json!(object.pointer("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true)),
        json!(flag(object, "/spec/podInfoOnMount")),
        json!(flag(object, "/spec/storageCapacity")),
        json!(tokens),
        json!(flag(object, "/spec/requiresRepublish")),
        or_none(&modes),
        age(object, now),
    ]
}

pub(super) fn attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        json!(text(object, "/spec/attacher")),
        json!(text(object, "/spec/source/persistentVolumeName")),
        json!(text(object, "/spec/nodeName")),
        json!(flag(object, "/status/attached")),
        age(object, now),
    ]
}
