//! Storage classes and what drivers of storage report. Volumes and claims have rooms of their own.

mod drivers;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, small, text,
};
use crate::{
    error::Cause,
    registry::metadata::{NameRule, add_finalizer},
    schema::quantity,
};

/// StorageClass.
static CLASS: Strategy = Strategy {
    defaults: |class| {
        default(class, "reclaimPolicy", || json!("Delete"));
        default(class, "volumeBindingMode", || json!("Immediate"));
    },
    validate: |new, old| {
        let mut causes = Vec::new();
        validate_class(&mut causes, new, old);
        causes
    },
    returns_deleted: true,
    row: Some(class),
    ..Strategy::PLAIN
};

/// The causes that a check finds.
macro_rules! checked {
    ($check:expr) => {
        |new, old| {
            let mut causes = Vec::new();
            $check(&mut causes, new, old);
            causes
        }
    };
}

/// CSINode.
static CSI_NODE: Strategy = Strategy {
    unconditional_update: false,
    validate: checked!(drivers::node),
    returns_deleted: true,
    row: Some(csi_node),
    ..Strategy::PLAIN
};

/// CSIDriver.
static CSI_DRIVER: Strategy = Strategy {
    unconditional_update: false,
    defaults: drivers::driver_defaults,
    validate: checked!(drivers::driver),
    returns_deleted: true,
    row: Some(csi_driver),
    ..Strategy::PLAIN
};

/// VolumeAttachment.
static ATTACHMENT: Strategy = Strategy {
    unconditional_update: false,
    validate: checked!(drivers::attachment),
    returns_deleted: true,
    row: Some(attachment),
    ..Strategy::PLAIN
};

/// CSIStorageCapacity.
static CAPACITY: Strategy =
    Strategy { unconditional_update: false, validate: checked!(drivers::capacity), ..Strategy::PLAIN };

/// VolumeAttributesClass.
static ATTRIBUTES_CLASS: Strategy = Strategy {
    // Claims that use it keep it.
    complete_create: |class, _| add_finalizer(class, "kubernetes.io/vac-protection"),
    validate: checked!(drivers::attributes_class),
    returns_deleted: true,
    ..Strategy::PLAIN
};

/// The kinds of the group.
pub(super) fn kind(plural: &str) -> &'static Strategy {
    match plural {
        "storageclasses" => &CLASS,
        "csinodes" => &CSI_NODE,
        "csidrivers" => &CSI_DRIVER,
        "volumeattachments" => &ATTACHMENT,
        "csistoragecapacities" => &CAPACITY,
        "volumeattributesclasses" => &ATTRIBUTES_CLASS,
        _ => &small::PLAIN,
    }
}

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Checks the access modes of a claim or a volume.
pub(super) fn access_modes(causes: &mut Causes, spec: &Value, path: &str) {
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

/// Checks an amount that must be more than nothing.
pub(super) fn positive(causes: &mut Causes, amount: &Value, field: String) {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let zero = quantity::parse("0");
    if quantity::parse(&text) <= zero {
        causes.push(Cause::invalid(field, &json!(text), "must be greater than zero"));
    }
}

/// Checks the class that a claim or a volume names.
pub(super) fn class_name(causes: &mut Causes, spec: &Value, path: &str) {
    let name = text(spec, "/storageClassName");
    if !name.is_empty() {
        check::name(causes, name, at(path, "storageClassName"), NameRule::Subdomain);
    }
}

fn validate_class(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            if new.get(field) != old.get(field) {
                causes.push(Cause::invalid(field, &Value::Null, "field is immutable"));
            }
        }
        return;
    }
    let maker = text(new, "/provisioner");
    if !maker.is_empty() {
        provisioner(causes, maker, "provisioner");
    }
    parameters(causes, new);
    check::one_of(causes, new, "", "reclaimPolicy", &["Delete", "Retain"]);
    check::one_of(causes, new, "", "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
    topologies(causes, new);
    // What a type declares about itself is checked last.
    check::required(causes, new, "", "provisioner");
}

/// Who makes the volumes of a class.
fn provisioner(causes: &mut Causes, name: &str, path: &str) {
    if name.is_empty() {
        causes.push(Cause::required(path, ""));
    } else {
        check::qualified(causes, &name.to_lowercase(), path);
    }
}

