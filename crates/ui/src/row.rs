//! What is kept of an object while the page is open: an object enters, a [`Row`] of the tree leaves.

use serde::Serialize;
use serde_json::{Map, Value};
use windlass::{
    k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta},
    kube::api::DynamicObject,
};

use crate::{
    health::{self, Health},
    kinds::Kind,
};

/// One object, as the tree shows it. Its names are short: thousands of them go to the browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "u")]
    pub(crate) uid: String,
    /// The index of its kind.
    #[serde(rename = "k")]
    pub(crate) kind: usize,
    #[serde(rename = "s", skip_serializing_if = "str::is_empty")]
    pub(crate) namespace: Box<str>,
    #[serde(rename = "n")]
    pub(crate) name: Box<str>,
    #[serde(rename = "h")]
    pub(crate) health: Health,
    #[serde(rename = "m", skip_serializing_if = "str::is_empty")]
    pub(crate) message: Box<str>,
    /// The uid of its controller, or of its first owner.
    #[serde(rename = "o", skip_serializing_if = "str::is_empty")]
    pub(crate) owner: Box<str>,
    /// When it was created, in seconds.
    #[serde(rename = "t")]
    pub(crate) created: i64,
    #[serde(rename = "r")]
    pub(crate) revision: Box<str>,
}

/// How long a message of a row may be: the whole of it is on the object's own page.
const MESSAGE: usize = 240;

impl Row {
    /// The row of an object, and who wrote it last.
    pub(crate) fn of(object: DynamicObject, kind: &Kind, index: usize) -> (Self, Option<String>) {
        let DynamicObject { metadata, data, .. } = object;
        let judged = health::judge(Some(&judgeable(&metadata, data, kind)));
        let owners = metadata.owner_references.unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.controller == Some(true)).or(owners.first());
        let writer = last_writer(metadata.managed_fields.as_deref().unwrap_or_default());
        let mut message = judged.message;
        if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
            message.truncate(end);
            message.push('\u{2026}');
        }
        let row = Self {
            uid: metadata.uid.unwrap_or_default(),
            kind: index,
            namespace: metadata.namespace.unwrap_or_default().into(),
            name: metadata.name.unwrap_or_default().into(),
            health: judged.health,
            message: message.into(),
            owner: owner.map(|owner| owner.uid.as_str()).unwrap_or_default().into(),
            created: metadata.creation_timestamp.map_or(0, |time| time.0.as_second()),
            revision: metadata.resource_version.unwrap_or_default().into(),
        };
        (row, writer)
    }
}

/// As much of the object as its health follows from. Objects in lists do not say what they are.
fn judgeable(metadata: &ObjectMeta, data: Value, kind: &Kind) -> Value {
    let mut object = match data {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let mut meta = Map::new();
    if let Some(generation) = metadata.generation {
        meta.insert("generation".into(), generation.into());
    }
    if let Some(time) = &metadata.deletion_timestamp {
        meta.insert("deletionTimestamp".into(), time.0.to_string().into());
    }
    if let Some(finalizers) = &metadata.finalizers {
        meta.insert("finalizers".into(), finalizers.clone().into());
    }
    object.insert("apiVersion".into(), kind.resource().api_version.into());
    object.insert("kind".into(), kind.kind.clone().into());
    object.insert("metadata".into(), meta.into());
    object.into()
}

/// Who wrote last, by the server's own book.
fn last_writer(entries: &[ManagedFieldsEntry]) -> Option<String> {
    let last = entries.iter().max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    last.and_then(|entry| entry.manager.clone())
}
