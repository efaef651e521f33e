//! Strategic merge patch: a patch that knows which lists merge, and by which key.
//!
//! Maps merge, null deletes. Lists are replaced unless the type says `merge`; then items of maps
//! meet by their merge key and scalars form a set. Directives inside the patch change that:
//! `$patch`, `$retainKeys`, `$setElementOrder/…` and `$deleteFromPrimitiveList/…`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::schema::{NodeId, TypeRef, Types};

mod order;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// Why a strategic merge patch could not be applied.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum PatchError {
    /// The patch or the object is not a JSON object.
    #[error("invalid JSON document")]
    NotAnObject,
    /// `$patch` has a value that means nothing here.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// What `$patch` says.
        directive: String,
        /// The map that says it.
        map: String,
    },
    /// An item of a merged list cannot be told from the others.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The item.
        map: String,
        /// The key it lacks.
        key: String,
    },
    /// A list merges, but the type does not say by which key.
    #[error("cannot merge lists without merge key for {0}")]
    NoKeyDeclared(String),
    /// The items of two lists that merge are of different types.
    #[error("list element types are not identical: {0}")]
    MixedTypes(String),
    /// The items of a list that merges are lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// `$patch: merge` in a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeInList,
    /// `$retainKeys` is no list, or the patch sets a key that it does not name.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// `$deleteFromPrimitiveList` names no list.
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    /// `$setElementOrder` is no list or names none.
    #[error("invalid patch format of setElementOrder list")]
    ElementOrder,
    /// The patch has items in another order than `$setElementOrder` asks for.
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The items of the patch.
        patch: String,
        /// The order asked for.
        order: String,
    },
    /// A value is of another type than the place needs.
    #[error("expected a {expected}, but received a {found}")]
    WrongType {
        /// What the place needs.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
}

type Object = Map<String, Value>;

/// `original` with `patch` applied.
pub(crate) fn strategic(ty: &TypeRef, original: &Value, patch: &Value) -> Result<Value, PatchError> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err(PatchError::NotAnObject);
    };
    let merger = Merger { types: ty.types() };
    merger.maps(Some(ty.id()), original.clone(), patch.clone()).map(Value::Object)
}

/// How a field merges.
struct Strategy<'a> {
    id: Option<NodeId>,
    merge: bool,
    replace: bool,
    key: Option<&'a str>,
}

struct Merger<'a> {
    types: &'a Types,
}

impl<'a> Merger<'a> {
    fn strategy(&self, parent: Option<NodeId>, field: &str) -> Strategy<'a> {
        let id = parent.and_then(|parent| self.types.get(parent).child(field));
        let node = id.map(|id| self.types.get(id));
        let named = |name: &str| {
            let strategies = node.and_then(|node| node.patch_strategy.as_deref());
            strategies.is_some_and(|strategies| strategies.split(',').any(|known| known == name))
        };
        Strategy {
            id,
            merge: named("merge"),
            replace: named("replace"),
            key: node.and_then(|node| node.patch_merge_key.as_deref()),
        }
    }

    fn items_of(&self, list: Option<NodeId>) -> Option<NodeId> {
        self.types.get(list?).items
    }

    fn maps(&self, id: Option<NodeId>, original: Object, mut patch: Object) -> Result<Object, PatchError> {
        match patch.get(DIRECTIVE) {
            None => {}
            Some(Value::String(directive)) if directive == "replace" => {
                patch.remove(DIRECTIVE);
                return Ok(patch);
            }
            Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
            Some(directive) => return Err(unknown_directive(directive, &patch)),
        }
        let mut merged = original;
        retain_keys(&mut merged, &mut patch)?;
        self.ordered_lists(id, &mut merged, &mut patch)?;
        for (key, value) in patch {
            if key.starts_with(DELETE_FROM_LIST) {
                delete_from_list(&mut merged, &key, &value)?;
            } else {
                self.field(id, &mut merged, key, value)?;
            }
        }
        Ok(merged)
    }

    fn field(
        &self,
        id: Option<NodeId>,
        merged: &mut Object,
        key: String,
        value: Value,
    ) -> Result<(), PatchError> {
        if value.is_null() {
            merged.remove(&key);
            return Ok(());
        }
        let strategy = self.strategy(id, &key);
        let new = match (merged.remove(&key), value) {
            (Some(Value::Object(original)), Value::Object(patch)) if strategy.replace => {
                drop(original);
                Some(Value::Object(patch))
            }
            (Some(Value::Object(original)), Value::Object(patch)) => {
                Some(Value::Object(self.maps(strategy.id, original, patch)?))
            }
            (Some(Value::Array(original)), Value::Array(patch)) if strategy.merge => {
                Some(Value::Array(self.lists(&strategy, original, patch)?))
            }
            (Some(Value::Array(_)), Value::Array(patch)) => Some(Value::Array(patch)),
            (_, mut value) => {
                discard_nulls(&mut value);
                without_directives(value)
            }
        };
        if let Some(new) = new {
            merged.insert(key, new);
        }
        Ok(())
    }

    fn lists(
        &self,
        strategy: &Strategy<'_>,
        original: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<Vec<Value>, PatchError> {
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        if !items_are_maps(&original, &patch)? {
            let mut merged = original.clone();
            let mut known: BTreeSet<String> = merged.iter().map(Value::to_string).collect();
            merged.extend(patch.iter().filter(|value| known.insert(value.to_string())).cloned());
            return Ok(order::arrange(merged, &patch, &original, None));
        }
        let Some(key) = strategy.key else {
            return Err(PatchError::NoKeyDeclared("slice".to_owned()));
        };
        let (original, patch) = apply_item_directives(original, patch, key)?;
        let items = self.items_of(strategy.id);
        let mut merged = original.clone();
        let mut places = order::Places::of(&merged, Some(key));
        for value in &patch {
            let wanted = merge_value(value, key)?;
            let place = places.of_value(wanted);
            match (place, value) {
                (Some(place), Value::Object(change)) => {
                    let item = std::mem::take(&mut merged[place]);
                    let Value::Object(item) = item else {
                        return Err(wrong_type("map", &item));
                    };
                    merged[place] = Value::Object(self.maps(items, item, change.clone())?);
                }
                _ => {
                    merged.push(value.clone());
                    places.add(wanted);
                }
            }
        }
        for item in &merged {
            merge_value(item, key)?;
        }
        Ok(order::arrange(merged, &patch, &original, Some(key)))
    }

    /// Merges the lists whose order the patch sets, and takes them out of the patch.
    fn ordered_lists(
        &self,
        id: Option<NodeId>,
        merged: &mut Object,
        patch: &mut Object,
    ) -> Result<(), PatchError> {
        let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
        for key in keys {
            let Some(Value::Array(wanted)) = patch.remove(&key) else {
                return Err(PatchError::ElementOrder);
            };
            let field = target_of(&key, ELEMENT_ORDER).ok_or(PatchError::ElementOrder)?;
            let strategy = self.strategy(id, field);
            let changes = list_in(patch.remove(field))?;
            order::check(changes.as_deref().unwrap_or_default(), &wanted, strategy.key)?;
            let original = list_in(merged.get(field).cloned())?;
            let live = original.clone().unwrap_or_default();
            let list = match (original, changes) {
                (None, None) => continue,
                (Some(original), None) => original,
                (None, Some(changes)) => changes.into_iter().filter_map(without_directives).collect(),
                (Some(original), Some(changes)) if strategy.merge => {
                    self.lists(&strategy, original, changes)?
                }
                (Some(_), Some(changes)) => changes,
            };
            let list = order::arrange(list, &wanted, &live, strategy.key);
            merged.insert(field.to_owned(), Value::Array(list));
        }
        Ok(())
    }
}

