//! Kubernetes' protobuf, read into JSON.
//!
//! kubectl and every Go client send built-in kinds as protobuf; they take JSON for an answer. No code is
//! generated here: `schema/go_types.txt`, which `xtask generate` writes from Kubernetes' own Go types, says
//! which field has which number, and one small reader follows it.

mod wire;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use self::wire::{Reader, Wire};
use crate::{
    registry::definitions,
    schema::go_types::{Field, Kind, Repeat, fields_of},
};

/// What a protobuf body begins with.
const MAGIC: &[u8] = b"k8s\0";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// How deep messages may be nested; CRD schemas are the deepest that exist.
const DEPTH: usize = 100;

/// Why a body could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// It does not begin as Kubernetes' protobuf does.
    #[error("the body does not begin with the magic number of Kubernetes protobuf")]
    Magic,
    /// It ends inside of a value, or holds a value of no known form.
    #[error("the body is not valid protobuf")]
    Malformed,
    /// It is nested too deeply.
    #[error("the body is nested more than {DEPTH} levels deep")]
    TooDeep,
    /// It is of a kind that has no protobuf form.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// The API version that the body names.
        api_version: String,
        /// The kind that it names.
        kind: String,
    },
}

/// Reads a whole body: an envelope that names a kind, and an object of it.
pub(crate) fn decode(body: &[u8]) -> Result<Value, Error> {
    let mut envelope = Reader::new(body.strip_prefix(MAGIC).ok_or(Error::Magic)?);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some((number, wire)) = envelope.next()? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader::new(meta);
                while let Some((number, wire)) = meta.next()? {
                    match number {
                        1 => api_version = wire.text()?,
                        2 => kind = wire.text()?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = type_name(&api_version, &kind)
        .ok_or_else(|| Error::UnknownKind { api_version: api_version.clone(), kind: kind.clone() })?;
    let mut object = message(&name, raw, DEPTH)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

fn type_name(api_version: &str, kind: &str) -> Option<String> {
    // Every group has these, and each means the same.
    if kind == "DeleteOptions" {
        return Some(format!("{META}DeleteOptions"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    definitions().by_kind(group, version, kind).map(str::to_owned)
}

/// Reads one message of the named type.
fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
    if let Some(value) = special(name, bytes, depth)? {
        return Ok(value);
    }
    let fields = fields_of(name);
    let mut object = Map::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if let Some(field) = fields.iter().find(|field| field.number == number) {
            read_field(field, wire, &mut object, depth)?;
        }
    }
    for field in &fields {
        settle(field, &mut object);
    }
    Ok(Value::Object(object))
}

fn read_field(
    field: &Field,
    wire: Wire<'_>,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Error> {
    match field.repeat {
        Repeat::Map => {
            let mut entry = Reader::new(wire.bytes()?);
            let (mut key, mut value) = (String::new(), field.kind.zero());
            while let Some((number, wire)) = entry.next()? {
                match number {
                    1 => key = wire.text()?,
                    2 => value = read(&field.kind, wire, depth)?,
                    _ => {}
                }
            }
            let map = object.entry(field.json.clone()).or_insert_with(|| json!({}));
            map[key.as_str()] = value;
        }
        Repeat::List => {
            let items = match (&field.kind, wire) {
                // Numbers may come packed into one value.
                (Kind::Integer, Wire::Bytes(packed)) => {
                    let mut reader = Reader::new(packed);
                    let mut items = Vec::new();
                    while !reader.is_empty() {
                        items.push(json!(reader.varint()? as i64));
                    }
                    items
                }
                (kind, wire) => vec![read(kind, wire, depth)?],
            };
            let list = object.entry(field.json.clone()).or_insert_with(|| json!([]));
            list.as_array_mut().expect("a repeated field must have become a list").extend(items);
        }
        Repeat::One => {
            let value = read(&field.kind, wire, depth)?;
            match value {
                // Its fields stand in the parent.
                Value::Object(inner) if field.inline => object.extend(inner),
                value => drop(object.insert(field.json.clone(), value)),
            }
        }
    }
    Ok(())
}

fn read(kind: &Kind, wire: Wire<'_>, depth: usize) -> Result<Value, Error> {
    Ok(match kind {
        Kind::Text => json!(wire.text()?),
        Kind::Bytes => json!(STANDARD.encode(wire.bytes()?)),
        Kind::Boolean => json!(wire.number()? != 0),
        Kind::Integer => json!(wire.number()? as i64),
        Kind::Double => double(f64::from_bits(wire.number()?)),
        Kind::Message(name) => message(name, wire.bytes()?, depth)?,
        Kind::ListOf(item) => {
            let mut reader = Reader::new(wire.bytes()?);
            let mut items = Vec::new();
            while let Some((_, wire)) = reader.next()? {
                items.push(read(item, wire, depth.checked_sub(1).ok_or(Error::TooDeep)?)?);
            }
            json!(items)
        }
    })
}

/// JSON knows one kind of number, and Go writes the whole ones without a point.
fn double(number: f64) -> Value {
    let whole = number.fract() == 0.0 && number.abs() < 9e15;
    if whole { json!(number as i64) } else { json!(number) }
}

/// Go writes the empty values of plain fields; JSON leaves out those that are marked so, and shows the rest.
fn settle(field: &Field, object: &mut Map<String, Value>) {
    if field.inline || field.pointer {
        return;
    }
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(value) => !value,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && field.repeat == Repeat::Map,
    };
    match object.get(&field.json) {
        Some(value) if field.omit_empty && empty(value) => drop(object.remove(&field.json)),
        Some(Value::Null) => drop(object.remove(&field.json)),
        _ => {}
    }
}

/// Types whose JSON is not an object of their fields.
fn special(name: &str, bytes: &[u8], depth: usize) -> Result<Option<Value>, Error> {
    let short = name.rsplit('.').next().unwrap_or_default();
    Ok(Some(match short {
        "Time" | "MicroTime" if name.starts_with(META) => time(bytes, short == "MicroTime")?,
        "Quantity" => json!(first(bytes, 1)?.map_or(Ok(String::new()), Wire::text)?),
        "IntOrString" => {
            let is_text = first(bytes, 1)?.map_or(Ok(0), Wire::number)? == 1;
            if is_text {
                json!(first(bytes, 3)?.map_or(Ok(String::new()), Wire::text)?)
            } else {
                json!(first(bytes, 2)?.map_or(Ok(0), Wire::number)? as i64)
            }
        }
        "RawExtension" | "FieldsV1" | "JSON" => {
            let raw = first(bytes, 1)?.map_or(Ok(&[][..]), Wire::bytes)?;
            if raw.starts_with(MAGIC) {
                decode(raw)?
            } else if raw.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(raw).map_err(|_| Error::Malformed)?
            }
        }
        "Duration" if name.starts_with(META) => {
            let nanoseconds = first(bytes, 1)?.map_or(Ok(0), Wire::number)? as i64;
            json!(format!("{}s", nanoseconds as f64 / 1e9))
        }
        "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
            alternatives(name, bytes, depth)?
        }
        _ => return Ok(None),
    }))
}

/// A schema, or else a yes or no, a list of schemas, or a list of names.
fn alternatives(name: &str, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    let props = format!("{}JSONSchemaProps", &name[..name.rfind('.').map_or(0, |dot| dot + 1)]);
    let is_bool = name.ends_with("OrBool");
    let schema_number = if is_bool { 2 } else { 1 };
    if let Some(wire) = first(bytes, schema_number)? {
        return message(&props, wire.bytes()?, depth);
    }
    if is_bool {
        return Ok(json!(first(bytes, 1)?.map_or(Ok(0), Wire::number)? != 0));
    }
    let mut reader = Reader::new(bytes);
    let mut items = Vec::new();
    while let Some((number, wire)) = reader.next()? {
        match (number, name.ends_with("OrArray")) {
            (2, true) if !name.ends_with("OrStringArray") => {
                items.push(message(&props, wire.bytes()?, depth)?);
            }
            (2, _) => items.push(json!(wire.text()?)),
            _ => {}
        }
    }
    Ok(json!(items))
}

fn first(bytes: &[u8], wanted: u32) -> Result<Option<Wire<'_>>, Error> {
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if number == wanted {
            return Ok(Some(wire));
        }
    }
    Ok(None)
}

fn time(bytes: &[u8], micro: bool) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let seconds = first(bytes, 1)?.map_or(Ok(0), Wire::number)? as i64;
    let nanoseconds = first(bytes, 2)?.map_or(Ok(0), Wire::number)? as i32;
    let moment = jiff::Timestamp::new(seconds, nanoseconds).map_err(|_| Error::Malformed)?;
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(json!(moment.strftime(format).to_string()))
}

#[cfg(test)]
mod tests;
