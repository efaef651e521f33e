//! The order of a merged list: what the patch names as the patch orders it, the rest where it
//! stood in the live list.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{DIRECTIVE, PatchError};

/// What tells items apart: the merge key's value, or the item itself.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

/// Where the items of a list stand, by what tells them apart; of several that are alike, the first.
pub(super) struct Places<'k> {
    key: Option<&'k str>,
    by_identity: BTreeMap<String, usize>,
    count: usize,
}

impl<'k> Places<'k> {
    pub(super) fn of(items: &[Value], key: Option<&'k str>) -> Self {
        let mut places = Self { key, by_identity: BTreeMap::new(), count: 0 };
        for item in items {
            match identity(item, key) {
                Some(identity) => places.add(identity),
                None => places.count += 1,
            }
        }
        places
    }

    /// One more item, at the end.
    pub(super) fn add(&mut self, identity: &Value) {
        self.by_identity.entry(identity.to_string()).or_insert(self.count);
        self.count += 1;
    }

    pub(super) fn of_value(&self, identity: &Value) -> Option<usize> {
        self.by_identity.get(&identity.to_string()).copied()
    }

    fn of_item(&self, item: &Value) -> Option<usize> {
        self.of_value(identity(item, self.key)?)
    }
}

/// Puts `merged` in order: `wanted` decides over its items, `live` over all others.
pub(super) fn arrange(merged: Vec<Value>, wanted: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let (wanted, live) = (Places::of(wanted, key), Places::of(live, key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| wanted.of_item(item).is_some());
    named.sort_by_cached_key(|item| wanted.of_item(item));
    // Items that the live list does not have stay behind those it has.
    others.sort_by_cached_key(|item| live.of_item(item).unwrap_or(usize::MAX));
    interleave(others, named, &live)
}

/// Sets each of `others` before the first of `named` that stood behind it.
fn interleave(others: Vec<Value>, named: Vec<Value>, live: &Places<'_>) -> Vec<Value> {
    let mut all = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    for next in named {
        let behind = live.of_item(&next);
        while let Some(other) = others.peek() {
            let before = match (live.of_item(other), behind) {
                (Some(left), Some(right)) => left < right,
                _ => false,
            };
            if !before {
                break;
            }
            all.extend(others.next());
        }
        all.push(next);
    }
    all.extend(others);
    all
}

/// Checks that the patch's items are in the order which it asks for itself.
pub(super) fn check(patch: &[Value], wanted: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    let mut rest = wanted.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let identity_of_item = identity(item, key);
        if let (Some(key), None) = (key, identity_of_item) {
            return Err(PatchError::NoMergeKey { map: item.to_string(), key: key.to_owned() });
        }
        if !rest.any(|other| identity(other, key) == identity_of_item) {
            return Err(PatchError::OrderMismatch {
                patch: Value::Array(patch.to_vec()).to_string(),
                order: Value::Array(wanted.to_vec()).to_string(),
            });
        }
    }
    Ok(())
}