fn parameters(causes: &mut Causes, class: &Value) {
    if check::entries(class, "parameters").any(|(key, _)| key.is_empty()) {
        causes.push(Cause::invalid("parameters", &json!(""), "field can not be empty."));
    }
}

/// Where the volumes of a class may be.
fn topologies(causes: &mut Causes, class: &Value) {
    let mut terms: BTreeSet<Vec<(&str, BTreeSet<&str>)>> = BTreeSet::new();
    for (index, term) in list(class, "allowedTopologies").iter().enumerate() {
        let place = format!("allowedTopologies[{index}]");
        let mut meaning: Vec<(&str, BTreeSet<&str>)> = Vec::new();
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        for (index, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let place = format!("{place}.matchLabelExpressions[{index}]");
            let key = text(expression, "/key");
            let mut values: BTreeSet<&str> = BTreeSet::new();
            if list(expression, "values").is_empty() {
                causes.push(Cause::required(at(&place, "values"), ""));
            }
            for (index, value) in list(expression, "values").iter().filter_map(Value::as_str).enumerate() {
                if !values.insert(value) {
                    causes.push(check::duplicate(format!("{place}.values[{index}]"), value));
                }
            }
            check::qualified(causes, key, at(&place, "key"));
            if !keys.insert(key) {
                causes.push(check::duplicate(at(&place, "key"), key));
            }
            meaning.push((key, values));
        }
        meaning.sort();
        if !terms.insert(meaning) {
            causes.push(check::duplicate(at(&place, "matchLabelExpressions"), ""));
        }
    }
}

/// Where a class was named before there was a field for it.
const LEGACY_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

/// `RWO,ROX`: the modes in short.
pub(super) fn modes(list: &[Value]) -> String {
    let has = |mode: &str| list.iter().any(|one| one == mode);
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    cells::joined(known.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| (*short).to_owned()))
}

/// The phase of a claim or a volume, as rows show it.
pub(super) fn phase(object: &Value) -> Value {
    let deleting = !text(object, "/metadata/deletionTimestamp").is_empty();
    json!(if deleting { "Terminating" } else { text(object, "/status/phase") })
}

/// The class of a claim or a volume, as rows show it.
pub(super) fn class_of(object: &Value) -> Value {
    match text(object, LEGACY_CLASS) {
        "" => json!(text(object, "/spec/storageClassName")),
        class => json!(class),
    }
}

fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let default =
        text(object, "/metadata/annotations/storageclass.kubernetes.io~1is-default-class") == "true";
    let shown = text(object, "/metadata/name");
    vec![
        json!(if default { format!("{shown} (default)") } else { shown.to_owned() }),
        json!(text(object, "/provisioner")),
        cells::or(text(object, "/reclaimPolicy"), "Delete"),
        cells::or(text(object, "/volumeBindingMode"), "Immediate"),
        json!(cells::flag(object, "/allowVolumeExpansion")),
        cells::age(object, now),
    ]
}

fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![cells::name(object), json!(cells::list(object, "/spec/drivers").len()), cells::age(object, now)]
}

fn csi_driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let tokens = match object.pointer("/spec/tokenRequests") {
        None => "<unset>".to_owned(),
        Some(_) => cells::joined(
            cells::list(object, "/spec/tokenRequests").iter().map(|one| text(one, "/audience").to_owned()),
        ),
    };
    let modes = cells::joined(
        cells::list(object, "/spec/volumeLifecycleModes").iter().map(|one| cells::plain(Some(one))),
    );
    vec![
        cells::name(object),
        json!(object.pointer("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true)),
        json!(cells::flag(object, "/spec/podInfoOnMount")),
        json!(cells::flag(object, "/spec/storageCapacity")),
        json!(tokens),
        json!(cells::flag(object, "/spec/requiresRepublish")),
        cells::or_none(&modes),
        cells::age(object, now),
    ]
}

fn attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        cells::name(object),
        json!(text(object, "/spec/attacher")),
        json!(text(object, "/spec/source/persistentVolumeName")),
        json!(text(object, "/spec/nodeName")),
        json!(cells::flag(object, "/status/attached")),
        cells::age(object, now),
    ]
}
