//! JSON merge patches: the smallest one that turns one value into another, and what becomes of a value.

use serde_json::{Map, Value};

/// The merge patch that turns `old` into `new`; `None` if they are equal. Null fields count as absent.
pub(crate) fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let patch = diff_objects(old, new);
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (old, new) if same(old, new) => None,
        (_, new) => Some(without_nulls(new)),
    }
}

fn diff_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in old {
        if !value.is_null() && new.get(name).is_none_or(Value::is_null) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, value) in new {
        if value.is_null() {
            continue;
        }
        let change = match old.get(name) {
            None | Some(Value::Null) => Some(without_nulls(value)),
            Some(old) => diff(old, value),
        };
        if let Some(change) = change {
            patch.insert(name.clone(), change);
        }
    }
    patch
}

fn same(old: &Value, new: &Value) -> bool {
    old == new || without_nulls(old) == without_nulls(new)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Applies a merge patch, as RFC 7386 says.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            apply(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_need_no_patch() {
        assert_eq!(diff(&json!({"a": 1, "b": null}), &json!({"a": 1})), None);
        assert_eq!(diff(&json!({"a": [{"b": null}]}), &json!({"a": [{}]})), None);
    }

    #[test]
    fn removed_fields_become_null_and_lists_are_replaced() {
        let patch =
            diff(&json!({"a": 1, "l": [1], "o": {"x": 1, "y": 2}}), &json!({"l": [1, 2], "o": {"x": 1}}));
        assert_eq!(patch, Some(json!({"a": null, "l": [1, 2], "o": {"y": null}})));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..4_i64).prop_map(Value::from)];
        let inner = leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn the_patch_turns_the_old_value_into_the_new_one((old, new) in (values(), values())) {
            let mut patched = old.clone();
            if let Some(patch) = diff(&old, &new) {
                apply(&mut patched, &patch);
            }
            prop_assert_eq!(patched, new);
        }
    }
}
