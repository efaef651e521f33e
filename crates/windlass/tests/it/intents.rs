//! Random intents: rich objects of kinds whose fields have every list and map type, and random changes of them.

use rand::{RngExt, rngs::StdRng};
use serde_json::{Value, json};
use windlass::{
    Kind,
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::core::{ApiResource, GroupVersionKind},
};

mod bases;

pub use bases::bases;

/// A kind and its fullest intent.
pub struct Base {
    pub kind: Kind,
    pub object: Value,
}

fn base(group: &str, version: &str, kind: &str, object: Value) -> Base {
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind == "NetworkPolicy" || kind == "Ingress" {
        resource.plural = if kind == "Ingress" { "ingresses" } else { "networkpolicies" }.into();
    }
    Base { kind: Kind::dynamic(&resource, true), object }
}

/// A custom kind with every list and map type, and with defaults inside what is atomic.
pub fn shapes() -> CustomResourceDefinition {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": text, "mode": {"type": "string", "default": "plain"}, "size": {"type": "integer"},
        "on": {"type": "boolean"}, "tags": {"type": "array", "items": text},
    }});
    let mut keyed = item.clone();
    keyed["required"] = json!(["name"]);
    let spec = json!({"type": "object", "properties": {
        "atomicList": {"type": "array", "items": item},
        "keyedList": {"type": "array", "items": keyed, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "mode"]},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "plainList": {"type": "array", "items": {"type": "integer"}},
        "atomicMap": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "granularMap": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "a": text, "b": {"type": "integer", "default": 3}}}},
        "atomicStruct": {"type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {"x": {"type": "integer", "default": 1}, "y": text}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
        "limits": {"type": "object", "additionalProperties": text},
    }});
    serde_json::from_value(json!({
        "metadata": {"name": "shapes.it.windlass.dev"},
        "spec": {
            "group": "it.windlass.dev", "scope": "Namespaced",
            "names": {"plural": "shapes", "singular": "shape", "kind": "Shape", "listKind": "ShapeList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec}}}}],
        }
    }))
    .expect("the definition must be readable")
}

/// Changes some values below `value`, the more often the higher `times`; names and selectors that cannot change stay.
pub fn mutate(random: &mut StdRng, value: &mut Value, times: usize) {
    for _ in 0..times {
        let mut paths = Vec::new();
        collect(value, &mut Vec::new(), &mut paths);
        if paths.is_empty() {
            return;
        }
        let path = paths.swap_remove(random.random_range(0..paths.len()));
        change(random, value, &path);
    }
}

/// What must stay, so that the server takes most of the mutants.
const FIXED: [&str; 9] = [
    "apiVersion",
    "kind",
    "name",
    "selector",
    "template/metadata",
    "image",
    "namespace",
    "roleRef",
    "scaleTargetRef",
];

fn collect(value: &Value, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let mut below = |name: String, value: &Value, path: &mut Vec<String>| {
        path.push(name);
        if !is_fixed(path) {
            paths.push(path.clone());
            collect(value, path, paths);
        }
        path.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| below(name.clone(), value, path)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| below(at.to_string(), value, path));
        }
        _ => {}
    }
}

fn is_fixed(path: &[String]) -> bool {
    let joined = path.join("/");
    let last = path.last().map(String::as_str);
    // The selector of a Service may change, that of a workload may not.
    let service = joined == "spec/selector" || joined.starts_with("spec/selector/");
    FIXED.iter().any(|fixed| last == Some(fixed) || joined.ends_with(fixed)) && !service
        || joined.starts_with("spec/selector/matchLabels")
        || joined == "metadata"
        || joined == "spec"
}

fn change(random: &mut StdRng, root: &mut Value, path: &[String]) {
    let pointer = format!("/{}", path.iter().map(|p| p.replace('/', "~1")).collect::<Vec<_>>().join("/"));
    let choice = random.random_range(0..10);
    if choice < 4 {
        return remove(root, path);
    }
    let Some(target) = root.pointer_mut(&pointer) else { return };
    match target {
        Value::Array(items) if items.len() > 1 => {
            let (a, b) = (random.random_range(0..items.len()), random.random_range(0..items.len()));
            items.swap(a, b);
        }
        Value::Array(items) if choice < 6 => items.clear(),
        Value::Object(map) if choice < 6 => map.clear(),
        Value::String(text) => *text = other_text(random, text),
        Value::Number(number) => *target = json!((number.as_i64().unwrap_or(0) + choice - 5).abs()),
        Value::Bool(on) => *on = !*on,
        _ => {}
    }
}

fn other_text(random: &mut StdRng, text: &str) -> String {
    const SAME: [[&str; 3]; 3] =
        [["1", "1000m", "1.0"], ["512Mi", "0.5Gi", "524288Ki"], ["1.10", "1.1", "1.100"]];
    if let Some(alike) = SAME.iter().find(|alike| alike.contains(&text)) {
        return alike[random.random_range(0..3)].to_owned();
    }
    match random.random_range(0..4) {
        0 => String::new(),
        1 => format!("{text}x"),
        _ => "other".to_owned(),
    }
}

fn remove(root: &mut Value, path: &[String]) {
    let (last, parents) = path.split_last().expect("a path must have an element");
    let parent = parents.iter().try_fold(root, |at, name| match at {
        Value::Object(map) => map.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    });
    match parent {
        Some(Value::Object(map)) => {
            map.remove(last);
        }
        Some(Value::Array(items)) => {
            items.remove(last.parse().expect("an item's path must be a number"));
        }
        _ => {}
    }
}
