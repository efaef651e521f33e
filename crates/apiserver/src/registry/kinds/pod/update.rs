//! What a Pod that exists may still change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::quality_of_service;
use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at, list},
        resource::text,
    },
};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
    set to 1 if it was previously negative)";

/// A Pod keeps the number that its priority class stood for when it was created.
pub(in crate::registry::kinds) fn keep_priority(new: &mut Value, old: &Value) {
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["priority", "preemptionPolicy"] {
        let unset = spec.get(field).is_none_or(Value::is_null);
        if let (true, Some(kept)) = (unset, old["spec"].get(field)) {
            spec.insert(field.into(), kept.clone());
        }
    }
}

/// A running Pod can change its images, its deadline and its tolerations, and not much else.
pub(in crate::registry::kinds) fn update(causes: &mut Causes, new: &Value, old: &Value) {
    for field in ["containers", "initContainers"] {
        let (now, before) = (list(&new["spec"], field), list(&old["spec"], field));
        if now.len() != before.len() {
            let why = "pod updates may not add or remove containers";
            causes.push(Cause::forbidden(format!("spec.{field}"), why));
            return;
        }
    }
    deadline(causes, &new["spec"], &old["spec"]);
    let (now, before) = (list(&new["spec"], "tolerations"), list(&old["spec"], "tolerations"));
    let kept: BTreeSet<String> = now.iter().map(Value::to_string).collect();
    if before.iter().any(|one| !kept.contains(&one.to_string())) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", why));
    }
    if fixed(new, old) != fixed(old, old) {
        let why = format!("pod updates may not change fields other than {UPDATABLE}");
        causes.push(Cause::forbidden("spec", &why));
    }
}

/// Containers to look into a running Pod are added, never changed.
pub(in crate::registry::kinds) fn debug(causes: &mut Causes, new: &Value, old: &Value) {
    let names = |pod: &Value, field: &str| -> BTreeSet<String> {
        list(&pod["spec"], field).iter().map(|one| text(one, "/name").to_owned()).collect()
    };
    let mut taken = names(new, "containers");
    taken.extend(names(new, "initContainers"));
    for (index, container) in list(&new["spec"], "ephemeralContainers").iter().enumerate() {
        let place = format!("spec.ephemeralContainers[{index}]");
        let name = text(container, "/name").to_owned();
        check::required(causes, container, &place, "name");
        check::required(causes, container, &place, "image");
        if taken.contains(&name) {
            causes.push(check::duplicate(at(&place, "name"), &name));
        }
        taken.insert(name);
    }
    let (now, before) =
        (list(&new["spec"], "ephemeralContainers"), list(&old["spec"], "ephemeralContainers"));
    // Of several with one name, the first counts.
    let by_name: BTreeMap<&str, &Value> = now.iter().rev().map(|one| (text(one, "/name"), one)).collect();
    for container in before {
        let name = text(container, "/name");
        match by_name.get(name) {
            None => {
                let why = format!("existing ephemeral containers \"{name}\" may not be removed\n");
                causes.push(Cause::forbidden("spec.ephemeralContainers", &why));
            }
            Some(same) if *same != container => {
                let why = format!("existing ephemeral containers \"{name}\" may not be changed\n");
                causes.push(Cause::forbidden("spec.ephemeralContainers", &why));
            }
            Some(_) => {}
        }
    }
}

/// Resources of a running Pod may change as long as it stays in its class.
pub(in crate::registry::kinds) fn resize(causes: &mut Causes, new: &Value, old: &Value) {
    let class = quality_of_service(&old["spec"]);
    if quality_of_service(&new["spec"]) != class {
        let why = "Pod QOS Class may not change as a result of resizing";
        causes.push(Cause::invalid("spec", &json!(class), why));
    }
    let rest = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for field in ["containers", "initContainers"] {
            for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(map) = container.as_object_mut() {
                    map.remove("resources");
                    map.remove("resizePolicy");
                }
            }
        }
        spec
    };
    if rest(new) != rest(old) {
        causes.push(Cause::forbidden("spec", "only cpu and memory resources are mutable"));
    }
}

/// A deadline can be set once and then only come nearer.
fn deadline(causes: &mut Causes, new: &Value, old: &Value) {
    let field = "activeDeadlineSeconds";
    match (new.get(field).and_then(Value::as_i64), old.get(field).and_then(Value::as_i64)) {
        (Some(now), Some(before)) if now > before => {
            let why = "must be less than or equal to previous value";
            causes.push(Cause::invalid("spec.activeDeadlineSeconds", &json!(now), why));
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            causes.push(Cause::invalid("spec.activeDeadlineSeconds", &Value::Null, why));
        }
        _ => {}
    }
}

/// The spec without what may change.
fn fixed(pod: &Value, old: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    for field in ["containers", "initContainers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(map) = container.as_object_mut() {
                map.remove("image");
            }
        }
    }
    let gated = !list(&old["spec"], "schedulingGates").is_empty();
    let grace = old.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    if let Some(map) = spec.as_object_mut() {
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            map.remove(field);
        }
        if gated {
            map.remove("nodeSelector");
        }
        if grace.is_some_and(|grace| grace < 0) {
            map.remove("terminationGracePeriodSeconds");
        }
        // Who binds a Pod writes its node through the whole object where it may not use the subresource.
        if old["spec"].get("nodeName").is_none() {
            map.remove("nodeName");
        }
    }
    spec
}
