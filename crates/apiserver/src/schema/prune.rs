//! Fields that the schema does not know: dropped, and named for those who want to know.

use serde_json::{Map, Value};

use super::{
    Additional, TypeRef,
    node::{Node, NodeId, Types},
};

impl TypeRef {
    /// Drops the fields that the schema does not know, and returns the paths of the first of them, sorted.
    ///
    /// A node with `x-kubernetes-preserve-unknown-fields` keeps what it does not know, but what it
    /// knows is pruned by its own schema.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruning = Pruning { types: self.types(), path: String::new(), unknown: Vec::new() };
        pruning.value(Some(self.id()), object);
        pruning.unknown.sort();
        pruning.unknown
    }
}

/// How many unknown fields are named, and how much of a long path.
const NAMED: usize = 100;
const PATH: usize = 4096;

struct Pruning<'a> {
    types: &'a Types,
    path: String,
    unknown: Vec<String>,
}

impl<'a> Pruning<'a> {
    /// `None` is the schema of nothing: all keys below it are unknown.
    fn value(&mut self, id: Option<NodeId>, value: &mut Value) {
        match value {
            Value::Object(object) => match id {
                Some(id) => self.object(self.types.get(id), object),
                None => self.drop_all(object),
            },
            Value::Array(items) => {
                let node = id.map(|id| self.types.get(id));
                let child = node.and_then(|node| node.items);
                // Items of a preserved list without a schema are preserved as well.
                if node.is_some_and(|node| node.preserve_unknown && child.is_none()) {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.below(&format!("[{index}]"), |pruning| pruning.value(child, item));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, node: &'a Node, object: &mut Map<String, Value>) {
        let mut gone = Vec::new();
        for (key, value) in object.iter_mut() {
            let child = match (node.properties.get(key), node.additional) {
                (Some(id), _) => Known::By(*id),
                (None, Additional::Schema(id)) => Known::By(id),
                (None, Additional::Allowed) => Known::Freely,
                (None, _) if node.preserve_unknown => Known::Freely,
                (None, _) => Known::Not,
            };
            match child {
                Known::By(id) => {
                    let segment = self.segment(key);
                    self.below(&segment, |pruning| pruning.value(Some(id), value));
                }
                Known::Freely => {}
                Known::Not => gone.push(key.clone()),
            }
        }
        for key in gone {
            self.record(&key);
            object.remove(&key);
        }
    }

    fn drop_all(&mut self, object: &mut Map<String, Value>) {
        for key in object.keys() {
            self.record(key);
        }
        object.clear();
    }

    fn record(&mut self, key: &str) {
        if self.unknown.len() < NAMED {
            let mut path = format!("{}{}", self.path, self.segment(key));
            path.truncate(path.floor_char_boundary(PATH));
            self.unknown.push(path);
        }
    }

    fn segment(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!(".{key}") }
    }

    fn below(&mut self, segment: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(segment);
        visit(self);
        self.path.truncate(length);
    }
}

enum Known {
    By(NodeId),
    Freely,
    Not,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(schema: &Value, mut object: Value) -> (Value, Vec<String>) {
        let ty = TypeRef::from_openapi(schema, &|_| None).expect("the schema must load");
        let unknown = ty.prune(&mut object);
        (object, unknown)
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object"}},
        }}}});
        let (object, unknown) = pruned(
            &schema,
            json!({"x": 1, "spec": {"y": 2, "list": [{"a": 1, "b": 2}], "map": {"k": {"v": 1}}}}),
        );
        assert_eq!(object, json!({"spec": {"list": [{"a": 1}], "map": {"k": {}}}}));
        assert_eq!(unknown, ["spec.list[0].b", "spec.map.k.v", "spec.y", "x"]);
    }

    #[test]
    fn preserved_nodes_keep_the_unknown_and_prune_the_known() {
        let schema = json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        });
        let (object, unknown) = pruned(&schema, json!({"free": {"z": [1]}, "known": {"a": 1, "b": 2}}));
        assert_eq!(object, json!({"free": {"z": [1]}, "known": {"a": 1}}));
        assert_eq!(unknown, ["known.b"]);
    }
}
