//! The scale subresource: replicas in, replicas and selector out, for any kind that has them.

use serde_json::{Map, Value, json};

use super::resource::{Resource, text};
use crate::error::{Cause, Error, Result};

/// Where a kind keeps what its scale shows, as JSON pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The wanted replicas.
    pub wanted: String,
    /// The observed replicas.
    pub observed: String,
    /// The selector as text; built-in kinds have a structured one instead.
    pub selector: Option<String>,
}

fn paths(resource: &Resource) -> Result<Paths> {
    match resource.custom() {
        Some(served) => served.scale.clone().ok_or_else(Error::no_such_path),
        None => {
            Ok(Paths { wanted: "/spec/replicas".into(), observed: "/status/replicas".into(), selector: None })
        }
    }
}

/// The scale of an object.
pub(crate) fn of(resource: &Resource, object: &Value) -> Result<Value> {
    let paths = paths(resource)?;
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.into(), value.clone());
        }
    }
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": count(&paths.observed)},
    });
    if count(&paths.wanted) != 0 {
        scale["spec"]["replicas"] = json!(count(&paths.wanted));
    }
    let selector = match &paths.selector {
        Some(pointer) => text(object, pointer).to_owned(),
        None => selector_text(object.pointer("/spec/selector").unwrap_or(&Value::Null)),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    Ok(scale)
}

/// The object with the replicas of `scale`.
pub(crate) fn set(resource: &Resource, object: &Value, scale: &Value) -> Result<Value> {
    let paths = paths(resource)?;
    // A Scale is a typed object: a null in it was not said.
    let wanted = scale.pointer("/spec/replicas").filter(|wanted| !wanted.is_null());
    let wanted = wanted.filter(|wanted| !wanted.is_null()).cloned().unwrap_or_else(|| json!(0));
    let name = text(object, "/metadata/name");
    if wanted.as_i64().is_none_or(|wanted| wanted < 0) {
        let cause = Cause::invalid("spec.replicas", &wanted, "must be greater than or equal to 0");
        let what = crate::error::Named { group: "autoscaling", resource: "Scale" };
        return Err(Error::invalid(what, name, vec![cause]));
    }
    let mut new = object.clone();
    let revision = text(scale, "/metadata/resourceVersion");
    if !revision.is_empty() {
        new["metadata"]["resourceVersion"] = json!(revision);
    }
    put(&mut new, &paths.wanted, wanted);
    Ok(new)
}

/// Whether anybody owns the replicas of an object.
pub(super) fn is_owned(resource: &Resource, object: &Value) -> bool {
    let Ok(paths) = paths(resource) else { return false };
    let element = |segment| format!("f:{segment}");
    let path: Vec<String> = paths.wanted.split('/').skip(1).map(element).collect();
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        path.iter().try_fold(&entry["fieldsV1"], |fields, element| fields.get(element)).is_some()
    })
}

/// Sets the value at a JSON pointer, making the objects on the way.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for segment in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[segment];
    }
    *place = value;
}

/// A label selector as one line of text.
fn selector_text(selector: &Value) -> String {
    let labels = selector
        .get("matchLabels")
        .or_else(|| selector.get("matchExpressions").is_none().then_some(selector));
    let mut parts: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = text(expression, "/key");
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        parts.push(match text(expression, "/operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}
