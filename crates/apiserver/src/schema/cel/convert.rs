//! JSON values as CEL sees them: by their schema where there is one.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Value,
    objects::{Key, Map},
    parser::{Expression as Tree, Parser},
};
use serde_json::Value as Json;

use crate::schema::{
    Additional,
    node::{Kind, Node, NodeId, Types},
};

/// Names that CEL keeps for itself; as fields they are written with underscores around them.
pub(super) const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A value without schema: keys stay as they are.
pub(crate) fn plain(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(uint)) => Value::UInt(uint),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(plain).collect())),
        Json::Object(object) => map(object.iter().map(|(key, value)| (key.clone(), plain(value)))),
    }
}

/// A value as JSON, if it can be written so.
pub(crate) fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(int) => Json::from(*int),
        Value::UInt(uint) => Json::from(*uint),
        Value::Float(float) => Json::from(*float),
        Value::String(text) => Json::from(text.as_str()),
        Value::List(items) => items.iter().map(to_json).collect::<Option<Vec<Json>>>()?.into(),
        Value::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| match key {
                Key::String(key) => Some((key.to_string(), to_json(value)?)),
                _ => None,
            });
            Json::Object(entries.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// A value as its schema describes it. `root` says that it is a whole object, of whose metadata
/// rules see only the names.
pub(crate) fn typed(types: &Types, id: NodeId, value: &Json, root: bool) -> Value {
    let node = types.get(id);
    match value {
        Json::Number(number) if node.kind == Some(Kind::Number) => {
            Value::Float(number.as_f64().unwrap_or(f64::NAN))
        }
        Json::String(text) => string(node, text),
        Json::Array(items) => {
            let item = |value: &Json| match node.items {
                Some(child) => typed(types, child, value, false),
                None => plain(value),
            };
            Value::List(Arc::new(items.iter().map(item).collect()))
        }
        Json::Object(object) => {
            let fields = object.iter().map(|(key, value)| field(types, node, key, value, root));
            map(fields)
        }
        other => plain(other),
    }
}

fn field(types: &Types, node: &Node, key: &str, value: &Json, root: bool) -> (String, Value) {
    let whole = root || node.embedded_resource;
    match (node.properties.get(key), node.additional) {
        (Some(_), _) if whole && key == "metadata" => (key.to_owned(), names_of(value)),
        (Some(child), _) => (escaped(key), typed(types, *child, value, false)),
        (None, Additional::Schema(child)) => (key.to_owned(), typed(types, child, value, false)),
        (None, _) => (key.to_owned(), plain(value)),
    }
}

fn names_of(metadata: &Json) -> Value {
    let names = ["name", "generateName"];
    let names = names.into_iter().filter_map(|key| Some((key.to_owned(), plain(metadata.get(key)?))));
    map(names)
}

fn map(entries: impl Iterator<Item = (String, Value)>) -> Value {
    let entries = entries.map(|(key, value)| (Key::String(Arc::new(key)), value));
    Value::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
}

/// A string; formats that CEL has a type for become that type when they parse.
fn string(node: &Node, text: &str) -> Value {
    let plain = || Value::String(Arc::new(text.to_owned()));
    let function = match node.format.as_deref() {
        Some("byte") => {
            use base64::Engine;
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            return bytes.map_or_else(|_| plain(), |bytes| Value::Bytes(Arc::new(bytes)));
        }
        Some("date-time") => "timestamp",
        Some("duration") => "duration",
        _ => return plain(),
    };
    parsed(function, text).unwrap_or_else(plain)
}

/// What CEL's own function makes of the text, so that both read it alike.
fn parsed(function: &str, text: &str) -> Option<Value> {
    let call: Tree = Parser::new().parse(&format!("{function}(text)")).ok()?;
    let mut context = super::FUNCTIONS.new_inner_scope();
    context.add_variable_from_value("text", Value::String(Arc::new(text.to_owned())));
    context.resolve(&call).ok()
}

/// A field's name as expressions write it.
pub(super) fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// The size of the largest collection in a value: what a loop can run over.
pub(super) fn largest(value: &Value) -> u64 {
    match value {
        Value::List(items) => {
            let below = items.iter().map(largest).max().unwrap_or(0);
            below.max(items.len() as u64)
        }
        Value::Map(map) => {
            let below = map.map.values().map(largest).max().unwrap_or(0);
            below.max(map.map.len() as u64)
        }
        _ => 1,
    }
}
