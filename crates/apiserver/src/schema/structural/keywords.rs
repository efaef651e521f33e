//! Keywords that are not supported, contradict each other, or have values that mean nothing.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{FieldError, META_FIELDS, additional, flag, properties, text};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with the keywords of a schema and all below it.
pub(super) fn errors(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut walk = Walk { errors: Vec::new() };
    walk.schema(schema, path, &SchemaPosition { root: true, in_metadata: false, no_defaults: None });
    walk.errors
}

struct SchemaPosition {
    root: bool,
    in_metadata: bool,
    no_defaults: Option<String>,
}

struct Walk {
    errors: Vec<FieldError>,
}

impl Walk {
    fn schema(&mut self, schema: &Value, path: &str, place: &SchemaPosition) {
        if !schema.is_object() {
            return;
        }
        self.unsupported(schema, path, place);
        self.combinations(schema, path);
        self.lists(schema, path);
        self.rules(schema, path);
        self.children(schema, path, place);
    }

    fn unsupported(&mut self, schema: &Value, path: &str, place: &SchemaPosition) {
        let kind = text(schema, "type");
        if kind == "null" {
            let why = "type cannot be set to null, use nullable as an alternative";
            self.errors.push(FieldError::forbidden(&format!("{path}.type"), why));
        }
        if !kind.is_empty() && !TYPES.contains(&kind) {
            let supported: Vec<String> = TYPES.iter().map(ToString::to_string).collect();
            let found = Value::String(kind.to_owned());
            self.errors.push(FieldError::not_supported(&format!("{path}.type"), &found, &supported));
        }
        if let (Some(_), Some(reason)) = (schema.get("default"), &place.no_defaults) {
            self.errors.push(FieldError::forbidden(
                &format!("{path}.default"),
                &format!("must not be set {reason}"),
            ));
        }
        for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if schema.get(keyword).is_some_and(|value| !value.is_null()) {
                let at = format!("{path}.{keyword}");
                self.errors.push(FieldError::forbidden(&at, &format!("{keyword} is not supported")));
            }
        }
        if schema.get("items").is_some_and(Value::is_array) {
            let why = "items must be a schema object and not an array";
            self.errors.push(FieldError::forbidden(&format!("{path}.items"), why));
        }
        if flag(schema, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(FieldError::forbidden(&format!("{path}.uniqueItems"), why));
        }
        if place.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            let at = format!("{path}.x-kubernetes-embedded-resource");
            self.errors.push(FieldError::forbidden(&at, "must not be used inside of resource meta"));
        }
    }

    fn combinations(&mut self, schema: &Value, path: &str) {
        let has_properties = properties(schema).is_some_and(|properties| !properties.is_empty());
        let additional = schema.get("additionalProperties");
        if has_properties && additional.is_some_and(|additional| *additional != Value::Bool(true)) {
            let why = "additionalProperties and properties are mutual exclusive";
            self.errors.push(FieldError::forbidden(&format!("{path}.additionalProperties"), why));
        }
        let preserve = "x-kubernetes-preserve-unknown-fields";
        if schema.get(preserve) == Some(&Value::Bool(false)) {
            let at = format!("{path}.{preserve}");
            self.errors.push(FieldError::invalid(&at, &Value::Bool(false), "must be true or undefined"));
        }
        if let Some(map_type) = schema.get("x-kubernetes-map-type") {
            self.needs_type(schema, path, "object", "must be object if x-kubernetes-map-type is specified");
            self.one_of(map_type, &format!("{path}.x-kubernetes-map-type"), &["atomic", "granular"]);
        }
    }

    fn needs_type(&mut self, schema: &Value, path: &str, kind: &str, why: &str) {
        let (found, at) = (text(schema, "type"), format!("{path}.type"));
        if found.is_empty() {
            self.errors.push(FieldError::required(&at, why));
        } else if found != kind {
            self.errors.push(FieldError::invalid(&at, &Value::String(found.to_owned()), why));
        }
    }

    fn one_of(&mut self, value: &Value, at: &str, known: &[&str]) {
        if !value.as_str().is_some_and(|text| known.contains(&text)) {
            let supported: Vec<String> = known.iter().map(ToString::to_string).collect();
            self.errors.push(FieldError::not_supported(at, value, &supported));
        }
    }

    fn lists(&mut self, schema: &Value, path: &str) {
        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let keys = keys.map_or(&[][..], Vec::as_slice);
        let at = format!("{path}.x-kubernetes-list-type");
        let Some(list_type) = schema.get("x-kubernetes-list-type") else {
            if !keys.is_empty() {
                let why = "must be map if x-kubernetes-list-map-keys is non-empty";
                self.errors.push(FieldError::required(&at, why));
            }
            return;
        };
        self.needs_type(schema, path, "array", "must be array if x-kubernetes-list-type is specified");
        self.one_of(list_type, &at, &["atomic", "set", "map"]);
        match list_type.as_str() {
            Some("map") => self.list_map(schema, path, keys),
            Some("set") => self.list_set(schema, path),
            _ => {}
        }
        if !keys.is_empty() && list_type != "map" {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(FieldError::invalid(&at, list_type, why));
        }
    }

    fn list_set(&mut self, schema: &Value, path: &str) {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let Some(items) = schema.get("items") else { return };
        let (keyword, granular) = match text(items, "type") {
            "array" => {
                ("x-kubernetes-list-type", !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic"))
            }
            "object" => ("x-kubernetes-map-type", text(items, "x-kubernetes-map-type") != "atomic"),
            _ => return,
        };
        if granular {
            let found = items.get("x-kubernetes-list-type").cloned().unwrap_or(Value::Null);
            self.errors.push(FieldError::invalid(&format!("{path}.items.{keyword}"), &found, why));
        }
    }

    fn list_map(&mut self, schema: &Value, path: &str, keys: &[Value]) {
        let at = format!("{path}.x-kubernetes-list-map-keys");
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(&at, why));
        }
        let Some(items) = schema.get("items") else {
            let why = "must have a schema if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(&format!("{path}.items"), why));
            return;
        };
        if text(items, "type") != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            let found = Value::String(text(items, "type").to_owned());
            self.errors.push(FieldError::invalid(&format!("{path}.items.type"), &found, why));
            return;
        }
        let empty = Map::new();
        let declared = properties(items).unwrap_or(&empty);
        // Each error tells all keys; of very many, some.
        let all = Value::Array(keys.iter().take(64).cloned().collect());
        let mut seen = BTreeSet::new();
        for key in keys.iter().filter_map(Value::as_str) {
            match declared.get(key) {
                None => {
                    let why = "entries must all be names of item properties";
                    self.errors.push(FieldError::invalid(&at, &all, why));
                }
                Some(property) if matches!(text(property, "type"), "array" | "object") => {
                    let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let at = format!("{path}.items.properties[{key}].type");
                    self.errors.push(FieldError::invalid(&at, &json!("object"), why));
                }
                Some(property) => self.key_property(items, property, key, &format!("{path}.items")),
            }
            if !seen.insert(key) {
                self.errors.push(FieldError::invalid(&at, &all, "must not contain duplicate entries"));
            }
        }
    }

    /// Keys must always be there, or items could not be told apart.
    fn key_property(&mut self, items: &Value, property: &Value, key: &str, path: &str) {
        let required = items.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|names| names.iter().any(|name| name == key));
        if property.get("default").is_none() && !required {
            let at = format!("{path}.properties[{key}].default");
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                       required property";
            self.errors.push(FieldError::required(&at, why));
        }
        if flag(property, "nullable") {
            let at = format!("{path}.properties[{key}].nullable");
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            self.errors.push(FieldError::forbidden(&at, why));
        }
    }

    fn rules(&mut self, schema: &Value, path: &str) {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for (index, rule) in rules.into_iter().flatten().enumerate() {
            let at = |field: &str| format!("{path}.x-kubernetes-validations[{index}].{field}");
            let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
            let given = Value::String(message.to_owned());
            if expression.is_empty() {
                self.errors.push(FieldError::required(&at("rule"), "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                self.errors.push(FieldError::invalid(
                    &at("message"),
                    &given,
                    "must be non-empty if specified",
                ));
            } else if message.trim().contains('\n') {
                self.errors.push(FieldError::invalid(&at("message"), &given, "must not contain line breaks"));
            } else if expression.contains('\n') && message.trim().is_empty() {
                let why = "message must be specified if rule contains line breaks";
                self.errors.push(FieldError::required(&at("message"), why));
            }
            if let Some(reason) = rule.get("reason") {
                self.one_of(reason, &at("reason"), &REASONS);
            }
            if let Some(below) = rule.get("fieldPath").and_then(Value::as_str)
                && !is_field_path(schema, below)
            {
                let given = Value::String(below.to_owned());
                self.errors.push(FieldError::invalid(&at("fieldPath"), &given, "must be a valid path"));
            }
        }
    }

    fn children(&mut self, schema: &Value, path: &str, place: &SchemaPosition) {
        let inherited = |no_defaults: Option<String>| SchemaPosition {
            root: false,
            in_metadata: place.in_metadata,
            no_defaults,
        };
        let plain = inherited(place.no_defaults.clone());
        if let Some(additional) = additional(schema) {
            let at = format!("{path}.additionalProperties");
            let reason = place
                .in_metadata
                .then(|| "inside additionalProperties applying to object metadata".to_owned());
            self.schema(additional, &at, &inherited(reason.or_else(|| place.no_defaults.clone())));
        }
        let whole = place.root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, property) in properties(schema).into_iter().flatten() {
            let mut below = inherited(place.no_defaults.clone());
            if whole && META_FIELDS.contains(&name.as_str()) {
                below.in_metadata = true;
                if place.root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.schema(property, &format!("{path}.properties[{name}]"), &below);
        }
        if let Some(items) = schema.get("items") {
            self.schema(items, &format!("{path}.items"), &plain);
        }
        if let Some(not) = schema.get("not") {
            self.schema(not, &format!("{path}.not"), &plain);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            let list = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
            for (index, inner) in list.enumerate() {
                self.schema(inner, &format!("{path}.{keyword}[{index}]"), &plain);
            }
        }
    }
}

/// Whether `.a.b['c']` leads to something that the schema declares.
fn is_field_path(schema: &Value, path: &str) -> bool {
    let mut at = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            match quoted.split_once("']") {
                Some(parts) => parts,
                None => return false,
            }
        } else if let Some(plain) = rest.strip_prefix('.') {
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            plain.split_at(end)
        } else {
            return false;
        };
        let below = properties(at).map_or_else(|| additional(at), |properties| properties.get(name));
        match below {
            Some(below) => at = below,
            None => return false,
        }
        rest = after;
    }
    !path.is_empty()
}
