//! Whether an intent that was applied before is still in force, so that no request is needed.
//!
//! Enters: an intent, the live object, and the set of fields that we own on it. Leaves: yes or no. That the intent
//! is the one that was applied is shown by its [digest](crate::wire::digest), not here. What the server made of its values
//! is not looked at either: the server keeps the books. Whoever changes or removes a field takes it out of our set,
//! so that a set which still holds every field of the intent says that nobody has touched any.
//!
//! # Guarantees
//!
//! "Yes" for the intent that was applied last means that an apply would change nothing: we own all of its fields and
//! no other, and its keyed lists are in its order. "No" costs one request and is never wrong. The set itself tells
//! the shape of every list (keyed, set or atomic), so that no schema is needed.

use serde_json::{Map, Value};

use crate::wire::{FieldSet, ItemKey, same_scalar};

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

/// How what is owned as a whole is compared.
#[derive(Clone, Copy)]
enum Leaf {
    /// Not at all: who changes it takes it from us.
    Untouched,
    /// By its value.
    Equal,
}

/// Whether `live` has exactly the values of a part of a status, and `owned` is the set of its fields.
///
/// A status bears no digest of what was applied last, so that its values have to tell.
pub(super) fn holds_exactly(intent: &Value, live: &Value, owned: &FieldSet) -> bool {
    let Value::Object(intent) = intent else { return false };
    fields_held(intent, live, owned, &[], Leaf::Equal)
}

/// Whether `owned` is the set of fields that the intent has, and `live` has its lists in the same order.
pub(super) fn holds(intent: &Value, live: &Value, owned: &FieldSet) -> bool {
    let Value::Object(intent) = intent else { return false };
    let (nothing, empty) = (FieldSet::default(), Map::new());
    let (wanted, there) = (intent.get("metadata").unwrap_or(&Value::Null), &live["metadata"]);
    fields_held(intent, live, owned, &["apiVersion", "kind", "metadata"], Leaf::Untouched)
        && fields_held(
            wanted.as_object().unwrap_or(&empty),
            there,
            owned.field("metadata").unwrap_or(&nothing),
            &UNOWNED_METADATA,
            Leaf::Untouched,
        )
        && owners_held(wanted, there)
}

/// Whether the live object has the wanted owner references. They are not in the set, where their uids would make that
/// of every object another one.
fn owners_held(wanted: &Value, live: &Value) -> bool {
    let owners = |meta: &Value| meta["ownerReferences"].as_array().cloned().unwrap_or_default();
    let there = owners(live);
    owners(wanted).iter().all(|owner| there.contains(owner))
}

/// Compares the fields of an object both ways: what is wanted is ours, what is ours is wanted.
fn fields_held(
    intent: &Map<String, Value>,
    live: &Value,
    owned: &FieldSet,
    skip: &[&str],
    leaf: Leaf,
) -> bool {
    let skipped = |name: &str| skip.contains(&name);
    let ours = |(name, value): (&String, &Value)| {
        owned.field(name).is_some_and(|below| value_held(value, &live[name.as_str()], below, leaf))
    };
    intent.iter().filter(|(name, _)| !skipped(name)).all(ours)
        && owned.fields().all(|name| skipped(name) || intent.contains_key(name))
}

fn value_held(intent: &Value, live: &Value, owned: &FieldSet, leaf: Leaf) -> bool {
    if owned.is_leaf() {
        // What is owned as a whole was changed by nobody, or it would not be.
        return matches!(leaf, Leaf::Untouched) || same_scalar(intent, live);
    }
    match intent {
        Value::Object(intent) => fields_held(intent, live, owned, &[], leaf),
        Value::Array(intent) => items_held(intent, live, owned, leaf),
        _ => false,
    }
}

/// Compares a keyed list or a set: each wanted item is one that we own, we own no more than those, and they follow
/// each other as is wanted. The order is in no set: it may matter, and others can change it.
fn items_held(intent: &[Value], live: &Value, owned: &FieldSet, leaf: Leaf) -> bool {
    let Some(items) = owned_items(intent, owned) else { return false };
    let live = live.as_array().map_or(&[][..], Vec::as_slice);
    let mut behind = 0;
    intent.iter().zip(items).all(|(item, (key, below))| {
        // What is ours and not to be seen has been left out of the cache.
        let Some(at) = live.iter().position(|candidate| key.is_of(candidate)) else {
            return value_held(item, &Value::Null, below, leaf);
        };
        let in_order = at >= behind;
        behind = at + 1;
        in_order && value_held(item, &live[at], below, leaf)
    })
}

/// The owned item of each wanted one; `None` unless there is exactly one for each.
fn owned_items<'a>(intent: &[Value], owned: &'a FieldSet) -> Option<Vec<(ItemKey, &'a FieldSet)>> {
    let mut items: Vec<_> = owned.items().map(Some).collect();
    if items.len() != intent.len() {
        return None;
    }
    let mut found: Vec<Option<_>> = intent.iter().map(|_| None).collect();
    // Items that say all of their key come first. What the others leave out was filled in, and may be the key of one
    // that says it: of the ports 53/UDP and 53 the second is 53/TCP.
    for complete in [true, false] {
        for (item, found) in intent.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let matches = |key: &ItemKey| if complete { key.is_of(item) } else { key.may_be_of(item) };
            let mut candidates =
                items.iter_mut().filter(|one| one.as_ref().is_some_and(|(key, _)| matches(key)));
            match (candidates.next(), candidates.next()) {
                (Some(one), None) => *found = one.take(),
                _ if complete => {}
                _ => return None,
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
#[path = "held/tests.rs"]
mod tests;
