//! JSON merge patches: the smallest one that turns one value into another, and what becomes of a value; and changes
//! made to a value that somebody else has changed meanwhile.

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

/// What `current` becomes by the changes that lead from `base` to `new`: what somebody else changed between `base` and
/// `current` stays, unless both changed the same, which is then `new`'s.
///
/// The elements of a list are told apart by their `type`, as conditions are, or by their `name`; other lists are one
/// value.
pub(crate) fn rebase(base: &Value, new: &Value, current: &Value) -> Value {
    if same(base, current) {
        return new.clone();
    }
    if same(base, new) {
        return current.clone();
    }
    match (new, current) {
        (Value::Object(new), Value::Object(current)) => {
            Value::Object(rebase_objects(base.as_object().unwrap_or(&Map::new()), new, current))
        }
        (Value::Array(new), Value::Array(current)) => {
            let base = base.as_array().map(Vec::as_slice).unwrap_or_default();
            let keyed = |key: &str| Some((by_key(base, key)?, by_key(new, key)?, by_key(current, key)?));
            match ["type", "name"].into_iter().find_map(keyed) {
                Some((base, new, current)) => Value::Array(rebase_lists(&base, &new, &current)),
                None => Value::Array(new.clone()),
            }
        }
        (new, _) => new.clone(),
    }
}

fn rebase_objects(
    base: &Map<String, Value>,
    new: &Map<String, Value>,
    current: &Map<String, Value>,
) -> Map<String, Value> {
    let of = |map: &Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or_default();
    let mut names: Vec<&String> =
        current.keys().chain(new.keys().filter(|name| !current.contains_key(*name))).collect();
    names.dedup();
    let rebased = names
        .into_iter()
        .map(|name| (name.clone(), rebase(&of(base, name), &of(new, name), &of(current, name))));
    rebased.filter(|(_, value)| !value.is_null()).collect()
}

type Keyed<'a> = Vec<(&'a str, &'a Value)>;

/// The elements of a list by a field of theirs; `None` if it does not tell them apart.
fn by_key<'a>(items: &'a [Value], key: &str) -> Option<Keyed<'a>> {
    let keyed: Keyed<'_> =
        items.iter().map(|item| Some((item.get(key)?.as_str()?, item))).collect::<Option<_>>()?;
    let names: std::collections::BTreeSet<&str> = keyed.iter().map(|(name, _)| *name).collect();
    (names.len() == keyed.len()).then_some(keyed)
}

/// Those of `current` in their order, then those that are new.
fn rebase_lists(base: &Keyed<'_>, new: &Keyed<'_>, current: &Keyed<'_>) -> Vec<Value> {
    let of = |list: &Keyed<'_>, name: &str| {
        list.iter().find(|(other, _)| *other == name).map_or(Value::Null, |(_, item)| (*item).clone())
    };
    let added = new.iter().filter(|(name, _)| current.iter().all(|(other, _)| other != name));
    let names = current.iter().chain(added).map(|(name, _)| *name);
    let rebased = names.map(|name| rebase(&of(base, name), &of(new, name), &of(current, name)));
    rebased.filter(|item| !item.is_null()).collect()
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

    #[test]
    fn what_somebody_else_changed_meanwhile_stays() {
        let base = json!({"ready": 1, "old": 1, "conditions": [{"type": "A", "status": "False"}]});
        let new = json!({"ready": 2, "conditions": [{"type": "A", "status": "True"}, {"type": "C"}]});
        let current = json!({
            "ready": 1, "old": 1, "theirs": 7,
            "conditions": [{"type": "B"}, {"type": "A", "status": "False", "message": "m"}],
        });
        let expected = json!({
            "ready": 2, "theirs": 7,
            "conditions": [{"type": "B"}, {"type": "A", "status": "True", "message": "m"}, {"type": "C"}],
        });
        assert_eq!(rebase(&base, &new, &current), expected);
    }

    #[test]
    fn who_begins_a_list_of_conditions_does_not_end_somebody_elses() {
        let (a, b) = (json!({"c": [{"type": "A"}]}), json!({"c": [{"type": "B"}]}));
        assert_eq!(rebase(&json!({}), &a, &b), json!({"c": [{"type": "B"}, {"type": "A"}]}));
        let plain = rebase(&json!({"l": []}), &json!({"l": [1]}), &json!({"l": [2]}));
        assert_eq!(plain, json!({"l": [1]}), "what cannot be told apart is one value");
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
        fn without_a_second_writer_the_new_value_is_the_result((base, new) in (values(), values())) {
            prop_assert_eq!(rebase(&base, &new, &base), new.clone());
            prop_assert_eq!(rebase(&base, &new, &new), new);
        }

        #[test]
        fn who_changes_nothing_takes_nothing_away((base, current) in (values(), values())) {
            prop_assert_eq!(rebase(&base, &base, &current), current);
        }

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
