//! What stands below `allOf`, `anyOf`, `oneOf` and `not`: only checks, of values whose shape is
//! said outside.

use serde_json::{Value, json};

use super::{FieldError, flag, pattern_error, properties, text};

/// The schemas directly below the four, with their paths.
fn junctors<'v>(schema: &'v Value, path: &str) -> Vec<(&'v Value, String)> {
    let mut found = Vec::new();
    for keyword in ["anyOf", "allOf", "oneOf"] {
        let list = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        found.extend(list.enumerate().map(|(index, inner)| (inner, format!("{path}.{keyword}[{index}]"))));
    }
    found.extend(schema.get("not").map(|inner| (inner, format!("{path}.not"))));
    found
}

/// `anyOf: [{type: integer}, {type: string}]`, the one way to say types below a junctor.
fn is_int_or_string(list: Option<&Value>) -> bool {
    list == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

/// Checks everything below the junctors of `schema`.
pub(super) fn alternatives(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let first_all_of = schema.get("allOf").and_then(|list| list.get(0));
    let exempt_first = first_all_of.is_some_and(|first| is_int_or_string(first.get("anyOf")));
    let exempt = is_int_or_string(schema.get("anyOf"));
    for (inner, at) in junctors(schema, path) {
        if exempt && at.starts_with(&format!("{path}.anyOf")) {
            continue;
        }
        if exempt_first && at == format!("{path}.allOf[0]") {
            continue;
        }
        value_validation(inner, &at, errors);
    }
    errors.extend(pattern_error(schema, path));
}

fn value_validation(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    alternatives(schema, path, errors);
    if let Some(items) = schema.get("items") {
        value_validation(items, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema).into_iter().flatten() {
        value_validation(property, &format!("{path}.properties[{name}]"), errors);
    }
    let mut forbid = |keyword: &str, state: &str| {
        let why = format!("must be {state} to be structural");
        errors.push(FieldError::forbidden(&format!("{path}.{keyword}"), &why));
    };
    for keyword in ["type", "title", "description"] {
        if !text(schema, keyword).is_empty() {
            forbid(keyword, "empty");
        }
    }
    for keyword in ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if schema.get(keyword).is_some() {
            forbid(keyword, "undefined");
        }
    }
    for keyword in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(schema, keyword) {
            forbid(keyword, "false");
        }
    }
    for keyword in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if schema.get(keyword).and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            forbid(keyword, "empty");
        }
    }
    if properties(schema).is_some_and(|properties| properties.contains_key("metadata")) {
        let at = format!("{path}.properties[metadata]");
        errors.push(FieldError::forbidden(&at, "must not be specified in a nested context"));
    }
}

/// Every field that is checked below a junctor of the root must be declared outside. The real
/// server looks at the root's junctors only, so nothing else is refused here either.
pub(super) fn completeness(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (inner, at) in junctors(schema, path) {
        complete(inner, Some(schema), path, &at, errors);
    }
}

fn complete(inner: &Value, outer: Option<&Value>, outside: &str, inside: &str, errors: &mut Vec<FieldError>) {
    let Some(outer) = outer else {
        errors.push(FieldError::required(outside, &format!("because it is defined in {inside}")));
        return;
    };
    for (deeper, at) in junctors(inner, inside) {
        complete(deeper, Some(outer), outside, &at, errors);
    }
    if let Some(items) = inner.get("items") {
        let (outside, inside) = (format!("{outside}.items"), format!("{inside}.items"));
        complete(items, outer.get("items"), &outside, &inside, errors);
    }
    for (name, property) in properties(inner).into_iter().flatten() {
        let declared = properties(outer).and_then(|properties| properties.get(name));
        let outside = format!("{outside}.properties[{name}]");
        complete(property, declared, &outside, &format!("{inside}.properties[{name}]"), errors);
    }
}
