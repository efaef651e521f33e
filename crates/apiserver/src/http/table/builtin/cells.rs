//! What cells are made of.

use serde_json::{Value, json};

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn name(object: &Value) -> Value {
    json!(text(object, "/metadata/name"))
}

pub(super) fn or(text: &str, other: &str) -> Value {
    json!(if text.is_empty() { other } else { text })
}

pub(super) fn or_none(text: &str) -> Value {
    or(text, "<none>")
}

/// A value without quotes.
pub(super) fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

pub(super) fn joined(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(",")
}

/// Labels as one text, or `<none>`.
pub(super) fn labels(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    let text = joined(pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())));
    if text.is_empty() { "<none>".into() } else { text }
}

/// A structured selector as one text.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return "<none>".into() };
    let pairs = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(String, String)> = pairs
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = list(expression, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let shown = match text(expression, "/operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), shown));
    }
    parts.sort();
    let text = joined(parts.into_iter().map(|(_, shown)| shown));
    if text.is_empty() { "<none>".into() } else { text }
}

/// The first `most` of a list, and how many more there are.
pub(super) fn some_of(mut values: Vec<String>, most: usize, between: &str) -> String {
    let all = values.len();
    values.truncate(most);
    let shown = values.join(between);
    if all > most { format!("{shown} + {} more...", all - most) } else { shown }
}
