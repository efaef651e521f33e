//! Whether a live object already is what we want, so that no request is needed.
//!
//! Enters: an intent, the live object and the set of fields that we own on it. Leaves: yes or no. The owned set
//! tells the shape of every list (keyed, set or atomic), so that no schema is needed.
//!
//! # Guarantees
//!
//! "Yes" means that an apply would change nothing: every field of the intent has its value (quantities and
//! omitted zero values compared by meaning), we own every one of them, and we own no other. "No" costs one
//! request and is never wrong.

use serde_json::{Map, Value};

use super::{
    fields::{FieldSet, ItemKey},
    quantity,
};

/// Metadata that a manager never owns, or that is checked apart.
const UNOWNED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "selfLink",
];

/// Whether `live` holds `intent`, and `owned` is exactly the set of fields that the intent has.
pub(crate) fn holds(intent: &Value, live: &Value, owned: &FieldSet) -> bool {
    let (Value::Object(intent), Value::Object(live)) = (intent, live) else { return false };
    let (nothing, empty) = (FieldSet::default(), Map::new());
    fields_held(intent, live, owned, &["apiVersion", "kind", "metadata"])
        && fields_held(
            intent.get("metadata").and_then(Value::as_object).unwrap_or(&empty),
            live.get("metadata").and_then(Value::as_object).unwrap_or(&empty),
            owned.field("metadata").unwrap_or(&nothing),
            &UNOWNED_METADATA,
        )
}

/// Compares the fields of an object both ways: what is wanted is there and ours, what is ours is wanted.
fn fields_held(
    intent: &Map<String, Value>,
    live: &Map<String, Value>,
    owned: &FieldSet,
    skip: &[&str],
) -> bool {
    let compared = |(name, value): (&String, &Value)| match owned.field(name) {
        Some(below) => held(name, value, live.get(name), below),
        None => is_empty_container(value) && value_held(name, value, live.get(name)),
    };
    let skipped = |name: &str| skip.contains(&name);
    intent.iter().filter(|(name, _)| !skipped(name)).all(compared)
        && owned.fields().all(|name| skipped(name) || intent.contains_key(name))
}

fn held(name: &str, intent: &Value, live: Option<&Value>, owned: &FieldSet) -> bool {
    if owned.is_leaf() {
        return value_held(name, intent, live);
    }
    match (intent, live) {
        (Value::Object(intent), Some(Value::Object(live))) => {
            // The name of a map of quantities (`limits`) also describes the values in it.
            if quantity::is_map(name) {
                let same = |(k, v): (&String, &Value)| value_held(name, v, live.get(k));
                return intent.iter().all(same) && covers_exactly(intent, owned);
            }
            fields_held(intent, live, owned, &[])
        }
        (Value::Array(intent), Some(Value::Array(live))) => items_held(name, intent, live, owned),
        _ => false,
    }
}

fn covers_exactly(intent: &Map<String, Value>, owned: &FieldSet) -> bool {
    intent.keys().all(|name| owned.field(name).is_some())
        && owned.fields().all(|name| intent.contains_key(name))
}

/// Compares a keyed list or a set: each wanted item is one that we own, and we own no more than those.
fn items_held(name: &str, intent: &[Value], live: &[Value], owned: &FieldSet) -> bool {
    let owned_items: Vec<(ItemKey, &FieldSet)> = owned.items().collect();
    if owned_items.len() != intent.len() {
        return false;
    }
    intent.iter().all(|item| {
        let mut candidates = owned_items.iter().filter(|(key, _)| key.matches(item));
        let (Some((key, below)), None) = (candidates.next(), candidates.next()) else { return false };
        let live_item = live.iter().find(|candidate| key.matches(candidate));
        held(name, item, live_item, below)
    })
}

/// Whether `live` holds the value, whoever owns it. Fields that only the live value has were filled in.
fn value_held(name: &str, intent: &Value, live: Option<&Value>) -> bool {
    let Some(live) = live else { return is_zero(intent) };
    match (intent, live) {
        (Value::Object(intent), Value::Object(live)) => intent.iter().all(|(key, value)| {
            let describing = if quantity::is_map(name) { name } else { key };
            value_held(describing, value, live.get(key))
        }),
        (Value::Array(intent), Value::Array(live)) => {
            intent.len() == live.len() && intent.iter().zip(live).all(|(a, b)| value_held(name, a, Some(b)))
        }
        (Value::String(a), Value::String(b)) if a != b => quantity::names(name) && quantity::same(a, b),
        (intent, live) => same_scalar(intent, live),
    }
}

/// Equality of scalars, with numbers compared by value.
pub(crate) fn same_scalar(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// Values that Go's `omitempty` leaves out, so that a live object without the field holds them.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
    }
}

fn is_empty_container(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "held/tests.rs"]
mod tests;
