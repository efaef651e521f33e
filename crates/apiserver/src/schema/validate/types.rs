//! The type of a value, and its format when that names a type.

use serde_json::{Number, Value};

use crate::schema::{
    FieldError,
    node::{Kind, Node},
};

/// The types that a node allows.
fn allowed(node: &Node) -> Vec<&'static str> {
    if node.int_or_string {
        return vec!["integer", "string"];
    }
    node.kind.map(Kind::as_str).into_iter().collect()
}

/// Whether the node says anything about types.
pub(super) fn applies(node: &Node) -> bool {
    node.kind.is_some() || node.int_or_string
}

/// The schema's word for the type of a value, and for the format that Go holds it in.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// The format, where it means something for the type.
pub(super) fn format_of(node: &Node) -> Option<&str> {
    let format = node.format.as_deref()?;
    let known = match node.kind {
        None | Some(Kind::String) => super::formats::is_known(format),
        Some(Kind::Integer) => matches!(format, "int32" | "int64"),
        Some(Kind::Number) => matches!(format, "float" | "double"),
        Some(_) => false,
    };
    known.then_some(format)
}

pub(super) fn check(node: &Node, value: &Value, path: &str) -> Option<FieldError> {
    let allowed = allowed(node);
    if allowed.is_empty() {
        return None;
    }
    let wrong = |expected: &str, found: &str| {
        let text = format!("{path} in body must be of type {expected}: {found:?}");
        Some(FieldError::type_invalid(path, &Value::String(found.to_owned()), &text))
    };
    if value.is_null() {
        return if node.nullable { None } else { wrong(&allowed.join(","), "null") };
    }
    let (found, held_as) = type_of(value);
    let numeric = allowed.contains(&"number") || allowed.contains(&"integer");
    let whole_float = matches!(value, Value::Number(number) if found == "number" && is_whole(number));
    let fits = allowed.contains(&found)
        || (whole_float && allowed.contains(&"integer"))
        || (found == "integer" && allowed.contains(&"number"));
    let textual = value.is_string() || value.is_array();
    match format_of(node) {
        Some(format) if !textual && !fits => wrong(format, held_as),
        Some(_) if textual && !numeric => None,
        _ if fits => None,
        _ => wrong(&allowed.join(","), found),
    }
}

fn is_whole(number: &Number) -> bool {
    number.as_f64().is_some_and(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0)
}
