//! The set of fields that our field manager owns on an object, taken out of `managedFields`.
//!
//! Enters: the `fieldsV1` of an entry. Leaves: a [`FieldSet`]. The cache keeps the set instead of the list, and shares
//! one set among all objects of the same shape.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The fields that one manager applied: a tree of path elements as in `fieldsV1` (`f:spec`, `k:{..}`, `v:..`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub(crate) struct FieldSet {
    children: BTreeMap<Box<str>, FieldSet>,
}

impl FieldSet {
    /// Reads `fieldsV1`. The owner references are left out: they are checked by value, and their uids would make
    /// every object's set different.
    pub(crate) fn parse(fields: &str) -> Option<Self> {
        let mut set: Self = serde_json::from_str(fields).ok()?;
        if let Some(metadata) = set.children.get_mut("f:metadata") {
            metadata.children.remove("f:ownerReferences");
        }
        Some(set)
    }

    /// Reads the set of a status.
    pub(crate) fn parse_status(fields: &str) -> Option<Self> {
        let mut set: Self = serde_json::from_str(fields).ok()?;
        set.children.remove("f:status")
    }

    /// Puts a set below a name of any kind.
    pub(crate) fn put(&mut self, name: &str, set: Self) {
        self.children.insert(name.into(), set);
    }

    /// What [`put`](Self::put) has put there.
    pub(crate) fn at(&self, name: &str) -> Option<&Self> {
        self.children.get(name)
    }

    /// The set below a field name.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.children.get(format!("f:{name}").as_str())
    }

    /// Whether the value here is owned as a whole.
    pub(crate) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// The names of the fields below this one.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.children.keys().filter_map(|element| element.strip_prefix("f:"))
    }

    /// The list items below this one, keyed by what identifies them.
    pub(crate) fn items(&self) -> impl Iterator<Item = (ItemKey, &Self)> {
        self.children.iter().filter_map(|(element, set)| Some((ItemKey::parse(element)?, set)))
    }
}

/// What identifies an item of a list: some of its fields, or its value.
#[derive(Debug, PartialEq)]
pub(crate) enum ItemKey {
    Fields(serde_json::Map<String, Value>),
    Value(Value),
}

impl ItemKey {
    fn parse(element: &str) -> Option<Self> {
        if let Some(fields) = element.strip_prefix("k:") {
            return serde_json::from_str(fields).ok().map(Self::Fields);
        }
        element.strip_prefix("v:").and_then(|value| serde_json::from_str(value).ok()).map(Self::Value)
    }

    /// Whether `item` is the one meant.
    pub(crate) fn is_of(&self, item: &Value) -> bool {
        self.compared(item, false)
    }

    /// Whether `item` may be the one meant: a key field that it leaves out is filled in by the server.
    pub(crate) fn may_be_of(&self, item: &Value) -> bool {
        self.compared(item, true)
    }

    fn compared(&self, item: &Value, without: bool) -> bool {
        let same = same_scalar;
        match self {
            Self::Fields(fields) => {
                fields.iter().all(|(name, value)| item.get(name).map_or(without, |own| same(own, value)))
            }
            Self::Value(value) => same(item, value),
        }
    }
}

/// Equality of scalars, with numbers compared by value.
pub(crate) fn same_scalar(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_matches_an_item_that_leaves_a_defaulted_key_field_out() {
        let key = ItemKey::parse(r#"k:{"containerPort":80,"protocol":"TCP"}"#).unwrap();
        assert!(key.may_be_of(&json!({"containerPort": 80})));
        assert!(!key.is_of(&json!({"containerPort": 80})));
        assert!(key.is_of(&json!({"containerPort": 80, "protocol": "TCP"})));
        assert!(!key.may_be_of(&json!({"containerPort": 80, "protocol": "UDP"})));
        assert!(ItemKey::parse(r#"v:"a""#).unwrap().is_of(&json!("a")));
    }
}
