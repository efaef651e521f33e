//! What a definition says and nobody will heed: formats that are not known, sets of what cannot be one.

use serde_json::Value;

use super::text;

/// The formats of strings, without their hyphens.
const FORMATS: [&str; 24] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
];

/// What to tell whoever writes a definition; of what was there before, nothing.
pub(super) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(found).unwrap_or_default();
    found(new).into_iter().filter(|warning| !before.contains(warning)).collect()
}

fn found(definition: &Value) -> Vec<String> {
    let (mut formats, mut sets) = (Vec::new(), Vec::new());
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            walk(schema, &mut formats, &mut sets);
        }
    }
    sets.sort();
    sets.dedup();
    formats.extend(sets);
    formats
}

fn walk(schema: &Value, formats: &mut Vec<String>, sets: &mut Vec<String>) {
    let format = text(schema, "/format");
    let known = match text(schema, "/type") {
        _ if format.is_empty() => true,
        "" | "string" => {
            FORMATS.contains(&format.replace('-', "").as_str())
                || ["k8s-short-name", "k8s-long-name"].contains(&format)
        }
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    };
    if !known {
        formats.push(format!("unrecognized format {format:?}"));
    }
    let items = text(schema, "/items/type");
    if text(schema, "/x-kubernetes-list-type") == "set" && ["object", "array"].contains(&items) {
        sets.push(format!(
            "x-kubernetes-list-type: set for items of type {items:?} is not supported by server-side apply or CEL validation \
             rules"
        ));
    }
    for field in ["items", "not", "additionalProperties"] {
        if let Some(inner) = schema.get(field).filter(|inner| inner.is_object()) {
            walk(inner, formats, sets);
        }
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        schema[field].as_array().into_iter().flatten().for_each(|inner| walk(inner, formats, sets));
    }
    for field in ["properties", "patternProperties", "definitions"] {
        schema[field].as_object().into_iter().flatten().for_each(|(_, inner)| walk(inner, formats, sets));
    }
}
