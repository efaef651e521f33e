//! From bytes to objects: what a body must be before anything is done with it.

use std::collections::BTreeMap;

use serde::de::{Deserialize, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::resource::{Resource, group_version};
use crate::{
    error::{Error, Result},
    store::Object,
};

/// A stored object. What the store holds was encoded here, so it must decode.
pub(super) fn stored(object: &Object) -> Value {
    serde_json::from_slice(&object.bytes).expect("a stored object must be valid JSON")
}

/// Whether a stored object may be on its way out: false where its bytes do not even have the word.
pub(super) fn may_be_deleting(object: &Object) -> bool {
    const WORD: &[u8] = b"\"deletionTimestamp\"";
    object.bytes.windows(WORD.len()).any(|window| window == WORD)
}

/// A JSON body and the keys that it says twice.
#[derive(Debug, Default)]
pub struct Body {
    /// The decoded value.
    pub value: Value,
    /// Paths of duplicate keys, of many the first; the last value won.
    pub duplicates: Vec<String>,
    /// Where all keys stood, where there are duplicates: what is wrong is told in this order.
    pub order: Order,
}

/// How many problems of one body are told, as in the real server.
pub(super) const PROBLEMS: usize = 100;

/// The longest path that is told whole. A key can be as long as a body.
const PATH: usize = 4096;

/// Where the keys of a body stand: the first two places of each path. Paths are known by a hash, because all of them
/// as text can be many times as long as the body.
#[derive(Debug, Default)]
pub struct Order {
    places: BTreeMap<u64, (usize, Option<usize>)>,
    count: usize,
}

impl Order {
    fn add(&mut self, path: u64) {
        let known = self.places.entry(path).or_insert((self.count, None));
        if known.0 != self.count {
            known.1.get_or_insert(self.count);
        }
        self.count += 1;
    }

    /// Where a field stands for the first time, or for the second.
    pub(super) fn place_of(&self, field: &str, again: bool) -> Option<usize> {
        let (first, second) = self.places.get(&hashed(EMPTY, field))?;
        if again { *second } else { Some(*first) }
    }
}

/// FNV-1a, which can go on from where it ended.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

fn hashed(start: u64, text: &str) -> u64 {
    text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self { value, ..Self::default() }
    }
}

/// Decodes a JSON body. `kind` is what the request takes, for the message.
pub fn json(bytes: &[u8], kind: &str) -> Result<Body> {
    let mut duplicates = Vec::new();
    let value =
        tracked(bytes, &mut duplicates, None).map_err(|error| undecodable(bytes, kind, &in_go(&error)))?;
    if !value.is_object() {
        let found = match value {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Bool(_) => "bool",
            _ => "number",
        };
        let target = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        return Err(undecodable(
            bytes,
            kind,
            &format!("json: cannot unmarshal {found} into Go value of type {target}"),
        ));
    }
    let mut order = Order::default();
    if !duplicates.is_empty() {
        // It was read once, so it can be read again; hardly any body comes here.
        let _ = tracked(bytes, &mut Vec::new(), Some(&mut order));
    }
    Ok(Body { value, duplicates, order })
}

fn tracked(
    bytes: &[u8],
    duplicates: &mut Vec<String>,
    order: Option<&mut Order>,
) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value =
        Tracked { place: KeyPath::Root, hash: EMPTY, duplicates, order }.deserialize(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

fn undecodable(bytes: &[u8], kind: &str, why: &str) -> Error {
    let shown = match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(bytes).chars().take(256).collect(),
        Some(_) => bytes.iter().take(128).fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
    };
    Error::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
         error: {why} ({shown})"
    ))
}

/// The failure in the words of Go's decoder, as far as they are known.
fn in_go(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// Checks that the body is of the kind that the path takes, and fills in what it leaves out.
pub(super) fn match_kind(
    object: &mut Value,
    resource: &Resource,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<()> {
    let expected = group_version(group, version);
    let own = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let own_kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let strict = resource.custom().is_some();
    if (own.is_empty() || own == expected) && (own_kind.is_empty() || own_kind == kind) {
        if strict && (own.is_empty() || own_kind.is_empty()) {
            let missing = if own_kind.is_empty() { "Kind" } else { "apiVersion" };
            return Err(Error::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): Object '{missing}' is missing in '{object}' \
                 ({}{})",
                object.to_string().chars().take(30).collect::<String>(),
                if object.to_string().len() > 30 { " ..." } else { "" }
            )));
        }
        object["apiVersion"] = expected.into();
        object["kind"] = kind.into();
        return Ok(());
    }
    let own_version = own.rsplit('/').next().unwrap_or_default();
    if !strict {
        return Err(other_type(&own, &own_kind, group, kind));
    }
    if own_kind == kind || own_kind.is_empty() {
        let message = format!(
            "the API version in the data ({own}) does not match the expected API version ({expected})"
        );
        return Err(Error::bad_request(message));
    }
    Err(Error::bad_request(format!(
        "{own_kind} in version \"{own_version}\" cannot be handled as a {kind}: the body is of kind {own_kind}"
    )))
}

