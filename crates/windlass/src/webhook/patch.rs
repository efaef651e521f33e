//! From a changed object to the JSON patch that an admission response carries.
//!
//! The object that arrived may hold more than its type here knows: fields of a newer version of the operator.
//! And a type may write more than arrived: nulls and defaults. So the patch is not the difference between what
//! arrived and what the type writes now, which would lose the one and add the other; it is the difference that
//! the defaulter made, carried over to what arrived.

use json_patch::Patch;
use serde_json::{Map, Value};

/// The patch that makes the change from `before` to `after` on `live`; `None` if nothing changed.
pub(super) fn between(live: &Value, before: &Value, after: &Value) -> Option<Patch> {
    let wanted = carried(live, before, after);
    let patch = json_patch::diff(live, &wanted);
    (!patch.0.is_empty()).then_some(patch)
}

/// `live` with the change from `before` to `after` made on it.
fn carried(live: &Value, before: &Value, after: &Value) -> Value {
    match (live, before, after) {
        _ if before == after => live.clone(),
        (Value::Object(live), Value::Object(before), Value::Object(after)) => {
            Value::Object(carried_object(live, before, after))
        }
        (Value::Array(live), Value::Array(before), Value::Array(after)) if live.len() == before.len() => {
            Value::Array(carried_list(live, before, after))
        }
        _ => after.clone(),
    }
}

fn carried_object(
    live: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut wanted = live.clone();
    for (name, old) in before {
        if !old.is_null() && after.get(name).is_none_or(Value::is_null) {
            wanted.remove(name);
        }
    }
    for (name, new) in after {
        let old = before.get(name).unwrap_or(&Value::Null);
        if new.is_null() || old == new {
            continue;
        }
        let value = live.get(name).map_or_else(|| new.clone(), |live| carried(live, old, new));
        wanted.insert(name.clone(), value);
    }
    wanted
}

/// Elements keep what this process does not know of as long as they keep their place.
fn carried_list(live: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let carry = |(index, new): (usize, &Value)| match (live.get(index), before.get(index)) {
        (Some(live), Some(old)) => carried(live, old, new),
        _ => new.clone(),
    };
    after.iter().enumerate().map(carry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(live: &Value, before: &Value, after: &Value) -> Value {
        let mut patched = live.clone();
        if let Some(patch) = between(live, before, after) {
            json_patch::patch(&mut patched, &patch).unwrap();
        }
        patched
    }

    #[test]
    fn what_the_type_does_not_know_survives() {
        let live = json!({"spec": {"newer": 1, "list": [{"a": 1, "newer": 2}]}});
        let before = json!({"spec": {"list": [{"a": 1}]}});
        let after = json!({"spec": {"list": [{"a": 5}, {"a": 7}], "size": 3}});
        assert_eq!(
            patched(&live, &before, &after),
            json!({"spec": {"newer": 1, "size": 3, "list": [{"a": 5, "newer": 2}, {"a": 7}]}})
        );
    }

    #[test]
    fn what_the_type_merely_writes_is_not_added() {
        let live = json!({"spec": {}});
        let before = json!({"spec": {"size": 1, "note": null}, "status": null});
        let after = json!({"spec": {"size": 1, "note": "x"}, "status": null});
        assert_eq!(patched(&live, &before, &after), json!({"spec": {"note": "x"}}));
        assert!(between(&live, &before, &before).is_none());
    }

    #[test]
    fn a_removed_field_is_removed() {
        let live = json!({"spec": {"a": 1, "b": 2}});
        assert_eq!(patched(&live, &live, &json!({"spec": {"b": 2, "a": null}})), json!({"spec": {"b": 2}}));
    }
}
