//! Reading lists and watch events object by object, so that one that cannot be read harms no other.
//!
//! Enters: the JSON of a page or of one event. Leaves: the objects that `K` can hold, and the metadata of those
//! that it cannot.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta};
use kube::core::Status;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// One object, as far as it can be read.
pub(super) enum Item<K> {
    Read(K),
    Unreadable { meta: Box<ObjectMeta>, reason: String },
}

/// A part of a list.
pub(super) struct Page<K> {
    pub(super) items: Vec<Item<K>>,
    pub(super) version: String,
    /// Where the next page begins; `None` if this is the last.
    pub(super) next: Option<String>,
}

/// One line of a watch.
pub(super) enum Event<K> {
    Applied(Item<K>),
    Deleted(Box<ObjectMeta>),
    /// Nothing happened up to this version.
    Bookmark(String),
    Failed(Box<Status>),
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(default)]
    metadata: ListMeta,
    // A list without items may be written as null.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
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

pub(super) fn page<K: DeserializeOwned>(text: &str) -> serde_json::Result<Page<K>> {
    let raw: RawPage<'_> = serde_json::from_str(text)?;
    let items: serde_json::Result<Vec<Item<K>>> =
        raw.items.unwrap_or_default().into_iter().map(item).collect();
    Ok(Page {
        items: items?,
        version: raw.metadata.resource_version.unwrap_or_default(),
        next: raw.metadata.continue_.filter(|token| !token.is_empty()),
    })
}

pub(super) fn event<K: DeserializeOwned>(line: &str) -> serde_json::Result<Event<K>> {
    let raw: RawEvent<'_> = serde_json::from_str(line)?;
    Ok(match &*raw.kind {
        "ADDED" | "MODIFIED" => Event::Applied(item(raw.object)?),
        "DELETED" => Event::Deleted(Box::new(meta(raw.object)?)),
        "BOOKMARK" => Event::Bookmark(meta(raw.object)?.resource_version.unwrap_or_default()),
        _ => Event::Failed(serde_json::from_str(raw.object.get())?),
    })
}

fn item<K: DeserializeOwned>(raw: &RawValue) -> serde_json::Result<Item<K>> {
    match serde_json::from_str(raw.get()) {
        Ok(object) => Ok(Item::Read(object)),
        Err(error) => Ok(Item::Unreadable { meta: Box::new(meta(raw)?), reason: error.to_string() }),
    }
}

fn meta(raw: &RawValue) -> serde_json::Result<ObjectMeta> {
    serde_json::from_str::<MetaOnly>(raw.get()).map(|object| object.metadata)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_does_not_spoil_its_page() {
        let text = json!({
            "kind": "ConfigMapList", "metadata": {"resourceVersion": "7", "continue": "more"},
            "items": [
                {"metadata": {"name": "good"}, "data": {"a": "b"}},
                {"metadata": {"name": "bad", "uid": "u"}, "data": 5},
            ],
        });
        let page = page::<ConfigMap>(&text.to_string()).unwrap();
        assert_eq!((page.version.as_str(), page.next.as_deref()), ("7", Some("more")));
        assert!(matches!(&page.items[0], Item::Read(map) if map.metadata.name.as_deref() == Some("good")));
        let Item::Unreadable { meta, reason } = &page.items[1] else { panic!("5 is no map") };
        assert_eq!(meta.uid.as_deref(), Some("u"));
        assert!(reason.contains("invalid type"), "{reason}");
    }

    #[test]
    fn an_empty_page_and_every_kind_of_event_are_understood() {
        assert!(page::<ConfigMap>(r#"{"metadata":{"continue":""},"items":null}"#).unwrap().next.is_none());
        let read = |line: &str| event::<ConfigMap>(line).unwrap();
        // The order of the fields does not matter.
        assert!(matches!(
            read(r#"{"object":{"metadata":{}},"type":"ADDED"}"#),
            Event::Applied(Item::Read(_))
        ));
        assert!(matches!(read(r#"{"type":"DELETED","object":{"metadata":{},"data":5}}"#), Event::Deleted(_)));
        let bookmark = read(r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#);
        assert!(matches!(bookmark, Event::Bookmark(version) if version == "9"));
        let gone = read(r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#);
        assert!(matches!(gone, Event::Failed(status) if status.code == 410));
    }
}
