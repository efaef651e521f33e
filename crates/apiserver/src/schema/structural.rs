//! Whether a CRD's schema may be used at all: the rules of structural schemas.
//!
//! A structural schema says the shape of every value outside of `allOf`, `anyOf`, `oneOf` and
//! `not`, so that pruning and defaulting need not try alternatives. In goes the JSON of an
//! `openAPIV3Schema` as the author wrote it, out come the real server's objections.

use serde_json::{Map, Value};

use super::{FieldError, TypeRef, pattern};

mod keywords;
mod nested;
mod rules;

/// Schemas nest no deeper than this; deeper ones are refused by the loader as well.
const MAX_DEPTH: usize = 250;

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What is wrong with `schema`, which stands at `path` of the CRD and may be `unchanged` by a write of it. `resolve`
/// knows the built-in definitions.
pub fn structural_errors(
    schema: &Value,
    path: &str,
    unchanged: bool,
    resolve: &dyn Fn(&str) -> Option<Value>,
) -> Vec<FieldError> {
    if depth(schema, 0) > MAX_DEPTH {
        return vec![FieldError::forbidden(path, &format!("must not nest deeper than {MAX_DEPTH} levels"))];
    }
    let mut errors = keywords::errors(schema, path);
    if !errors.is_empty() {
        return errors;
    }
    invariants(schema, Level::Root, path, &mut errors);
    nested::completeness(schema, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    if !errors.is_empty() {
        return errors;
    }
    defaults(schema, path, resolve, &mut errors);
    if errors.is_empty() {
        errors = rules::errors(schema, path, unchanged);
    }
    errors
}

/// Where a schema stands, for the words of errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn depth(value: &Value, at: usize) -> usize {
    if at > MAX_DEPTH {
        return at;
    }
    match value {
        Value::Object(object) => object.values().map(|value| depth(value, at + 1)).max().unwrap_or(at),
        Value::Array(items) => items.iter().map(|item| depth(item, at + 1)).max().unwrap_or(at),
        _ => at,
    }
}

fn text<'v>(schema: &'v Value, keyword: &str) -> &'v str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The schema of additional properties, when it is one and not just `true`.
fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|value| value.is_object())
}

fn invariants(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    if text(schema, "type") == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(&format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = schema.get("items") {
        invariants(items, Level::Item, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema).into_iter().flatten() {
        invariants(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if schema.get("additionalProperties").is_some() {
        let at = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if let Some(additional) = additional(schema) {
            invariants(additional, Level::Field, &at, errors);
        }
    }
    extensions(schema, path, errors);
    nested::alternatives(schema, path, errors);
    types(schema, level, path, errors);
    metadata(schema, level, path, errors);
}

fn extensions(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, keyword) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&format!("{path}.{keyword}"), &Value::Bool(true), why));
        }
    }
}

fn types(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let (kind, at) = (text(schema, "type"), format!("{path}.type"));
    let kind_value = Value::String(kind.to_owned());
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let free =
        flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&at, why)
        } else {
            FieldError::invalid(&at, &kind_value, why)
        });
    } else if kind.is_empty() && !free {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at, why));
    }
    if embedded && schema.get("additionalProperties").is_some() {
        let at = format!("{path}.additionalProperties");
        errors.push(FieldError::forbidden(&at, "must not be used if x-kubernetes-embedded-resource is set"));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at, &kind_value, "must be object at the root"));
    }
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && !preserves && properties(schema).is_none_or(Map::is_empty) {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&format!("{path}.properties"), why));
    }
}

/// At the root, an author may say something about names only.
fn metadata(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let whole = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let Some(properties) = properties(schema).filter(|_| whole) else {
        return;
    };
    for name in ["kind", "apiVersion"] {
        let Some(property) = properties.get(name) else { continue };
        if text(property, "type") != "string" {
            let found = Value::String(text(property, "type").to_owned());
            let at = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(&at, &found, "must be string"));
        }
    }
    let Some(metadata) = properties.get("metadata") else { return };
    let at = format!("{path}.properties[metadata]");
    if text(metadata, "type") != "object" {
        let found = Value::String(text(metadata, "type").to_owned());
        errors.push(FieldError::invalid(&format!("{at}.type"), &found, "must be object"));
    }
    let names_only = metadata
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(|names| names.keys().all(|name| name == "name" || name == "generateName"));
    let plain = metadata.as_object().is_none_or(|keywords| {
        keywords
            .keys()
            .all(|keyword| ["type", "properties", "default", "description"].contains(&keyword.as_str()))
    });
    let described = metadata.get("description").is_some();
    if level == Level::Root && (!names_only || !plain || described) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly \
                   specified";
        errors.push(FieldError::forbidden(&at, why));
    }
}

/// Defaults must be valid themselves, and hold nothing that would be pruned.
fn defaults(
    schema: &Value,
    path: &str,
    resolve: &dyn Fn(&str) -> Option<Value>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let at = format!("{path}.default");
        if let Ok(ty) = TypeRef::from_openapi(schema, resolve) {
            let mut pruned = default.clone();
            if ty.prune(&mut pruned).is_empty() {
                let mut filled = default.clone();
                ty.apply_defaults(&mut filled);
                errors.extend(ty.validate_shape(&filled).into_iter().map(|mut error| {
                    error.field = match error.field.as_str() {
                        "<nil>" => at.clone(),
                        below => format!("{at}.{below}"),
                    };
                    error
                }));
            } else {
                let why = "must not have unknown fields";
                errors.push(FieldError::invalid(&at, default, why));
            }
        }
    }
    for (name, property) in properties(schema).into_iter().flatten() {
        defaults(property, &format!("{path}.properties[{name}]"), resolve, errors);
    }
    if let Some(additional) = additional(schema) {
        defaults(additional, &format!("{path}.additionalProperties"), resolve, errors);
    }
    if let Some(items) = schema.get("items") {
        defaults(items, &format!("{path}.items"), resolve, errors);
    }
}

/// A pattern that does not compile.
fn pattern_error(schema: &Value, path: &str) -> Option<FieldError> {
    let pattern = text(schema, "pattern");
    let error = pattern::compile(pattern).err()?;
    let error = pattern::complaint(pattern, &error);
    let why = format!("must be a valid regular expression, but isn't: {error}");
    Some(FieldError::invalid(&format!("{path}.pattern"), &Value::String(pattern.to_owned()), &why))
}

#[cfg(test)]
mod tests;
