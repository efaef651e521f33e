//! The order of a merged list: what the patch names as the patch orders it, the rest where it
//! stood in the live list.

use serde_json::Value;

use super::{DIRECTIVE, PatchError};

/// What tells items apart: the merge key's value, or the item itself.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn place(items: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, key)?;
    items.iter().position(|other| identity(other, key) == Some(wanted))
}

/// Puts `merged` in order: `wanted` decides over its items, `live` over all others.
pub(super) fn arrange(merged: Vec<Value>, wanted: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(wanted, item, key).is_some());
    named.sort_by_key(|item| place(wanted, item, key));
    // Items that the live list does not have stay behind those it has.
    others.sort_by_key(|item| place(live, item, key).unwrap_or(usize::MAX));
    interleave(others, named, live, key)
}

/// Sets each of `others` before the first of `named` that stood behind it.
fn interleave(others: Vec<Value>, named: Vec<Value>, live: &[Value], key: Option<&str>) -> Vec<Value> {
    let mut all = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    for next in named {
        while let Some(other) = others.peek() {
            let before = match (place(live, other, key), place(live, &next, key)) {
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