/// Drops the keys that `$retainKeys` does not name; the patch may set no other.
fn retain_keys(merged: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(retained) = retained else {
        return Err(PatchError::RetainKeys);
    };
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let named = |key: &str| retained.contains(key);
    let stranger = |(key, value): (&String, &Value)| {
        let directive = key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
        !value.is_null() && !directive && !named(key)
    };
    if patch.iter().any(stranger) {
        return Err(PatchError::RetainKeys);
    }
    merged.retain(|key, _| named(key));
    Ok(())
}

fn delete_from_list(merged: &mut Object, key: &str, gone: &Value) -> Result<(), PatchError> {
    let field = target_of(key, DELETE_FROM_LIST).ok_or(PatchError::PrimitiveList)?;
    let Value::Array(gone) = gone else {
        return Err(PatchError::PrimitiveList);
    };
    if let Some(Value::Array(items)) = merged.get_mut(field) {
        let gone: BTreeSet<String> = gone.iter().map(Value::to_string).collect();
        items.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

/// The field behind `$directive/field`.
fn target_of<'k>(key: &'k str, directive: &str) -> Option<&'k str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Acts on the items that carry `$patch`: those to delete go, or the patch replaces the list.
fn apply_item_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let (mut replace, mut gone) = (false, BTreeSet::new());
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                gone.insert(merge_value(&item, key)?.to_string());
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(PatchError::MergeInList),
            _ => {
                let map = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, &map));
            }
        }
    }
    if !gone.is_empty() {
        original.retain(|item| item.get(key).is_none_or(|value| !gone.contains(&value.to_string())));
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

/// A value as Go prints it: `map[a:1 b:[2 3]]`.
pub(crate) fn as_go(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| key.as_str());
            let shown: Vec<String> =
                pairs.into_iter().map(|(key, value)| format!("{key}:{}", as_go(value))).collect();
            format!("map[{}]", shown.join(" "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(as_go).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".into(),
        other => other.to_string(),
    }
}

fn merge_value<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    item.get(key).ok_or_else(|| PatchError::NoMergeKey { map: as_go(item), key: key.to_owned() })
}

fn unknown_directive(directive: &Value, map: &Object) -> PatchError {
    let text = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    PatchError::UnknownDirective { directive: text, map: as_go(&Value::Object(map.clone())) }
}

/// Whether two lists that merge hold maps; they must agree, and hold no lists.
fn items_are_maps(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::ListOfLists);
    }
    let form = |value: &Value| std::mem::discriminant(value);
    if items.any(|item| form(item) != form(first)) {
        return Err(PatchError::MixedTypes(Value::Array(patch.to_vec()).to_string()));
    }
    Ok(first.is_object())
}

fn list_in(value: Option<Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type("list", &other)),
    }
}

fn wrong_type(expected: &'static str, found: &Value) -> PatchError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    };
    PatchError::WrongType { expected, found }
}

/// A value to be taken as it is, without the maps in it that only carry a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => None,
        Value::Object(object) => {
            let kept = object.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