/// The body is of another type: one that is known, or none at all.
fn other_type(own: &str, own_kind: &str, group: &str, kind: &str) -> Error {
    let (own_group, own_version) = own.split_once('/').unwrap_or(("", own));
    let known = super::catalog::definitions().by_kind(own_group, own_version, own_kind).is_some();
    let why = if known {
        let group = match group.split('.').next() {
            Some(group) if !group.is_empty() => group,
            _ => "core",
        };
        format!("converting ({own_version}.{own_kind}) to ({group}.{kind}): unknown conversion")
    } else {
        format!(
            "no kind \"{own_kind}\" is registered for version \"{own}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    Error::bad_request(format!(
        "{own_kind} in version \"{own_version}\" cannot be handled as a {kind}: {why}"
    ))
}

/// Removes nulls the way decoding into a typed object does: a null is a field that was not said.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A JSON reader that notices duplicate keys, which serde_json's own `Value` silently merges.
struct Tracked<'a> {
    place: KeyPath<'a>,
    /// The hash of the place, for the order.
    hash: u64,
    duplicates: &'a mut Vec<String>,
    order: Option<&'a mut Order>,
}

/// Where the reader is. It becomes a text only for a key that was said twice.
#[derive(Clone, Copy)]
enum KeyPath<'a> {
    Root,
    Key(&'a KeyPath<'a>, &'a str),
    Item(&'a KeyPath<'a>, usize),
}

impl KeyPath<'_> {
    /// The hash of the text, from that of the place around it.
    fn hash(&self, around: u64) -> u64 {
        match self {
            Self::Root => EMPTY,
            Self::Key(Self::Root, key) => hashed(EMPTY, key),
            Self::Key(_, key) => hashed(hashed(around, "."), key),
            Self::Item(_, index) => hashed(around, &format!("[{index}]")),
        }
    }

    /// The path, of a very long one the beginning.
    fn text(&self) -> String {
        let mut text = self.to_string();
        text.truncate(text.floor_char_boundary(PATH));
        text
    }
}

impl std::fmt::Display for KeyPath<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => formatter.write_str(key),
            Self::Key(parent, key) => write!(formatter, "{parent}.{key}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tracked<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tracked<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        loop {
            let place = KeyPath::Item(&self.place, out.len());
            let hash = self.order.as_ref().map_or(EMPTY, |_| place.hash(self.hash));
            let order = self.order.as_deref_mut();
            let child = Tracked { place, hash, duplicates: &mut *self.duplicates, order };
            match list.next_element_seed(child)? {
                Some(value) => out.push(value),
                None => return Ok(Value::Array(out)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let place = KeyPath::Key(&self.place, &key);
            let hash = self.order.as_ref().map_or(EMPTY, |_| place.hash(self.hash));
            if let Some(order) = &mut self.order {
                order.add(hash);
            }
            let order = self.order.as_deref_mut();
            let child = Tracked { place, hash, duplicates: &mut *self.duplicates, order };
            let value = map.next_value_seed(child)?;
            if self.duplicates.len() < PROBLEMS && out.contains_key(&key) {
                self.duplicates.push(place.text());
            }
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_said_twice_is_noticed() {
        let body = json(br#"{"spec":{"a":1,"b":[{"c":1,"c":2}],"a":3}}"#, "X").unwrap();
        assert_eq!(body.duplicates, ["spec.b[0].c", "spec.a"]);
        assert_eq!(body.value["spec"]["a"], 3);
    }

    #[test]
    fn keys_said_again_and_again_below_a_long_one_take_no_more_than_the_body() {
        let body = format!("{{\"{}\":{{{}\"a\":1}}}}", "k".repeat(500_000), "\"a\":1,".repeat(100_000));
        let body = json(body.as_bytes(), "X").unwrap();
        assert_eq!(body.duplicates.len(), PROBLEMS);
        assert!(body.duplicates.iter().all(|path| path.len() <= PATH));
        assert_eq!(body.order.places.len(), 2);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "1", "{\"a\":", "{} {}"] {
            assert!(json(text.as_bytes(), "ConfigMap").is_err(), "{text}");
        }
    }
}
