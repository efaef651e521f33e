//! Structural schemas as JSON: small readers, and the normal form in which two schemas that accept the same objects look
//! the same.

use serde_json::{Map, Value};

/// One schema: the object behind `openAPIV3Schema`, a property, `items` or `additionalProperties`.
pub type Schema = Map<String, Value>;

pub(crate) fn text<'s>(schema: &'s Schema, keyword: &str) -> &'s str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn flag(schema: &Schema, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

pub(crate) fn child<'s>(schema: &'s Schema, keyword: &str) -> Option<&'s Schema> {
    schema.get(keyword).and_then(Value::as_object)
}

/// The properties in the order of their names, whatever order the map has.
pub(crate) fn properties(schema: &Schema) -> Vec<(&str, &Schema)> {
    let mut properties: Vec<_> = child(schema, "properties")
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| Some((name.as_str(), property.as_object()?)))
        .collect();
    properties.sort_by_key(|(name, _)| *name);
    properties
}

pub(crate) fn strings<'s>(schema: &'s Schema, keyword: &str) -> Vec<&'s str> {
    let items = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

pub(crate) fn items<'s>(schema: &'s Schema, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The default, where there is one: `null` is none.
pub(crate) fn default(schema: &Schema) -> Option<&Value> {
    schema.get("default").filter(|default| !default.is_null())
}

pub(crate) fn is_int_or_string(schema: &Schema) -> bool {
    flag(schema, "x-kubernetes-int-or-string") || text(schema, "format") == "int-or-string"
}

pub(crate) fn preserves(schema: &Schema) -> bool {
    flag(schema, "x-kubernetes-preserve-unknown-fields")
}

/// The schema without what accepts and rejects nothing (descriptions, examples) and without what is said in one of several
/// ways: an integer is 64 bits wide unless it says otherwise, a field with a default is never missing, lists are atomic
/// and maps granular unless they say otherwise.
pub fn normal(schema: &Schema) -> Schema {
    let mut normal = Schema::new();
    for (keyword, value) in schema {
        let value = match (keyword.as_str(), value) {
            ("description" | "title" | "example" | "externalDocs" | "id" | "$schema", _)
            | (_, Value::Null) => continue,
            ("properties", Value::Object(properties)) => {
                let normal = |(name, property): (&String, &Value)| (name.clone(), normal_value(property));
                Value::Object(properties.iter().map(normal).collect())
            }
            ("items" | "additionalProperties" | "not", value) => normal_value(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter().map(normal_value).collect()
            }
            ("required", Value::Array(names)) => required(schema, names),
            ("x-kubernetes-validations", Value::Array(rules)) => rules.iter().map(rule).collect(),
            (_, value) => plain(value),
        };
        normal.insert(keyword.clone(), value);
    }
    let kind = text(schema, "type").to_owned();
    normal.retain(|keyword, value| match keyword.as_str() {
        "format" => !matches!(
            (kind.as_str(), value.as_str()),
            ("integer", Some("int64")) | ("number", Some("double"))
        ),
        "x-kubernetes-list-type" => value != "atomic",
        "x-kubernetes-map-type" => value != "granular",
        "properties" => value.as_object().is_none_or(|properties| !properties.is_empty()),
        "required" | "x-kubernetes-validations" => value.as_array().is_none_or(|items| !items.is_empty()),
        "default" | "enum" => true,
        _ => *value != Value::Bool(false) || keyword == "additionalProperties",
    });
    if is_int_or_string(schema) {
        normal.remove("type");
        normal.remove("format");
        normal.insert("x-kubernetes-int-or-string".to_owned(), Value::Bool(true));
        for keyword in ["anyOf", "allOf"] {
            if says_int_or_string(normal.get(keyword)) {
                normal.remove(keyword);
            }
        }
    }
    normal
}

fn normal_value(value: &Value) -> Value {
    value.as_object().map_or_else(|| value.clone(), |schema| Value::Object(normal(schema)))
}

/// `anyOf: [{type: integer}, {type: string}]`, alone or inside of `allOf`: `x-kubernetes-int-or-string` says that too.
pub(crate) fn says_int_or_string(value: Option<&Value>) -> bool {
    let Some(schemas) = value.and_then(Value::as_array) else { return false };
    let kinds: Vec<&str> = schemas.iter().map(|schema| schema["type"].as_str().unwrap_or_default()).collect();
    let plain = schemas.iter().all(|schema| schema.as_object().is_some_and(|schema| schema.len() == 1));
    match schemas.as_slice() {
        [only] => plain && says_int_or_string(only.get("anyOf")),
        _ => plain && (kinds == ["integer", "string"] || kinds == ["string", "integer"]),
    }
}

fn required(schema: &Schema, names: &[Value]) -> Value {
    let has_default = |name: &&Value| {
        let property = name.as_str().and_then(|name| child(schema, "properties")?.get(name)?.as_object());
        property.is_some_and(|property| default(property).is_some())
    };
    let mut names: Vec<Value> = names.iter().filter(|name| !has_default(name)).cloned().collect();
    names.sort_by_key(ToString::to_string);
    Value::Array(names)
}

fn rule(rule: &Value) -> Value {
    let mut rule = rule.clone();
    if let Value::Object(rule) = &mut rule {
        rule.retain(|key, value| {
            !(value.is_null()
                || (key == "reason" && value == "FieldValueInvalid")
                || (key == "optionalOldSelf" && *value == Value::Bool(false)))
        });
    }
    rule
}

/// A value in which a whole number is an integer, however it was written.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::float_cmp, reason = "a whole number has no fraction at all")]
            Some(float) if number.is_f64() && float.trunc() == float && float.abs() < 1e15 => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        _ => value.clone(),
    }
}
