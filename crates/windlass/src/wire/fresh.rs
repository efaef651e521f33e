//! An object as it arrives, with its `managedFields` set aside.
//!
//! Of these a cache needs one set of field names, which most objects of a kind share. As typed values they would be
//! the largest part of an object, built only to be thrown away: they are cut out of the text before it is read. What
//! is left of the text may be what a store keeps.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FieldManager, FieldSet, Fields, read};
use crate::object::{AnyObject, ObjectKey};

/// An object without `managedFields`, and these as text.
#[derive(Clone, Debug)]
pub(crate) struct Fresh<K> {
    pub(crate) object: K,
    pub(crate) managed: Option<Box<str>>,
    /// What the object was read from; `None` if it was made here.
    pub(crate) text: Option<String>,
}

/// What can be told of an object without reading all of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Head<'a> {
    #[serde(borrow)]
    metadata: HeadMeta<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta<'a> {
    #[serde(default, borrow)]
    namespace: Cow<'a, str>,
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(default, borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

/// One entry of `managedFields`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(default, borrow)]
    manager: Cow<'a, str>,
    #[serde(default, borrow)]
    operation: Cow<'a, str>,
    #[serde(default, borrow)]
    subresource: Cow<'a, str>,
    #[serde(rename = "fieldsV1", borrow)]
    fields: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    pub(crate) fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(Some(&self.metadata.namespace), &self.metadata.name)
    }

    pub(crate) fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// The text without `managedFields`, and these.
    fn cut(&self, text: &str) -> (String, Option<Box<str>>) {
        let Some(managed) = self.metadata.managed_fields else { return (text.to_owned(), None) };
        let managed = managed.get();
        // The head borrows from the text: where it lies there is the distance between the two.
        let at = managed.as_ptr() as usize - text.as_ptr() as usize;
        ([&text[..at], "null", &text[at + managed.len()..]].concat(), Some(managed.into()))
    }
}

impl<K: AnyObject> Fresh<K> {
    /// Reads an object.
    pub(crate) fn read(text: &str) -> serde_json::Result<Self> {
        Self::read_behind(&Head::read(text)?, text)
    }

    /// Reads an object whose head has been read from the same text.
    pub(crate) fn read_behind(head: &Head<'_>, text: &str) -> serde_json::Result<Self> {
        let (text, managed) = head.cut(text);
        Ok(Self { object: read::from_str(&text)?, managed, text: Some(text) })
    }

    /// Whether anybody but `manager` has a part in the main resource.
    pub(crate) fn has_managers_beside(&self, manager: &str) -> bool {
        let entries = self.managed.as_deref().and_then(|managed| serde_json::from_str(managed).ok());
        let entries: Vec<Entry<'_>> = entries.unwrap_or_default();
        entries.iter().any(|entry| entry.manager != manager && entry.subresource.is_empty())
    }

    /// What `manager` and its controllers applied, and whether there are fields to take over.
    pub(crate) fn fields(&self, manager: &FieldManager) -> Fields {
        managed_by(self.managed.as_deref(), manager)
    }
}

/// What `manager` and its controllers applied, by the text of `managedFields`, and whether there are fields to take over.
pub(crate) fn managed_by(managed: Option<&str>, manager: &FieldManager) -> Fields {
    let Some(managed) = managed else { return Fields::default() };
    let entries: Vec<Entry<'_>> = serde_json::from_str(managed).unwrap_or_default();
    let mut fields = Fields::default();
    for entry in &entries {
        let (applied, set) = (entry.operation == "Apply", entry.fields.map(RawValue::get));
        match &*entry.subresource {
            "" if applied && entry.manager == manager.name() => {
                fields.main = set.and_then(FieldSet::parse);
            }
            "" => fields.inherits |= manager.succeeds(&entry.manager),
            "status" if applied => {
                if let Some(controller) = manager.status_controller(&entry.manager)
                    && let Some(set) = set.and_then(FieldSet::parse_status)
                {
                    fields.status.get_or_insert_default().put(controller, set);
                }
            }
            _ => {}
        }
    }
    fields
}

impl<K: AnyObject> From<K> for Fresh<K> {
    fn from(mut object: K) -> Self {
        let managed = object.meta_mut().managed_fields.take();
        let managed = managed.and_then(|entries| serde_json::to_string(&entries).ok());
        Self { object, managed: managed.map(Into::into), text: None }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str) -> Value {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:key": {}}, "f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}}},
        })
    }

    fn map(entries: &[Value]) -> Value {
        json!({
            "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7", "managedFields": entries, "uid": "u"},
            "data": {"managedFields": "[1]"},
        })
    }

    #[test]
    fn only_what_the_manager_applied_to_the_main_resource_counts() {
        let us = FieldManager::new("us", vec!["before".into()]);
        let fields = |entries: &[Value]| {
            let value = map(entries);
            let read = Fresh::<ConfigMap>::read(&value.to_string()).unwrap();
            let typed = Fresh::from(serde_json::from_value::<ConfigMap>(value).unwrap());
            assert_eq!(read.object, typed.object);
            assert_eq!(read.object.metadata.managed_fields, None);
            assert_eq!(read.fields(&us), typed.fields(&us));
            read.fields(&us)
        };
        let nothing = Fields::default();
        assert_eq!(fields(&[entry("us", "Update", ""), entry("us", "Apply", "status")]), nothing);
        let read = fields(&[entry("them", "Apply", ""), entry("us", "Apply", "")]);
        let ours = read.main.unwrap();
        assert!(!read.inherits && ours.field("data").unwrap().field("key").unwrap().is_leaf());
        assert!(ours.field("metadata").unwrap().is_leaf(), "owners are compared by value");
        assert_eq!(fields(&[]), nothing);
        assert_eq!(fields(&[entry("before", "Update", "status")]), nothing);
        assert_eq!(fields(&[entry("before", "Update", "")]), Fields { inherits: true, ..Fields::default() });
        let mut part = entry("us/web", "Apply", "status");
        part["fieldsV1"] = json!({"f:status": {"f:ready": {}}});
        let status = fields(&[part]).status.unwrap();
        assert!(status.at("web").unwrap().field("ready").is_some() && status.at("other").is_none());
    }

    #[test]
    fn the_head_tells_which_object_it_is() {
        let text = map(&[entry("us", "Apply", "")]).to_string();
        let head = Head::read(&text).unwrap();
        assert_eq!((head.key(), head.version()), (ObjectKey::namespaced("ns", "a"), "7"));
        let object = Fresh::<ConfigMap>::read_behind(&head, &text).unwrap().object;
        assert_eq!(object.data.unwrap()["managedFields"], "[1]", "data of that name is data");
        assert_eq!(Head::read(r#"{"metadata":{"name":"n"}}"#).unwrap().key(), ObjectKey::cluster("n"));
    }
}
