//! What drivers of storage report and ask for: CSIDrivers, CSINodes, capacities, attachments.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::{
    check::{self, Causes, at, list},
    default, text,
};
use crate::{error::Cause, registry::metadata::NameRule, schema::quantity};

/// Fills in a CSIDriver.
pub(super) fn driver_defaults(driver: &mut Value) {
    default(driver, "spec", || json!({}));
    let spec = &mut driver["spec"];
    default(spec, "attachRequired", || json!(true));
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default(spec, field, || json!(false));
    }
    default(spec, "fsGroupPolicy", || json!("ReadWriteOnceWithFSType"));
    if list(spec, "volumeLifecycleModes").is_empty() {
        spec["volumeLifecycleModes"] = json!(["Persistent"]);
    }
    if let Some(spec) = spec.as_object_mut() {
        // Of a feature that is off.
        spec.remove("preventPodSchedulingIfMissing");
    }
}

/// The name of a driver.
fn driver_name(causes: &mut Causes, name: &str, path: &str) {
    if name.is_empty() {
        causes.push(Cause::required(path, ""));
        return;
    }
    if name.len() > 63 {
        causes.push(Cause::too_long(path, 63));
    }
    check::name(causes, &name.to_lowercase(), path, NameRule::Subdomain);
}

/// Checks a CSIDriver.
pub(super) fn driver(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let spec = &new["spec"];
    check::one_of(causes, spec, "spec", "fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"]);
    tokens(causes, spec);
    for mode in list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str) {
        if !["Persistent", "Ephemeral"].contains(&mode) {
            let allowed = ["Persistent", "Ephemeral"];
            causes.push(Cause::not_supported("spec.volumeLifecycleModes", mode, &allowed));
        }
    }
    if let Some(seconds) = spec["nodeAllocatableUpdatePeriodSeconds"].as_i64().filter(|seconds| *seconds < 10)
    {
        let why = "must be greater than or equal to 10 seconds";
        causes.push(Cause::invalid("spec.nodeAllocatableUpdatePeriodSeconds", &json!(seconds), why));
    }
    if let Some(in_secrets) = spec.get("serviceAccountTokenInSecrets")
        && list(spec, "tokenRequests").is_empty()
    {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        causes.push(Cause::invalid("spec.serviceAccountTokenInSecrets", in_secrets, why));
    }
    if let Some(old) = old {
        if spec["attachRequired"] != old["spec"]["attachRequired"] {
            let value = &spec["attachRequired"];
            causes.push(Cause::invalid("spec.attachedRequired", value, "field is immutable"));
        }
        check::fixed(causes, spec, &old["spec"], "spec", "volumeLifecycleModes");
    }
}

fn tokens(causes: &mut Causes, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (index, token) in list(spec, "tokenRequests").iter().enumerate() {
        let (place, audience) = (format!("spec.tokenRequests[{index}]"), text(token, "/audience"));
        if !seen.insert(audience) {
            causes.push(check::duplicate(at(&place, "audience"), audience));
            continue;
        }
        let Some(seconds) = token["expirationSeconds"].as_i64() else { continue };
        if seconds < 600 {
            let why = "may not specify a duration less than 10 minutes";
            causes.push(Cause::invalid(at(&place, "expirationSeconds"), &json!(seconds), why));
        }
        if seconds > 1 << 32 {
            let why = "may not specify a duration larger than 2^32 seconds";
            causes.push(Cause::invalid(at(&place, "expirationSeconds"), &json!(seconds), why));
        }
    }
}

