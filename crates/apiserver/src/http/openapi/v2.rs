//! OpenAPI v2: one document with the types of everything that is served, for clients that read no v3.
//!
//! It is made from the same definitions as v3, with what v2 cannot say left out in the way that the real server
//! leaves it out of the schemas of custom resources.

use std::sync::OnceLock;

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{META, Schemas, add_paths, fingerprint};
use crate::{
    http::{Body, Call, answer},
    registry::{Catalog, Resource, catalog},
};

impl Call<'_> {
    /// The document, or nothing new for a client that has this one.
    pub(in crate::http) fn open_api_v2(&self) -> Response<Body> {
        let accept = self.header(header::ACCEPT);
        if accept.contains("proto-openapi") && !accept.contains("json") {
            // Clients that ask for protobuf alone go on with v3 when there is none.
            return answer::not_a_path();
        }
        let catalog = self.registry.catalog();
        let tag = format!("\"{}\"", fingerprint_of(&catalog));
        let known = self.header(header::IF_NONE_MATCH).split(',').any(|one| one.trim() == tag);
        let mut response = if known {
            answer::with_status(answer::bytes(bytes::Bytes::new()), StatusCode::NOT_MODIFIED)
        } else {
            answer::json(&document(&catalog))
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

fn fingerprint_of(catalog: &Catalog) -> String {
    let mut hasher = Sha256::new();
    for (group, version) in versions(catalog) {
        hasher.update(group.as_bytes());
        hasher.update([0]);
        hasher.update(version.name.as_bytes());
        hasher.update(fingerprint(version, false));
    }
    let digest = hasher.finalize();
    format!("{:X}", u128::from_be_bytes(*digest.first_chunk().expect("a SHA-256 must have 32 bytes")))
}

fn versions(catalog: &Catalog) -> impl Iterator<Item = (&str, &catalog::Version)> {
    catalog.groups.iter().flat_map(|group| group.versions.iter().map(|version| (&*group.name, version)))
}

fn document(catalog: &Catalog) -> Value {
    let mut definitions = built_in(catalog).clone();
    let mut paths = Map::new();
    for (group, version) in versions(catalog) {
        for resource in &version.resources {
            let name = super::name_of(resource);
            if let Some(served) = resource.custom() {
                definitions.insert(name.clone(), custom_definition(resource, &served.schema));
            }
            add_paths(&mut paths, group, &version.name, resource, &name);
        }
    }
    let mut paths = Value::Object(paths);
    flatten(&mut paths);
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.37.1"},
        "paths": paths, "definitions": definitions,
    })
}

/// The types of the built-in kinds never change: they are collected once.
fn built_in(catalog: &Catalog) -> &'static Map<String, Value> {
    static BUILT_IN: OnceLock<Map<String, Value>> = OnceLock::new();
    BUILT_IN.get_or_init(|| {
        let mut schemas = Schemas::default();
        for (_, version) in versions(catalog) {
            let built_in = version.resources.iter().filter(|resource| resource.custom().is_none());
            built_in.for_each(|resource| drop(schemas.add(resource)));
        }
        for name in ["DeleteOptions", "ObjectMeta", "Patch", "Status", "WatchEvent"] {
            schemas.need(&format!("{META}{name}"));
        }
        let lower = |(name, mut schema): (String, Value)| {
            flatten(&mut schema);
            (name, schema)
        };
        schemas.done().into_iter().map(lower).collect()
    })
}

/// A custom resource's type. One that takes unknown fields at its root says nothing else: a client would take
/// what it lists for all that there may be.
fn custom_definition(resource: &Resource, schema: &Value) -> Value {
    let mut schema = if schema["x-kubernetes-preserve-unknown-fields"] == json!(true) || schema.is_null() {
        json!({"type": "object"})
    } else {
        let mut schema = schema.clone();
        reduce(&mut schema);
        super::add_type_meta(&mut schema);
        schema
    };
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": &*resource.group, "version": &*resource.version, "kind": resource.kind}]);
    flatten(&mut schema);
    schema
}

/// Leaves out of a custom schema what v2 does not know.
fn reduce(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    for word in ["allOf", "oneOf", "anyOf", "not"] {
        map.remove(word);
    }
    let nullable = map.remove("nullable") == Some(json!(true));
    let open = map.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    if nullable || open {
        map.remove("items");
        map.remove("properties");
    }
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
    if nullable || (open && kind == "object") || (kind == "array" && !map.contains_key("items")) {
        map.remove("type");
    }
    require_no_nullable(map);
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(reduce);
    }
    for child in ["items", "additionalProperties"] {
        if let Some(child) = map.get_mut(child) {
            reduce(child);
        }
    }
}

/// What may be null cannot be required where null cannot be said.
fn require_no_nullable(map: &mut Map<String, Value>) {
    let nullable = |name: &Value| {
        let property = map.get("properties").and_then(|all| all.get(name.as_str().unwrap_or_default()));
        property.is_some_and(|property| property["nullable"] == json!(true))
    };
    let Some(required) = map.get("required").and_then(Value::as_array) else { return };
    let kept: Vec<Value> = required.iter().filter(|name| !nullable(name)).cloned().collect();
    if kept.is_empty() {
        map.remove("required");
    } else {
        map.insert("required".into(), Value::Array(kept));
    }
}

/// From the words of v3 to those of v2: references without a wrapper, responses without media types.
fn flatten(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Array(all)) = map.get("allOf")
                && let [one] = all.as_slice()
                && let Some(reference) = one.get("$ref").cloned()
            {
                map.remove("allOf");
                map.remove("default");
                map.insert("$ref".into(), reference);
            }
            if let Some(schema) =
                map.get("content").and_then(|content| content.pointer("/application~1json/schema"))
            {
                let schema = schema.clone();
                map.remove("content");
                map.insert("schema".into(), schema);
            }
            if let Some(text) = map.get_mut("$ref")
                && let Some(name) = text.as_str().and_then(|text| text.strip_prefix("#/components/schemas/"))
            {
                *text = format!("#/definitions/{name}").into();
            }
            map.values_mut().for_each(flatten);
        }
        Value::Array(list) => list.iter_mut().for_each(flatten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_v2_cannot_say_is_left_out() {
        let mut schema = json!({
            "type": "object", "required": ["a", "b"], "anyOf": [{"required": ["b"]}],
            "properties": {
                "a": {"type": "string", "nullable": true},
                "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"c": {}}},
                "d": {"type": "array", "items": {"type": "integer", "oneOf": [{}]}},
            },
        });
        reduce(&mut schema);
        let expected = json!({
            "type": "object", "required": ["b"],
            "properties": {
                "a": {}, "b": {"x-kubernetes-preserve-unknown-fields": true},
                "d": {"type": "array", "items": {"type": "integer"}},
            },
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn references_lose_their_wrapper() {
        let mut schema =
            json!({"description": "d", "default": {}, "allOf": [{"$ref": "#/components/schemas/x.Y"}]});
        flatten(&mut schema);
        assert_eq!(schema, json!({"description": "d", "$ref": "#/definitions/x.Y"}));
    }
}
