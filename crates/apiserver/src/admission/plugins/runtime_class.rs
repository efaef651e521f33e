//! RuntimeClasses: what a Pod costs besides its containers, and where its runtime is to be found.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::forbidden;
use crate::{admission::Attributes, error::Result, quota::amounts, registry::Registry};

fn class_of(registry: &Registry, request: &Attributes<'_>, pod: &Value) -> Result<Option<Value>> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let found = registry.look_up("node.k8s.io", "runtimeclasses", "", name);
    let missing = || forbidden(request, pod, format!("pod rejected: RuntimeClass \"{name}\" not found"));
    found.ok_or_else(missing).map(Some)
}

/// Adds the overhead, the node selector and the tolerations of the Pod's class.
pub(super) fn apply(registry: &Registry, request: &Attributes<'_>, pod: &mut Value) -> Result<()> {
    let Some(class) = class_of(registry, request, pod)? else { return Ok(()) };
    if let Some(overhead) = class["overhead"].as_object() {
        let fixed = overhead.get("podFixed").cloned().unwrap_or_default();
        let own = amounts(&pod["spec"]["overhead"]);
        if !own.is_empty() && own != amounts(&fixed) {
            return Err(differs(request, pod));
        }
        pod["spec"]["overhead"] = fixed;
    }
    let scheduling = &class["scheduling"];
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let own = &pod["spec"]["nodeSelector"][key];
        if own.is_string() && own != value {
            let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                shown(value),
                shown(own)
            );
            return Err(forbidden(request, pod, why));
        }
        pod["spec"]["nodeSelector"][key] = value.clone();
    }
    if scheduling.is_object() {
        let lists = [&pod["spec"]["tolerations"], &scheduling["tolerations"]];
        let all = lists.into_iter().filter_map(Value::as_array).flatten().cloned().collect();
        pod["spec"]["tolerations"] = json!(merged(all));
    }
    Ok(())
}

/// What a toleration and one that covers it have in common, besides the time: key, value if one is named, effect.
type Likeness<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>);

fn likeness(toleration: &Value) -> Likeness<'_> {
    let text = |field: &str| toleration[field].as_str().filter(|text| !text.is_empty());
    let exists = text("operator") == Some("Exists");
    let value = if exists { None } else { Some(text("value").unwrap_or_default()) };
    // An empty key means every key, where no value is asked for.
    (if exists { text("key") } else { Some(text("key").unwrap_or_default()) }, value, text("effect"))
}

/// Tolerations without those that another one covers.
fn merged(all: Vec<Value>) -> Vec<Value> {
    let mut alike: BTreeMap<Likeness<'_>, Vec<usize>> = BTreeMap::new();
    for (index, one) in all.iter().enumerate() {
        alike.entry(likeness(one)).or_default().push(index);
    }
    // Of those that differ in nothing but the time, the longest covers all others.
    for places in alike.values_mut() {
        let time = |index: &usize| {
            (
                all[*index]["tolerationSeconds"].as_i64().map_or((1, 0), |time| (0, time)),
                std::cmp::Reverse(*index),
            )
        };
        let longest = places.iter().copied().max_by_key(time);
        *places = longest.into_iter().collect();
    }
    let covered = |index: usize, one: &Value| {
        let (key, value, effect) = likeness(one);
        let wider = [key, None].into_iter().flat_map(|key| [value, None].map(|value| (key, value)));
        let mut wider = wider.flat_map(|(key, value)| [effect, None].map(|effect| (key, value, effect)));
        wider.any(|wide| {
            alike.get(&wide).into_iter().flatten().any(|other| *other != index && covers(&all[*other], one))
        })
    };
    let kept = all.iter().enumerate().filter(|(index, one)| !covered(*index, one));
    kept.map(|(_, one)| one.clone()).collect()
}

fn covers(wide: &Value, narrow: &Value) -> bool {
    let text = |toleration: &'_ Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
    let exists = text(wide, "operator") == "Exists";
    let keys = text(wide, "key") == text(narrow, "key") || (exists && text(wide, "key").is_empty());
    let effect = text(wide, "effect");
    let effects = effect.is_empty() || effect == text(narrow, "effect");
    let longer = match (wide["tolerationSeconds"].as_i64(), narrow["tolerationSeconds"].as_i64()) {
        (Some(wide), Some(narrow)) => narrow <= wide,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let equal = text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value");
    wide == narrow || (keys && effects && (effect != "NoExecute" || longer) && (exists || equal))
}

/// Refuses a Pod whose overhead is not its class's.
pub(super) fn check(registry: &Registry, request: &Attributes<'_>, pod: &Value) -> Result<()> {
    let class = class_of(registry, request, pod)?;
    let fixed = class.as_ref().filter(|class| class["overhead"].is_object());
    let own = &pod["spec"]["overhead"];
    match fixed {
        Some(class) if amounts(&class["overhead"]["podFixed"]) != amounts(own) => Err(differs(request, pod)),
        None if own.is_object() => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(forbidden(request, pod, why))
        }
        _ => Ok(()),
    }
}

fn differs(request: &Attributes<'_>, pod: &Value) -> crate::error::Error {
    forbidden(request, pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_that_another_covers_goes() {
        let narrow = json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"});
        let wide = json!({"key": "a", "operator": "Exists"});
        let other = json!({"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        assert_eq!(merged(vec![narrow, other.clone(), wide.clone()]), [other.clone(), wide]);
        let longer = json!({"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        assert_eq!(merged(vec![other, longer.clone()]), [longer]);
    }
}
