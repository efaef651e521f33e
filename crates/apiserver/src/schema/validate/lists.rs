//! What lists of type set and map promise, which items correspond, and what embedded objects need.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::schema::{
    Additional, FieldError,
    node::{Node, NodeId, Types},
};

/// The old items of a list, by their keys in lists that have keys: which of them a new item replaces.
pub(in crate::schema) struct Counterparts<'n, 'v> {
    keys: &'n [String],
    by_keys: BTreeMap<String, &'v Value>,
}

impl<'n, 'v> Counterparts<'n, 'v> {
    pub(in crate::schema) fn of(node: &'n Node, old: Option<&'v Value>) -> Self {
        let mut known = Self { keys: &node.list_map_keys, by_keys: BTreeMap::new() };
        if node.list_type.as_deref() == Some("map") {
            for old in old.and_then(Value::as_array).into_iter().flatten() {
                known.by_keys.entry(known.key(old)).or_insert(old);
            }
        }
        known
    }

    /// The old item with the same keys as this one.
    pub(in crate::schema) fn get(&self, item: &Value) -> Option<&'v Value> {
        if self.by_keys.is_empty() { None } else { self.by_keys.get(&self.key(item)).copied() }
    }

    fn key(&self, item: &Value) -> String {
        let values = self.keys.iter().map(|key| item.get(key).map(Value::to_string).unwrap_or_default());
        values.collect::<Vec<_>>().join("\0")
    }
}

/// The items that are in a set or map list more than once.
pub(super) fn duplicates(types: &Types, id: NodeId, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(types, id, value, "", &mut |node, value, path| {
        let Value::Array(items) = value else { return };
        match node.list_type.as_deref() {
            Some("set") => errors.extend(repeated(items.iter().cloned(), path)),
            Some("map") => errors.extend(repeated_keys(node, items, path)),
            _ => {}
        }
    });
    errors
}

fn repeated_keys(node: &Node, items: &[Value], path: &str) -> Vec<FieldError> {
    let stranger = items.iter().position(|item| !item.is_null() && !item.is_object());
    if let Some(index) = stranger {
        let why = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(&format!("{path}[{index}]"), &items[index], why)];
    }
    let keys_of = |item: &Value| {
        let keys = node.list_map_keys.iter();
        let keys = keys.filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(keys.collect::<Map<_, _>>())
    };
    repeated(items.iter().map(keys_of), path)
}

/// Each value that was there before is named once, where it appears for the second time.
fn repeated(values: impl Iterator<Item = Value>, path: &str) -> Vec<FieldError> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut errors = Vec::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(&format!("{path}[{index}]"), &value));
        }
    }
    errors
}

/// What embedded objects lack: a kind and a version, which every object has.
pub(super) fn embedded(types: &Types, id: NodeId, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(types, id, value, "", &mut |node, value, path| {
        if !node.embedded_resource {
            return;
        }
        for key in ["apiVersion", "kind"] {
            let at = super::join(path, key);
            match value.get(key) {
                None => errors.push(FieldError::required(&at, "")),
                Some(Value::String(text)) if text.is_empty() => {
                    errors.push(FieldError::invalid(&at, &Value::String(String::new()), "must not be empty"));
                }
                _ => {}
            }
        }
    });
    errors
}

/// Visits every value that the schema describes, with the paths of field errors.
fn walk<'a>(
    types: &'a Types,
    id: NodeId,
    value: &Value,
    path: &str,
    visit: &mut impl FnMut(&'a Node, &Value, &str),
) {
    let node = types.get(id);
    match value {
        Value::Object(object) => {
            visit(node, value, path);
            for (key, value) in object {
                match (node.properties.get(key), node.additional) {
                    (Some(child), _) => walk(types, *child, value, &super::join(path, key), visit),
                    (None, Additional::Schema(child)) => {
                        walk(types, child, value, &format!("{path}[{key}]"), visit);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            visit(node, value, path);
            let Some(child) = node.items else { return };
            for (index, item) in items.iter().enumerate() {
                walk(types, child, item, &format!("{path}[{index}]"), visit);
            }
        }
        _ => {}
    }
}
