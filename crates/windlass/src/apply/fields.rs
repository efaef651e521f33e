//! The set of fields that our field manager owns on an object, taken out of `managedFields`.
//!
//! Enters: an object's metadata with `managedFields`. Leaves: a [`FieldSet`], and metadata without them. The
//! cache keeps the set instead of the list, and shares one set among all objects of the same shape.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

/// The fields that one manager applied: a tree of path elements as in `fieldsV1` (`f:spec`, `k:{..}`, `v:..`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldSet {
    children: BTreeMap<Box<str>, FieldSet>,
}

impl FieldSet {
    /// Removes `managedFields` from the metadata and returns what `manager` applied to the main resource.
    ///
    /// The owner references are left out: they are checked by value, and their uids would make every object's
    /// set different.
    pub(crate) fn take(meta: &mut ObjectMeta, manager: &str) -> Option<Self> {
        let entry = meta.managed_fields.take()?.into_iter().find(|entry| is_applied_by(entry, manager))?;
        let mut set = Self::parse(&entry.fields_v1?.0);
        if let Some(metadata) = set.children.get_mut("f:metadata") {
            metadata.children.remove("f:ownerReferences");
        }
        Some(set)
    }

    pub(crate) fn parse(fields: &Value) -> Self {
        let children = match fields {
            Value::Object(map) => {
                map.iter().map(|(k, v)| (k.clone().into_boxed_str(), Self::parse(v))).collect()
            }
            _ => BTreeMap::new(),
        };
        Self { children }
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

fn is_applied_by(entry: &ManagedFieldsEntry, manager: &str) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
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

    /// Whether `item` is the one meant. A key field that the item leaves out was filled in by the server.
    pub(crate) fn matches(&self, item: &Value) -> bool {
        match self {
            Self::Fields(fields) => fields
                .iter()
                .all(|(name, value)| item.get(name).is_none_or(|own| super::held::same_scalar(own, value))),
            Self::Value(value) => super::held::same_scalar(item, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(Into::into),
            fields_v1: Some(FieldsV1(json!({"f:spec": {"f:replicas": {}}}))),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn only_what_the_manager_applied_to_the_main_resource_counts() {
        let mut meta = ObjectMeta {
            managed_fields: Some(vec![entry("us", "Update", None), entry("us", "Apply", Some("status"))]),
            ..ObjectMeta::default()
        };
        assert_eq!(FieldSet::take(&mut meta, "us"), None);
        assert_eq!(meta.managed_fields, None);
        meta.managed_fields = Some(vec![entry("them", "Apply", None), entry("us", "Apply", None)]);
        let set = FieldSet::take(&mut meta, "us").unwrap();
        assert!(set.field("spec").unwrap().field("replicas").unwrap().is_leaf());
    }

    #[test]
    fn a_key_matches_an_item_that_leaves_a_defaulted_key_field_out() {
        let key = ItemKey::parse(r#"k:{"containerPort":80,"protocol":"TCP"}"#).unwrap();
        assert!(key.matches(&json!({"containerPort": 80})));
        assert!(!key.matches(&json!({"containerPort": 80, "protocol": "UDP"})));
        assert!(ItemKey::parse(r#"v:"a""#).unwrap().matches(&json!("a")));
    }
}
