//! The keywords of a schema that hold plain data: types, bounds, lists of names, CEL rules.

use serde_json::{Map, Value};

use super::{LoadError, SchemaPosition};
use crate::schema::{
    cel::Expression,
    node::{Kind, Limits, Pattern, Rule},
    pattern,
};

pub(super) fn kind_of(
    object: &Map<String, Value>,
    place: &SchemaPosition,
) -> Result<Option<Kind>, LoadError> {
    Ok(match string_of(object, "type", place)?.as_deref() {
        None | Some("") => None,
        Some("object") => Some(Kind::Object),
        Some("array") => Some(Kind::Array),
        Some("string") => Some(Kind::String),
        Some("integer") => Some(Kind::Integer),
        Some("number") => Some(Kind::Number),
        Some("boolean") => Some(Kind::Boolean),
        Some(other) => {
            return Err(place.malformed("type", format!("unknown type {other:?}")));
        }
    })
}

pub(super) fn flag(object: &Map<String, Value>, keyword: &str) -> bool {
    object.get(keyword) == Some(&Value::Bool(true))
}

pub(super) fn string_of(
    object: &Map<String, Value>,
    keyword: &str,
    place: &SchemaPosition,
) -> Result<Option<String>, LoadError> {
    match object.get(keyword) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(place.malformed(keyword, "must be a string")),
    }
}

pub(super) fn strings_of(
    object: &Map<String, Value>,
    keyword: &str,
    place: &SchemaPosition,
) -> Result<Vec<String>, LoadError> {
    let malformed = || place.malformed(keyword, "must be a list of strings");
    match object.get(keyword) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            list.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(malformed)).collect()
        }
        Some(_) => Err(malformed()),
    }
}

pub(super) fn limits_of(object: &Map<String, Value>, place: &SchemaPosition) -> Result<Limits, LoadError> {
    let number = |keyword: &str| match object.get(keyword) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.clone())),
        Some(_) => Err(place.malformed(keyword, "must be a number")),
    };
    let count = |keyword: &str| match object.get(keyword) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) => Ok(Some(count)),
            None => Err(place.malformed(keyword, "must be a whole number of at least 0")),
        },
    };
    Ok(Limits {
        maximum: number("maximum")?,
        exclusive_maximum: flag(object, "exclusiveMaximum"),
        minimum: number("minimum")?,
        exclusive_minimum: flag(object, "exclusiveMinimum"),
        multiple_of: number("multipleOf")?,
        max_length: count("maxLength")?,
        min_length: count("minLength")?,
        pattern: string_of(object, "pattern", place)?.filter(|text| !text.is_empty()).map(|text| {
            let compiled = pattern::compile(&text).map_err(|error| error.to_string());
            Pattern { text, compiled }
        }),
        max_items: count("maxItems")?,
        min_items: count("minItems")?,
        unique_items: flag(object, "uniqueItems"),
        max_properties: count("maxProperties")?,
        min_properties: count("minProperties")?,
        enumeration: match object.get("enum") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values.clone(),
            Some(_) => return Err(place.malformed("enum", "must be a list")),
        },
    })
}

pub(super) fn rules_of(object: &Map<String, Value>, place: &SchemaPosition) -> Result<Vec<Rule>, LoadError> {
    const KEYWORD: &str = "x-kubernetes-validations";
    let list = match object.get(KEYWORD) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(place.malformed(KEYWORD, "must be a list of rules")),
    };
    list.iter()
        .map(|entry| {
            let entry =
                entry.as_object().ok_or_else(|| place.malformed(KEYWORD, "a rule must be an object"))?;
            let expression = string_of(entry, "rule", place)?
                .ok_or_else(|| place.malformed(KEYWORD, "a rule must have a \"rule\""))?;
            let message_expression = string_of(entry, "messageExpression", place)?;
            Ok(Rule {
                program: Expression::compile(&expression),
                expression,
                message: string_of(entry, "message", place)?,
                message_program: message_expression.and_then(|text| Expression::compile(&text).ok()),
                reason: string_of(entry, "reason", place)?,
                field_path: string_of(entry, "fieldPath", place)?,
                optional_old_self: entry.get("optionalOldSelf").and_then(Value::as_bool),
            })
        })
        .collect()
}