/// Checks a CSINode.
pub(super) fn node(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let drivers = list(&new["spec"], "drivers");
    let mut seen = BTreeSet::new();
    for (index, driver) in drivers.iter().enumerate() {
        let (place, name) = (format!("spec.drivers[{index}]"), text(driver, "/name"));
        driver_name(causes, name, &at(&place, "name"));
        let id = text(driver, "/nodeID");
        if id.is_empty() {
            causes.push(Cause::required(at(&place, "nodeID"), ""));
        }
        if id.len() > 256 {
            causes.push(Cause::invalid(at(&place, "nodeID"), &json!(id), "must be 256 characters or less"));
        }
        if let Some(allocatable) = driver.get("allocatable") {
            check::non_negative(causes, allocatable, &at(&place, "allocatable"), &["count"]);
        }
        if !seen.insert(name) {
            causes.push(check::duplicate(at(&place, "name"), name));
        }
        let mut keys = BTreeSet::new();
        for key in list(driver, "topologyKeys").iter().filter_map(Value::as_str) {
            if key.is_empty() {
                causes.push(Cause::required(place.clone(), ""));
            }
            if !keys.insert(key) {
                causes.push(check::duplicate(place.clone(), key));
            }
            check::qualified(causes, key, place.clone());
        }
    }
    let without = |driver: &Value| {
        let mut driver = driver.clone();
        driver.as_object_mut().map(|driver| driver.remove("allocatable"));
        driver
    };
    let before = old.into_iter().flat_map(|old| list(&old["spec"], "drivers"));
    let before: BTreeMap<&str, Value> = before.map(|one| (text(one, "/name"), without(one))).collect();
    for now in drivers {
        let plain = without(now);
        if before.get(text(now, "/name")).is_some_and(|before| *before != plain) {
            causes.push(Cause::invalid("spec.drivers", &plain, "field is immutable"));
        }
    }
}

/// Checks a VolumeAttachment.
pub(super) fn attachment(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let spec = &new["spec"];
    driver_name(causes, text(spec, "/attacher"), "spec.attacher");
    let (inline, name) =
        (spec.pointer("/source/inlineVolumeSpec"), spec.pointer("/source/persistentVolumeName"));
    let exactly = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline, name) {
        (None, None) => causes.push(Cause::required("spec.source", exactly)),
        (Some(_), Some(_)) => causes.push(Cause::forbidden("spec.source", exactly)),
        (None, Some(name)) if name == "" => {
            let why = "must specify non empty persistentVolumeName";
            causes.push(Cause::required("spec.source.persistentVolumeName", why));
        }
        _ => {}
    }
    check::name(causes, text(spec, "/nodeName"), "spec.nodeName", NameRule::Subdomain);
    status(causes, &new["status"]);
    if let Some(name) = name.and_then(Value::as_str) {
        check::name(causes, name, "spec.source.persistentVolumeName", NameRule::Subdomain);
    }
    if let Some(old) = old {
        check::fixed(causes, new, old, "", "spec");
    }
}

/// Checks the status of a VolumeAttachment.
fn status(causes: &mut Causes, status: &Value) {
    for field in ["attachError", "detachError"] {
        let (error, place) = (&status[field], format!("status.{field}"));
        if text(error, "/message").len() > 1024 {
            causes.push(Cause::too_long(at(&place, "message"), 1024));
        }
        if let Some(code) = error["errorCode"].as_i64().filter(|code| *code < 0) {
            let why = "must be between 0 and 2147483647, inclusive";
            causes.push(Cause::invalid(at(&place, "errorCode"), &json!(code), why));
        }
    }
}

/// Checks a CSIStorageCapacity.
pub(super) fn capacity(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        for field in ["nodeTopology", "storageClassName"] {
            check::immutable(causes, new, old, "", field);
        }
        return;
    }
    if let Some(topology) = new.get("nodeTopology") {
        check::selector(causes, topology, "nodeTopology");
    }
    check::name(causes, text(new, "/storageClassName"), "storageClassName", NameRule::Subdomain);
    if let Some(amount) = new.get("capacity") {
        let shown = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        if quantity::parse(&shown) < quantity::parse("0") {
            causes.push(Cause::invalid("capacity", &json!(shown), "must be greater than or equal to 0"));
        }
    }
}

/// Checks a VolumeAttributesClass.
pub(super) fn attributes_class(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        for field in ["driverName", "parameters"] {
            if new.get(field) != old.get(field) {
                causes.push(Cause::forbidden(field, &format!("updates to {field} are forbidden.")));
            }
        }
    }
    super::provisioner(causes, text(new, "/driverName"), "driverName");
    super::parameters(causes, new);
    if check::entries(new, "parameters").next().is_none() {
        causes.push(Cause::required("parameters", "must contain at least one key/value pair"));
    }
}
