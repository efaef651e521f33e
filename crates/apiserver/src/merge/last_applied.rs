//! Moving from client-side to server-side apply.
//!
//! `kubectl apply` without `--server-side` leaves what it applied in an annotation. When kubectl
//! then applies on the server, fields that still are as the annotation says cause no conflict, and
//! the annotation is kept up to date, so that the way back stays open.

use serde_json::{Value, json};

use super::{compare::Comparison, field_set::FieldSet, typed::fields_of};
use crate::schema::{TypeRef, json::escaped};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object's annotations may not be larger than this, and this one is not worth failing for.
const MAX_ANNOTATIONS_SIZE: usize = 256 * 1024;

/// Only this manager takes part; another name opts out.
pub(crate) const KUBECTL: &str = "kubectl";

fn annotation(object: &Value) -> Option<&str> {
    let text = object.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The fields that client-side apply set and nobody changed since.
pub(crate) fn still_as_applied(ty: &TypeRef, live: &Value, api_version: &str) -> Option<FieldSet> {
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if applied.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    let comparison = Comparison::of(ty, &applied, live);
    let fields = fields_of(ty, &applied)
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed);
    Some(fields)
}

/// Brings the annotation of `merged` up to date with `intent`, when there is one.
pub(crate) fn refresh(merged: &mut Value, intent: &Value) {
    if annotation(merged).is_none() {
        return;
    }
    let mut applied = intent.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    // The real server's encoder ends with a line break, and clients compare the text.
    let text = format!("{}\n", escaped(&applied));
    if let Some(Value::Object(annotations)) = merged.pointer_mut("/metadata/annotations") {
        annotations.insert(ANNOTATION.to_owned(), json!(text));
        let size: usize =
            annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if size > MAX_ANNOTATIONS_SIZE {
            annotations.remove(ANNOTATION);
        }
    }
}
