//! Where the prose about built-in kinds comes from.
//!
//! The server's own table of types has every field and not a word about any: `kubectl explain` shows what is in the
//! documents of `/openapi/v3`, and whoever embeds the server may know more than it does. What is given here is asked
//! for only while a document is made, and nothing of it is kept.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

/// Somebody who can describe types.
pub trait Descriptions: fmt::Debug + Send + Sync {
    /// JSON schemas with descriptions, by the names of their definitions, of everything that the kinds of a group's
    /// version are made of. Unknown groups get at least the types that all kinds share.
    fn schemas(&self, group: &str, version: &str) -> BTreeMap<String, Value>;

    /// What to tell whoever writes an object of a definition, such as `io.k8s.api.core.v1.Pod`, besides what the server
    /// itself has to say.
    fn warnings(&self, definition: &str, object: &Value) -> Vec<String> {
        let _ = (definition, object);
        Vec::new()
    }
}

/// Copies the words of one schema of a type into another one of the same type.
pub(crate) fn describe(schema: &mut Value, told: &Value) {
    let Some(map) = schema.as_object_mut() else { return };
    copy(map, told);
    let properties = map.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if let (Some(property), Some(told)) = (property.as_object_mut(), told["properties"].get(name)) {
            copy(property, told);
        }
    }
}

fn copy(into: &mut Map<String, Value>, told: &Value) {
    if let Some(text) = told["description"].as_str() {
        into.entry("description").or_insert_with(|| text.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_copied_and_nothing_else() {
        let mut schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"description": "own"}}});
        let told = json!({"description": "whole", "properties": {
            "a": {"description": "part", "type": "integer"}, "b": {"description": "other"}, "c": {"description": "x"}}});
        describe(&mut schema, &told);
        assert_eq!(
            schema,
            json!({"type": "object", "description": "whole", "properties": {
                "a": {"type": "string", "description": "part"}, "b": {"description": "own"}}})
        );
    }
}
