//! A draft: an encoded object that does not know its revision yet.
//!
//! The revision is part of the encoded object, and it is only known under the store's lock. Encoding a
//! whole object there would make every writer wait for it, so it is encoded before, with a hole, and the
//! lock is held only while the revision's digits are put in.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};

use super::{Key, Object};

/// Labels in key order.
pub type Labels = Arc<[(Arc<str>, Arc<str>)]>;

/// The values of the selectable fields of a kind, in the order in which the kind declares them.
pub type Fields = Arc<[Box<str>]>;

/// What stands before the metadata.
pub(super) const METADATA: &[u8] = b"\"metadata\":";

/// An encoded object with a hole for its revision.
#[derive(Debug, Clone)]
pub struct Draft {
    head: Vec<u8>,
    tail: Vec<u8>,
    untyped: usize,
    labels: Labels,
    fields: Fields,
    deleting: bool,
}

impl Draft {
    /// Encodes `object`; whatever `metadata.resourceVersion` it has is replaced on commit.
    ///
    /// Kind, version and metadata come first. A typed list shows its items without kind and version, and
    /// with these at a known place an item is a slice of the same bytes.
    pub fn encode(object: &Value, fields: Fields) -> Self {
        let empty = Map::new();
        let top = object.as_object().unwrap_or(&empty);
        let mut head = vec![b'{'];
        for key in ["kind", "apiVersion"] {
            if let Some(value) = top.get(key) {
                write_entry(&mut head, key, value);
                head.push(b',');
            }
        }
        let untyped = head.len();
        head.extend_from_slice(METADATA);
        let metadata = top.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let mut tail = Vec::new();
        encode_metadata(metadata, &mut head, &mut tail);
        for (key, value) in top {
            if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
                tail.push(b',');
                write_entry(&mut tail, key, value);
            }
        }
        tail.push(b'}');
        let deleting = metadata.get("deletionTimestamp").is_some_and(Value::is_string);
        Self { head, tail, untyped, labels: labels_of(metadata), fields, deleting }
    }

    /// Whether the object is on its way out.
    pub(super) fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// The object at `key` and `revision`.
    pub(super) fn at(self, key: Key, revision: u64) -> Object {
        let bytes = self.bytes(revision);
        Object { key, revision, labels: self.labels, fields: self.fields, bytes, untyped: self.untyped }
    }

    /// How long the encoded object is, but for its revision.
    pub fn size(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// The encoded object with its revision filled in.
    pub fn bytes(&self, revision: u64) -> Bytes {
        let digits = revision.to_string();
        let mut out = BytesMut::with_capacity(self.head.len() + digits.len() + self.tail.len());
        out.put_slice(&self.head);
        out.put_slice(digits.as_bytes());
        out.put_slice(&self.tail);
        out.freeze()
    }
}

/// Writes the metadata up to the opening quote of the revision into `head`, the rest into `tail`.
fn encode_metadata(metadata: &Map<String, Value>, head: &mut Vec<u8>, tail: &mut Vec<u8>) {
    head.push(b'{');
    let mut first = true;
    for (key, value) in metadata.iter().filter(|(key, _)| *key != "resourceVersion") {
        if !first {
            head.push(b',');
        }
        first = false;
        write_entry(head, key, value);
    }
    if !first {
        head.push(b',');
    }
    head.extend_from_slice(b"\"resourceVersion\":\"");
    tail.extend_from_slice(b"\"}");
}

fn write_entry(out: &mut Vec<u8>, key: &str, value: &Value) {
    serde_json::to_writer(&mut *out, key).expect("a string must encode into memory");
    out.push(b':');
    serde_json::to_writer(out, value).expect("a JSON value must encode into memory");
}

fn labels_of(metadata: &Map<String, Value>) -> Labels {
    metadata.get("labels").and_then(Value::as_object).map_or_else(
        || Arc::from([]),
        |labels| {
            labels
                .iter()
                .map(|(key, value)| (Arc::from(key.as_str()), Arc::from(value.as_str().unwrap_or_default())))
                .collect()
        },
    )
}
