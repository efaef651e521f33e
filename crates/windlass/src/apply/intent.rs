//! The body of an apply: a typed child as the JSON that is sent, with owner reference, kind and namespace.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::{Owner, strip_nulls};
use crate::{
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey},
    owner,
};

/// Builds the body. Leaves out what an apply must not carry: status, nulls, and metadata that the server sets.
///
/// A detached child bears the marks of its owner in the place of a reference.
pub(super) fn body<K: AnyObject>(
    child: &K,
    kind: &Kind,
    key: &ObjectKey,
    of: &Owner,
    detached: bool,
) -> Result<Value> {
    let encode = |source| Error::Encode { kind: Box::new(kind.clone()), key: key.clone(), source };
    let mut body = serde_json::to_value(child).map_err(encode)?;
    strip_nulls(&mut body);
    let reference = serde_json::to_value(&of.reference).map_err(encode)?;
    let Value::Object(fields) = &mut body else {
        let reason = "it does not serialise as a JSON object";
        return Err(Error::InvalidChild { kind: Box::new(kind.clone()), key: key.clone(), reason });
    };
    fields.remove("status");
    fields.insert("apiVersion".into(), kind.api_version().into());
    fields.insert("kind".into(), kind.kind.clone().into());
    if kind.kind == "Secret" && kind.group.is_empty() {
        encode_string_data(fields);
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        for server_side in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
            metadata.remove(server_side);
        }
        if let Some(namespace) = key.namespace() {
            metadata.insert("namespace".into(), namespace.into());
        }
        if detached {
            metadata.entry("labels").or_insert_with(|| json!({}))[owner::OWNER_UID] =
                reference["uid"].clone();
            let place = owner::place(&of.kind, &of.key);
            metadata.entry("annotations").or_insert_with(|| json!({}))[owner::OWNER] = place.into();
            return Ok(body);
        }
        let owners = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
        if let Value::Array(owners) = owners {
            owners.retain(|existing| existing["uid"] != reference["uid"]);
            owners.push(reference);
        }
    }
    Ok(body)
}

/// `stringData` is write-only: the server turns it into `data`, where it could never be compared again.
fn encode_string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(strings)) = secret.remove("stringData") else { return };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    if let Value::Object(data) = data {
        for (name, text) in strings {
            let encoded = BASE64_STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(name, encoded.into());
        }
    }
}
