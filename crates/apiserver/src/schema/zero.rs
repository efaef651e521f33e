//! The object that is there before anything was set.
//!
//! The real server holds built-in objects as Go structs: a struct field that is not a pointer is
//! there from the start, and so are fields without `omitempty`. Ownership follows presence, so a
//! created object is compared with this zero object and not with nothing. OpenAPI tells: such
//! fields have their zero value as `default`, and lists without `omitempty` are required.

use serde_json::{Map, Value};

use super::{
    TypeRef,
    node::{Kind, Node, NodeId, Types},
};

/// Struct fields nest by value, so they cannot recurse; this guards against a hostile schema.
const MAX_DEPTH: usize = 64;

impl TypeRef {
    /// The zero object of a built-in kind. A custom kind's is `{}`: call this only for the former.
    pub fn zero(&self) -> Value {
        self.zero_ref().clone()
    }

    /// [`Self::zero`], made once and shared by all clones of this type.
    pub fn zero_ref(&self) -> &Value {
        self.zero.get_or_init(|| zero_struct(self.types(), self.id(), 0))
    }
}

fn zero_struct(types: &Types, id: NodeId, depth: usize) -> Value {
    let node = types.get(id);
    let mut object = Map::new();
    if depth < MAX_DEPTH {
        for (name, child) in &node.properties {
            if let Some(value) = zero_field(types, node, name, *child, depth) {
                object.insert(name.clone(), value);
            }
        }
    }
    Value::Object(object)
}

pub(super) fn zero_field(
    types: &Types,
    parent: &Node,
    name: &str,
    id: NodeId,
    depth: usize,
) -> Option<Value> {
    let child = types.get(id);
    match &child.default {
        Some(Value::Object(default)) if default.is_empty() => match child.kind {
            Some(Kind::Object) => Some(zero_struct(types, id, depth + 1)),
            _ => Some(Value::Null),
        },
        Some(default) if is_zero(default) => Some(default.clone()),
        Some(_) => None,
        None => {
            let bare = matches!(child.kind, Some(Kind::Array | Kind::Object));
            (bare && parent.required.iter().any(|required| required == name)).then_some(Value::Null)
        }
    }
}

pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}
