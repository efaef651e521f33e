//! What the cells of rows are made of.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{format, text};

/// The age of an object.
pub(crate) fn age(object: &Value, now: Timestamp) -> Value {
    json!(format::age(text(object, "/metadata/creationTimestamp"), now))
}

pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

pub(crate) fn name(object: &Value) -> Value {
    json!(text(object, "/metadata/name"))
}

pub(crate) fn or(text: &str, other: &str) -> Value {
    json!(if text.is_empty() { other } else { text })
}

pub(crate) fn or_none(text: &str) -> Value {
    or(text, "<none>")
}

/// A value without quotes.
pub(crate) fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

pub(crate) fn joined(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(",")
}

/// Labels as one text, or `<none>`.
pub(crate) fn labels(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    let text = joined(pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())));
    if text.is_empty() { "<none>".into() } else { text }
}

/// A structured selector as one text.
pub(crate) fn selector(selector: Option<&Value>) -> String {
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
pub(crate) fn some_of(mut values: Vec<String>, most: usize, between: &str) -> String {
    let all = values.len();
    values.truncate(most);
    let shown = values.join(between);
    if all > most { format!("{shown} + {} more...", all - most) } else { shown }
}

/// Where the load balancer of a Service or an Ingress can be reached.
pub(crate) fn load_balancers(object: &Value) -> Vec<String> {
    let places = list(object, "/status/loadBalancer/ingress").iter().map(|one| match text(one, "/ip") {
        "" => text(one, "/hostname").to_owned(),
        address => address.to_owned(),
    });
    let mut places: Vec<String> = places.filter(|one| !one.is_empty()).collect();
    places.sort();
    places.dedup();
    places
}
