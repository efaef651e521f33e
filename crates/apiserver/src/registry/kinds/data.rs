//! What ConfigMaps and Secrets share: keys, size, and what was declared immutable.

use serde_json::{Value, json};

use super::check::{Causes, entries};
use crate::error::Cause;

/// How long the data of a ConfigMap or Secret may be.
pub(super) const LONGEST: usize = 1024 * 1024;

/// Checks the name of an entry.
pub(super) fn key(causes: &mut Causes, key: &str, field: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let why = if key.len() > 253 {
        "must be no more than 253 characters"
    } else if key.is_empty() || !key.bytes().all(plain) {
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  \
         or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    } else if key == "." {
        "must not be '.'"
    } else if key == ".." {
        "must not be '..'"
    } else if key.starts_with("..") {
        "must not start with '..'"
    } else {
        return;
    };
    causes.push(Cause::invalid(format!("{field}[{key}]"), &json!(key), why));
}

/// What was declared immutable stays as it is.
pub(super) fn kept(causes: &mut Causes, new: &Value, old: Option<&Value>, fields: &[&str]) {
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else { return };
    let why = "field is immutable when `immutable` is set";
    if new["immutable"] != json!(true) {
        causes.push(Cause::forbidden("immutable", why));
    }
    for field in fields.iter().filter(|field| new.get(**field) != old.get(**field)) {
        causes.push(Cause::forbidden(*field, why));
    }
}

/// How long the values of a map are that are written in base64.
pub(super) fn decoded_size(object: &Value, field: &str) -> usize {
    let size = |text: &str| text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count();
    entries(object, field)
        .map(|(_, value)| value.as_str().filter(|text| text.len() >= 4).map_or(0, size))
        .sum()
}

/// How many entries these maps of an object have.
pub(super) fn count(object: &Value, fields: &[&str]) -> usize {
    fields.iter().filter_map(|field| object.get(field).and_then(Value::as_object)).map(|map| map.len()).sum()
}
