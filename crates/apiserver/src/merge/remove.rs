//! Taking fields out of an object.

use serde_json::{Map, Value};

use super::{field_set::FieldSet, index::element_of, path::PathElement};
use crate::schema::{Atom, ListRelation, ListShape, Node, NodeId, TypeRef, Types};

/// `value` without the fields in `gone`. What is emptied by that becomes null, as on the real
/// server, where the conversion to the Go type then drops it.
pub(crate) fn remove(ty: &TypeRef, value: &Value, gone: &FieldSet) -> Value {
    if gone.is_empty() {
        return value.clone();
    }
    from_value(ty.types(), ty.id(), value, gone)
}

fn from_value(types: &Types, id: NodeId, value: &Value, gone: &FieldSet) -> Value {
    let node = types.get(id);
    match (node.atom(Some(value)), value) {
        (Some(Atom::Map(map)), Value::Object(object)) if !map.atomic => from_map(types, node, object, gone),
        (Some(Atom::List(list)), Value::Array(items)) if list.relation != ListRelation::Atomic => {
            from_list(types, list, items, gone)
        }
        (Some(Atom::Scalar(_)) | None, scalar) => scalar.clone(),
        _ => Value::Null,
    }
}

fn from_map(types: &Types, node: &Node, object: &Map<String, Value>, gone: &FieldSet) -> Value {
    let mut kept = Map::new();
    for (key, value) in object {
        let branch = gone.branch(&PathElement::field(key));
        if branch.is_some_and(|branch| branch.member) {
            continue;
        }
        let value = match (branch, node.child(key)) {
            (Some(branch), Some(id)) => from_value(types, id, value, &branch.below),
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    if kept.is_empty() {
        return Value::Null;
    }
    Value::Object(kept)
}

fn from_list(types: &Types, list: &ListShape, items: &[Value], gone: &FieldSet) -> Value {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        let element = element_of(types, list, item).ok();
        let branch = element.as_ref().and_then(|element| gone.branch(element));
        match branch {
            Some(branch) if branch.member => {}
            Some(branch) => kept.push(from_value(types, list.items, item, &branch.below)),
            None => kept.push(item.clone()),
        }
    }
    if kept.is_empty() {
        return Value::Null;
    }
    Value::Array(kept)
}
