//! Devices: what claims ask for, what classes say, what drivers publish.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Strategy,
    check::{self, Causes, at, list},
    text,
};
use crate::{
    error::Cause,
    registry::{metadata::NameRule, strategy::Generation},
};

/// ResourceClaim.
static CLAIM: Strategy = Strategy {
    defaults: |claim| default_requests(claim.pointer_mut("/spec/devices/requests")),
    validate: |new, old| {
        let mut causes = Vec::new();
        match old {
            Some(old) => check::fixed(&mut causes, new, old, "", "spec"),
            None => devices(&mut causes, &new["spec"]["devices"], "spec.devices"),
        }
        causes
    },
    returns_deleted: true,
    ..Strategy::PLAIN
};

/// ResourceClaimTemplate.
static TEMPLATE: Strategy = Strategy {
    defaults: |template| default_requests(template.pointer_mut("/spec/spec/devices/requests")),
    validate: |new, old| {
        let mut causes = Vec::new();
        match old {
            Some(old) => check::immutable(&mut causes, new, old, "", "spec"),
            None => devices(&mut causes, &new["spec"]["spec"]["devices"], "spec.spec.devices"),
        }
        causes
    },
    returns_deleted: true,
    ..Strategy::PLAIN
};

/// DeviceClass.
static CLASS: Strategy = Strategy {
    generation: Generation::SPEC,
    validate: |new, _| {
        let mut causes = Vec::new();
        selectors(&mut causes, &new["spec"], "spec");
        causes
    },
    returns_deleted: true,
    ..Strategy::PLAIN
};

/// ResourceSlice.
static SLICE: Strategy = Strategy {
    generation: Generation::SPEC,
    validate: |new, old| {
        let mut causes = Vec::new();
        slice(&mut causes, &new["spec"], old.map(|old| &old["spec"]));
        causes
    },
    returns_deleted: true,
    ..Strategy::PLAIN
};

/// The kinds of the group.
pub(super) fn kind(plural: &str) -> &'static Strategy {
    match plural {
        "resourceclaims" => &CLAIM,
        "resourceclaimtemplates" => &TEMPLATE,
        "deviceclasses" => &CLASS,
        "resourceslices" => &SLICE,
        _ => &super::small::PLAIN,
    }
}

fn default_requests(requests: Option<&mut Value>) {
    for request in requests.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly") {
            default_mode(exactly);
        }
        request
            .get_mut("firstAvailable")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .for_each(default_mode);
    }
}

fn default_mode(request: &mut Value) {
    if text(request, "/allocationMode").is_empty() {
        request["allocationMode"] = json!("ExactCount");
    }
    if request["allocationMode"] == "ExactCount" && request["count"].as_i64().unwrap_or_default() == 0 {
        request["count"] = json!(1);
    }
}

/// A list that has at most so many elements, each with a name of its own.
fn named(causes: &mut Causes, elements: &[Value], most: usize, path: &str) {
    if elements.len() > most {
        causes.push(Cause {
            reason: "FieldValueTooMany".into(),
            message: format!("Too many: {}: must have at most {most} items", elements.len()),
            field: path.to_owned(),
        });
    }
    let mut seen = BTreeSet::new();
    for (index, element) in elements.iter().enumerate() {
        let name = text(element, "/name");
        if !seen.insert(name) {
            causes.push(Cause {
                reason: "FieldValueDuplicate".into(),
                message: format!("Duplicate value: {}", json!({"name": name})),
                field: format!("{path}[{index}]"),
            });
        }
    }
}

fn devices(causes: &mut Causes, devices: &Value, path: &str) {
    let (requests, place) = (list(devices, "requests"), at(path, "requests"));
    for (index, request) in requests.iter().enumerate() {
        let place = format!("{place}[{index}]");
        check::name(causes, text(request, "/name"), at(&place, "name"), NameRule::Label);
        match (request.get("exactly"), list(request, "firstAvailable")) {
            (None, []) => {
                let why = "exactly one of `exactly` or `firstAvailable` is required";
                causes.push(Cause::required(place, why));
            }
            (Some(_), [_, ..]) => {
                let why =
                    "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
                causes.push(Cause::invalid(place, &Value::Null, why));
            }
            (Some(exactly), []) => exact(causes, exactly, &at(&place, "exactly")),
            (None, alternatives) => {
                let place = at(&place, "firstAvailable");
                for (index, one) in alternatives.iter().enumerate() {
                    let place = format!("{place}[{index}]");
                    check::name(causes, text(one, "/name"), at(&place, "name"), NameRule::Label);
                    exact(causes, one, &place);
                }
                named(causes, alternatives, 8, &place);
            }
        }
    }
    named(causes, requests, 32, &place);
    let known = request_names(requests);
    for (index, constraint) in list(devices, "constraints").iter().enumerate() {
        names_of_requests(causes, constraint, &known, &format!("{path}.constraints[{index}]"));
    }
    for (index, config) in list(devices, "config").iter().enumerate() {
        let place = format!("{path}.config[{index}]");
        names_of_requests(causes, config, &known, &place);
        match config.get("opaque") {
            None => causes.push(Cause::required(at(&place, "opaque"), "")),
            Some(opaque) => {
                driver(causes, text(opaque, "/driver"), &format!("{place}.opaque.driver"));
                if opaque.get("parameters").is_none() {
                    causes.push(Cause::required(format!("{place}.opaque.parameters"), ""));
                }
            }
        }
    }
}

