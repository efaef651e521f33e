//! Defaults of custom objects, filled in when an object is written and when it is read.

use serde_json::{Map, Value};

use super::{
    Additional, TypeRef,
    json::size,
    node::{Node, NodeId, Types},
};

impl TypeRef {
    /// Fills in the schema's defaults. A null where none is allowed counts as absent: it gives way
    /// to the default, or goes.
    pub fn apply_defaults(&self, object: &mut Value) {
        self.drop_nulls(object);
        self.fill_defaults(object);
    }

    /// Removes the nulls that the schema does not allow and has no default for, as decoding an object does. Nulls among
    /// the items of a list stay.
    pub fn drop_nulls(&self, object: &mut Value) {
        drop_nulls(self.types(), self.id(), object);
    }

    /// Fills in the schema's defaults, also for nulls that it does not allow.
    ///
    /// They end where they would make the object much larger than any that can be stored: small items of which each is
    /// given a large default are refused when they are committed, and must not take memory before.
    pub fn fill_defaults(&self, object: &mut Value) {
        Filling { types: self.types(), room: ROOM }.fill(self.id(), object);
    }
}

/// The schema of a key, as custom objects know it: declared, or that of all other keys.
fn schema_of(node: &Node, key: &str) -> Option<NodeId> {
    let other = match node.additional {
        Additional::Schema(id) => Some(id),
        _ => None,
    };
    node.properties.get(key).copied().or(other)
}

fn refuses_null(node: &Node) -> bool {
    !node.nullable
}

fn drop_nulls(types: &Types, id: NodeId, value: &mut Value) {
    let node = types.get(id);
    match value {
        Value::Object(object) => {
            object.retain(|key, value| {
                let child = schema_of(node, key).map(|id| types.get(id));
                let gone = child.is_some_and(|child| refuses_null(child) && child.default.is_none());
                !(value.is_null() && gone)
            });
            for (key, value) in object {
                if let Some(child) = schema_of(node, key) {
                    drop_nulls(types, child, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = node.items {
                for item in items {
                    drop_nulls(types, child, item);
                }
            }
        }
        _ => {}
    }
}

/// How long all defaults of one object may be together.
const ROOM: usize = 4 * 1024 * 1024;

struct Filling<'a> {
    types: &'a Types,
    /// How much more may be filled in.
    room: usize,
}

impl Filling<'_> {
    fn fill(&mut self, id: NodeId, value: &mut Value) {
        let node = self.types.get(id);
        match value {
            Value::Object(object) => self.fill_object(node, object),
            Value::Array(items) => {
                let Some(child) = node.items else { return };
                for item in items {
                    self.fill_null(self.types.get(child), item);
                    self.fill(child, item);
                }
            }
            _ => {}
        }
    }

    fn fill_object(&mut self, node: &Node, object: &mut Map<String, Value>) {
        for (key, child) in &node.properties {
            let child = self.types.get(*child);
            let Some(default) = &child.default else { continue };
            let absent = match object.get(key) {
                None => true,
                Some(value) => value.is_null() && refuses_null(child),
            };
            if absent && self.has_room(key.len() + size(default)) {
                object.insert(key.clone(), default.clone());
            }
        }
        for (key, value) in object {
            let Some(child) = schema_of(node, key) else { continue };
            if !node.properties.contains_key(key) {
                self.fill_null(self.types.get(child), value);
            }
            self.fill(child, value);
        }
    }

    fn fill_null(&mut self, node: &Node, value: &mut Value) {
        if let (true, true, Some(default)) = (value.is_null(), refuses_null(node), &node.default)
            && self.has_room(size(default))
        {
            *value = default.clone();
        }
    }

    fn has_room(&mut self, size: usize) -> bool {
        match self.room.checked_sub(size) {
            Some(rest) => self.room = rest,
            None => self.room = 0,
        }
        self.room > 0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::TypeRef;

    fn ty() -> TypeRef {
        let schema = json!({"type": "object", "properties": {
            "size": {"type": "integer", "default": 3},
            "plain": {"type": "string"},
            "may": {"type": "string", "nullable": true, "default": "x"},
            "nested": {"type": "object", "default": {}, "properties": {
                "deep": {"type": "string", "default": "d"},
            }},
            "absent": {"type": "object", "properties": {"deep": {"type": "string", "default": "d"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {
                "port": {"type": "string", "default": "TCP"},
            }}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        }});
        TypeRef::from_openapi(&schema, &|_| None).expect("the schema must load")
    }

    #[test]
    fn defaults_reach_into_what_is_there_or_defaulted() {
        let mut object = json!({"list": [{}, {"port": "UDP"}]});
        ty().apply_defaults(&mut object);
        assert_eq!(
            object,
            json!({
                "size": 3,
                "may": "x",
                "nested": {"deep": "d"},
                "list": [{"port": "TCP"}, {"port": "UDP"}],
            })
        );
    }

    #[test]
    fn a_null_gives_way_unless_null_is_allowed() {
        let mut object = json!({"size": null, "plain": null, "may": null, "map": {"a": null, "b": 1}});
        ty().apply_defaults(&mut object);
        assert_eq!(object, json!({"size": 3, "may": null, "nested": {"deep": "d"}, "map": {"a": 7, "b": 1}}));
    }

    #[test]
    fn defaulting_twice_changes_nothing() {
        let mut once = json!({"absent": {}, "list": [{}], "map": {"a": null}});
        ty().apply_defaults(&mut once);
        let mut twice = once.clone();
        ty().apply_defaults(&mut twice);
        assert_eq!(once, twice);
    }
}
