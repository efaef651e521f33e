//! The mark that an apply leaves on a child: whose intent it was, and a digest of it.
//!
//! The mark is an annotation and a part of the intent. An intent that differs in anything therefore differs in its
//! mark, and is always sent, whatever the server makes of its values (defaults, quantities in another spelling, zeros
//! that are left out). It lies in the cluster, so that a restart and another replica know it as well.

use std::{fmt::Write as _, num::NonZeroU64};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The prefix of the annotation; the name behind it is the field manager's.
const PREFIX: &str = "applied.windlass.dev/";

/// A digest of an intent. Two intents of one child are the same if their digests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(NonZeroU64);

impl Digest {
    /// The digest of an intent. The order of an object's fields does not count, that of a list does.
    pub(crate) fn of(controller: &str, intent: &Value) -> Self {
        let mut hash = Sha256::new();
        feed(&mut hash, &Value::String(controller.to_owned()));
        feed(&mut hash, intent);
        let head = hash.finalize().first_chunk::<8>().map_or(0, |head| u64::from_be_bytes(*head));
        // One value of 2^64 shares its place with another one: that saves a word for each cached object.
        Self(NonZeroU64::new(head).unwrap_or(NonZeroU64::MIN))
    }

    /// Reads the mark that [`mark`] wrote.
    pub(crate) fn read(mark: &str) -> Option<Self> {
        let (_, digits) = mark.rsplit_once('/')?;
        u64::from_str_radix(digits, 16).ok().and_then(NonZeroU64::new).map(Self)
    }
}

/// The value of the annotation: who applied, and what.
pub(crate) fn mark(controller: &str, digest: Digest) -> String {
    format!("{controller}/{:016x}", digest.0)
}

/// The controller that left a mark.
pub(crate) fn controller_of(mark: &str) -> Option<&str> {
    mark.rsplit_once('/').map(|(controller, _)| controller)
}

/// The name of the annotation for a field manager.
pub(crate) fn annotation(manager: &str) -> String {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let valid = manager.len() <= 63
        && manager.chars().all(inner)
        && edge(manager.chars().next())
        && edge(manager.chars().next_back());
    if valid {
        return format!("{PREFIX}{manager}");
    }
    let digest = Sha256::digest(manager.as_bytes());
    digest.iter().take(8).fold(PREFIX.to_owned(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Feeds a value such that different values feed different bytes.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            // Sorted here: a feature of serde_json that any crate may turn on changes the order of a map.
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            hash.update(format!("{{{}:", fields.len()));
            for (name, value) in fields {
                hash.update(format!("{}:{name}", name.len()));
                feed(hash, value);
            }
        }
        Value::Array(items) => {
            hash.update(format!("[{}:", items.len()));
            for item in items {
                feed(hash, item);
            }
        }
        Value::String(text) => hash.update(format!("\"{}:{text}", text.len())),
        scalar => hash.update(format!("{scalar};")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_differs_has_another_digest() {
        let intents = [
            json!({}),
            json!({"a": "1"}),
            json!({"a": 1}),
            json!({"a": "1.10"}),
            json!({"a": ["1"]}),
            json!({"a": ["1", "2"]}),
            json!({"a": ["2", "1"]}),
            json!({"a": ["12"]}),
            json!({"a": {"b": {}}}),
            json!({"a": {}, "b": {}}),
            json!({"a": false}),
            json!({"a": ""}),
            json!({"a": []}),
        ];
        for (at, one) in intents.iter().enumerate() {
            for (place, other) in intents.iter().enumerate() {
                assert_eq!(Digest::of("c", one) == Digest::of("c", other), at == place, "{one} {other}");
            }
            assert_ne!(Digest::of("c", one), Digest::of("d", one));
            let digest = Digest::of("c", one);
            assert_eq!(Digest::read(&mark("a/b", digest)), Some(digest));
            assert_eq!(controller_of(&mark("a/b", digest)), Some("a/b"));
        }
        assert_eq!(Digest::read("not a mark"), None);
    }

    #[test]
    fn a_digest_stays_the_same_in_every_version() {
        // What is in the cluster was written by an older version: another digest would have everything sent again.
        let intent =
            json!({"spec": {"replicas": 2, "name": "ü", "on": true, "ratio": 0.5, "list": [1, null]}});
        assert_eq!(mark("web", Digest::of("web", &intent)), "web/ccf065dfcb5a87b3");
    }

    #[test]
    fn every_field_manager_has_an_annotation_with_a_valid_name() {
        assert_eq!(annotation("web-operator"), "applied.windlass.dev/web-operator");
        for manager in ["-web", "web operator", "web/operator", "", &"x".repeat(64), "ü"] {
            let name = annotation(manager);
            let name = name.strip_prefix(PREFIX).unwrap();
            assert!(name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit()), "{manager} {name}");
        }
        assert_ne!(annotation("web operator"), annotation("web/operator"));
    }
}