fn exact(causes: &mut Causes, request: &Value, path: &str) {
    match text(request, "/deviceClassName") {
        "" => causes.push(Cause::required(at(path, "deviceClassName"), "")),
        class => check::name(causes, class, at(path, "deviceClassName"), NameRule::Subdomain),
    }
    selectors(causes, request, path);
    let (mode, count) = (text(request, "/allocationMode"), request["count"].as_i64().unwrap_or_default());
    match mode {
        "All" if count != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            causes.push(Cause::invalid(at(path, "count"), &json!(count), why));
        }
        "ExactCount" if count <= 0 => {
            causes.push(Cause::invalid(at(path, "count"), &json!(count), "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        other => {
            causes.push(Cause::not_supported(at(path, "allocationMode"), other, &["All", "ExactCount"]));
        }
    }
}

fn selectors(causes: &mut Causes, object: &Value, path: &str) {
    for (index, selector) in list(object, "selectors").iter().enumerate() {
        if selector.get("cel").is_none() {
            causes.push(Cause::required(format!("{path}.selectors[{index}].cel"), ""));
        }
    }
}

/// The names of requests, and of their alternatives behind them.
fn request_names(requests: &[Value]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for request in requests {
        let name = text(request, "/name");
        names.insert(name.to_owned());
        let inner = list(request, "firstAvailable").iter();
        names.extend(inner.map(|one| format!("{name}/{}", text(one, "/name"))));
    }
    names
}

/// The requests that a constraint or a configuration is about.
fn names_of_requests(causes: &mut Causes, object: &Value, known: &BTreeSet<String>, path: &str) {
    for (index, name) in list(object, "requests").iter().filter_map(Value::as_str).enumerate() {
        if !known.contains(name) {
            let why = "must be the name of a request in the claim or the name of a request and a subrequest \
                       separated by '/'";
            causes.push(Cause::invalid(format!("{path}.requests[{index}]"), &json!(name), why));
        }
    }
}

/// The name of a driver.
fn driver(causes: &mut Causes, name: &str, path: &str) {
    if name.is_empty() {
        causes.push(Cause::required(path, ""));
        return;
    }
    if name.len() > 63 {
        causes.push(Cause::too_long(path, 63));
    }
    check::name(causes, &name.to_lowercase(), path, NameRule::Subdomain);
}

fn slice(causes: &mut Causes, spec: &Value, old: Option<&Value>) {
    driver(causes, text(spec, "/driver"), "spec.driver");
    match text(spec, "/pool/name") {
        "" => causes.push(Cause::required("spec.pool.name", "")),
        name => {
            for part in name.split('/') {
                check::name(causes, part, "spec.pool.name", NameRule::Subdomain);
            }
        }
    }
    let count = spec["pool"]["resourceSliceCount"].as_i64().unwrap_or_default();
    if count <= 0 {
        let why = "must be greater than zero";
        causes.push(Cause::invalid("spec.pool.resourceSliceCount", &json!(count), why));
    }
    let generation = spec["pool"]["generation"].as_i64().unwrap_or_default();
    if generation < 0 {
        let why = "must be greater than or equal to zero";
        causes.push(Cause::invalid("spec.pool.generation", &json!(generation), why));
    }
    if let Some(name) = spec.get("nodeName").and_then(Value::as_str) {
        match name {
            "" => causes.push(Cause::invalid(
                "spec.nodeName",
                &json!(""),
                "must be either unset or set to a non-empty string",
            )),
            name => check::name(causes, name, "spec.nodeName", NameRule::Subdomain),
        }
    }
    let places = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    if !places.iter().any(|place| spec.get(*place).is_some()) {
        let why =
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
        causes.push(Cause::required("spec", why));
    }
    let devices = list(spec, "devices");
    for (index, device) in devices.iter().enumerate() {
        let place = format!("spec.devices[{index}].name");
        check::name(causes, text(device, "/name"), place, NameRule::Label);
    }
    named(causes, devices, 128, "spec.devices");
    if let Some(old) = old {
        for field in ["driver", "nodeName"] {
            check::immutable(causes, spec, old, "spec", field);
        }
        check::immutable(causes, &spec["pool"], &old["pool"], "spec.pool", "name");
    }
}
