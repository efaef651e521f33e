//! Reading lists and watch events object by object, so that one that cannot be read harms no other.
//!
//! Enters: the JSON of an item, of what surrounds the items, or of one event. Leaves: the objects that `K` can hold,
//! and the metadata of those that it cannot.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta};
use kube::core::Status;
use serde::{Deserialize, de::Error};
use serde_json::value::RawValue;

use crate::{
    object::AnyObject,
    wire::{Fresh, Head},
};

/// One object, as far as it can be read.
pub(super) enum Item<K> {
    Read(Fresh<K>),
    Unreadable { meta: Box<ObjectMeta>, reason: String },
}

/// What surrounds the items of a part of a list.
pub(super) struct Page {
    pub(super) version: String,
    /// Where the next page begins; `None` if this is the last.
    pub(super) next: Option<String>,
}

/// One line of a watch.
pub(super) enum Event<'a> {
    /// An object as it is now, of which only the head has been read.
    Applied(Head<'a>, &'a str),
    Deleted(Box<ObjectMeta>),
    /// Nothing happened up to this version.
    Bookmark(String),
    Failed(Box<Status>),
}

#[derive(Deserialize)]
struct RawPage {
    #[serde(default)]
    metadata: ListMeta,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct MetaOnly {
    metadata: ObjectMeta,
}

/// Reads a list without its items.
pub(super) fn page(frame: &[u8]) -> serde_json::Result<Page> {
    let raw: RawPage = serde_json::from_slice(frame)?;
    Ok(Page {
        version: raw.metadata.resource_version.unwrap_or_default(),
        next: raw.metadata.continue_.filter(|token| !token.is_empty()),
    })
}

/// Reads an event.
pub(super) fn event(line: &str) -> serde_json::Result<Event<'_>> {
    let raw: RawEvent<'_> = serde_json::from_str(line)?;
    let object = raw.object.get();
    Ok(match &*raw.kind {
        "ADDED" | "MODIFIED" => Event::Applied(Head::read(object)?, object),
        "DELETED" => Event::Deleted(Box::new(meta(object)?)),
        "BOOKMARK" => Event::Bookmark(meta(object)?.resource_version.unwrap_or_default()),
        _ => Event::Failed(serde_json::from_str(object)?),
    })
}

/// Reads an item of a list.
pub(super) fn item<K: AnyObject>(text: &[u8]) -> serde_json::Result<Item<K>> {
    let text = std::str::from_utf8(text).map_err(serde_json::Error::custom)?;
    read(&Head::read(text)?, text)
}

/// Reads an object whose head has been read.
pub(super) fn read<K: AnyObject>(head: &Head<'_>, text: &str) -> serde_json::Result<Item<K>> {
    match Fresh::read_behind(head, text) {
        Ok(object) => Ok(Item::Read(object)),
        Err(error) => Ok(Item::Unreadable { meta: Box::new(meta(text)?), reason: error.to_string() }),
    }
}

fn meta(text: &str) -> serde_json::Result<ObjectMeta> {
    serde_json::from_str::<MetaOnly>(text).map(|object| object.metadata)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_is_told_of_by_its_metadata() {
        let read = |value: serde_json::Value| item::<ConfigMap>(value.to_string().as_bytes()).unwrap();
        let good = read(json!({"metadata": {"name": "good"}, "data": {"a": "b"}}));
        assert!(matches!(good, Item::Read(map) if map.object.metadata.name.as_deref() == Some("good")));
        let bad = read(json!({"metadata": {"name": "bad", "uid": "u"}, "data": 5}));
        let Item::Unreadable { meta, reason } = bad else { panic!("5 is no map") };
        assert_eq!(meta.uid.as_deref(), Some("u"));
        assert!(reason.contains("invalid type"), "{reason}");
    }

    #[test]
    fn the_frame_of_a_page_says_where_to_go_on() {
        let read = |text: &str| page(text.as_bytes()).unwrap();
        let first = read(r#"{"metadata":{"resourceVersion":"7","continue":"more"},"items":[]}"#);
        assert_eq!((first.version.as_str(), first.next.as_deref()), ("7", Some("more")));
        assert!(read(r#"{"metadata":{"continue":""},"items":null}"#).next.is_none());
        assert!(page(b"{\"metadata\":").is_err(), "cut off");
    }

    #[test]
    fn every_kind_of_event_is_understood() {
        let read = |line: &'static str| event(line).unwrap();
        // The order of the fields does not matter.
        let added = r#"{"object":{"metadata":{"resourceVersion":"4"}},"type":"ADDED"}"#;
        assert!(matches!(read(added), Event::Applied(head, _) if head.version() == "4"));
        assert!(matches!(read(r#"{"type":"DELETED","object":{"metadata":{},"data":5}}"#), Event::Deleted(_)));
        let bookmark = read(r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#);
        assert!(matches!(bookmark, Event::Bookmark(version) if version == "9"));
        let gone = read(r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#);
        assert!(matches!(gone, Event::Failed(status) if status.code == 410));
    }
}
