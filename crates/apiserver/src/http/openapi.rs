//! OpenAPI v3: the types of every group version, as far as clients look at them.
//!
//! `kubectl apply` takes merge keys from here, `kubectl explain` fields, and both look into the paths to
//! learn which kind a resource has and whether it can be tried out with a dry run.

mod v2;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use http::{HeaderValue, Response, header};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Body, Call, answer};
use crate::{
    descriptions::describe,
    registry::{Catalog, Origin, Resource, catalog, definitions},
    schema,
};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

impl Call<'_> {
    pub(super) fn open_api(&self, document: Option<&str>) -> Response<Body> {
        let catalog = self.registry.catalog();
        let Some(path) = document else {
            let index = index(&catalog, self.registry.descriptions().is_some()).to_string();
            let tag = answer::tag(index.as_bytes());
            return self.unless_known(&tag, || answer::bytes(index.into()));
        };
        let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["api", version] => (String::new(), (*version).to_owned()),
            ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
            _ => return answer::not_a_path(),
        };
        let Some(found) = catalog.version(&group, &version) else { return answer::not_a_path() };
        let hash = fingerprint(found, self.registry.descriptions().is_some());
        let told = || self.registry.descriptions().map(|known| known.schemas(&group, &version));
        let mut response = self.unless_known(&hash, || answer::json(&self::document(&group, found, told())));
        if self.query.get("hash") == hash {
            // The address names the content: a client that has it need never ask again.
            let headers = response.headers_mut();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            let year = SignedDuration::from_hours(365 * 24);
            let end = self.registry.environment().now().saturating_add(year).unwrap_or(Timestamp::MAX);
            let end = end.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            if let Ok(end) = HeaderValue::from_str(&end) {
                headers.insert(header::EXPIRES, end);
            }
        }
        response
    }
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The list of documents. The hash in each address changes when the document does, so that clients may
/// keep what they have.
fn index(catalog: &Catalog, described: bool) -> Value {
    let mut paths = BTreeMap::new();
    for group in &catalog.groups {
        for version in &group.versions {
            let path = path_of(&group.name, &version.name);
            let hash = fingerprint(version, described);
            paths.insert(
                path.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}),
            );
        }
    }
    json!({"paths": paths})
}

/// A hash of what a document is made from: cheaper than the document, and as telling.
fn fingerprint(version: &catalog::Version, described: bool) -> String {
    static TYPES: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(schema::KUBERNETES).into());
    let mut hasher = Sha256::new();
    hasher.update(*TYPES);
    hasher.update([u8::from(described)]);
    for resource in &version.resources {
        hasher.update(resource.plural.as_bytes());
        if let Some(served) = resource.custom() {
            hasher.update(served.schema.to_string().as_bytes());
        }
    }
    format!(
        "{:X}",
        u128::from_be_bytes(*hasher.finalize().first_chunk().expect("a SHA-256 must have 32 bytes"))
    )
}

fn document(group: &str, version: &catalog::Version, told: Option<BTreeMap<String, Value>>) -> Value {
    let mut schemas = Schemas { told: told.unwrap_or_default(), ..Schemas::default() };
    let mut paths = Map::new();
    for resource in &version.resources {
        let name = schemas.add(resource);
        add_paths(&mut paths, group, &version.name, resource, &name);
    }
    for name in ["DeleteOptions", "Patch", "Status", "WatchEvent"] {
        schemas.need(&format!("{META}{name}"));
    }
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.37.1"},
        "paths": paths, "components": {"schemas": schemas.done()},
    })
}

/// The definitions that a document needs, collected along their references.
#[derive(Default)]
struct Schemas {
    done: BTreeMap<String, Value>,
    needed: BTreeSet<String>,
    /// The same types with words.
    told: BTreeMap<String, Value>,
}

impl Schemas {
    /// Adds the type of a resource and returns its name.
    fn add(&mut self, resource: &Resource) -> String {
        match &resource.origin {
            Origin::BuiltIn { definition } => {
                self.need(definition);
                definition.clone()
            }
            Origin::Custom(served) => {
                let name = name_of(resource);
                self.insert(&name, custom_schema(resource, &served.schema));
                name
            }
        }
    }

    fn need(&mut self, name: &str) {
        if !self.done.contains_key(name) {
            self.needed.insert(name.to_owned());
        }
    }

    fn insert(&mut self, name: &str, schema: Value) {
        self.references(&schema);
        self.done.insert(name.to_owned(), schema);
    }

    fn references(&mut self, schema: &Value) {
        match schema {
            Value::Object(map) => {
                if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                    self.need(name.trim_start_matches("#/components/schemas/"));
                }
                map.values().for_each(|value| self.references(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.references(value)),
            _ => {}
        }
    }

    fn done(mut self) -> BTreeMap<String, Value> {
        while let Some(name) = self.needed.pop_first() {
            match definitions().get(&name) {
                Some(mut schema) => {
                    if let Some(told) = self.told.get(&name) {
                        describe(&mut schema, told);
                    }
                    self.insert(&name, schema);
                }
                None => drop(self.done.insert(name, json!({"type": "object"}))),
            }
        }
        self.done
    }
}

/// The name of a resource's type.
fn name_of(resource: &Resource) -> String {
    match &resource.origin {
        Origin::BuiltIn { definition } => definition.clone(),
        Origin::Custom(_) => {
            let reversed: Vec<&str> = resource.group.split('.').rev().collect();
            format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind)
        }
    }
}

/// What every object has, described as the real server describes it.
fn add_type_meta(schema: &mut Value) {
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    let properties = &mut schema["properties"];
    properties["apiVersion"] = json!({"type": "string", "description": format!(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
         recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
         {conventions}#resources"
    )});
    properties["kind"] = json!({"type": "string", "description": format!(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from \
         the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
         {conventions}#types-kinds"
    )});
    properties["metadata"] = json!({
        "allOf": [{"$ref": format!("#/components/schemas/{META}ObjectMeta")}],
        "description": format!("Standard object's metadata. More info: {conventions}#metadata"),
    });
}

/// A custom resource's schema with what every object has.
fn custom_schema(resource: &Resource, schema: &Value) -> Value {
    let mut schema = schema.clone();
    add_type_meta(&mut schema);
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": &*resource.group, "version": &*resource.version, "kind": resource.kind}]);
    schema
}

fn add_paths(paths: &mut Map<String, Value>, group: &str, version: &str, resource: &Resource, schema: &str) {
    let root = format!("/{}", path_of(group, version));
    let place = if resource.namespaced { format!("{root}/namespaces/{{namespace}}") } else { root };
    let collection = format!("{place}/{}", resource.plural);
    let kind = json!({"group": &*resource.group, "version": &*resource.version, "kind": resource.kind});
    let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        })
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    let mut many = Map::new();
    let mut one = Map::new();
    for verb in &resource.verbs {
        let (operations, method, action, parameters): (_, _, _, &[&str]) = match verb.as_str() {
            "list" => (&mut many, "get", "list", &["labelSelector", "fieldSelector", "limit"]),
            "create" => (&mut many, "post", "post", &write),
            "deletecollection" => (&mut many, "delete", "deletecollection", &["dryRun"]),
            "get" => (&mut one, "get", "get", &[]),
            "update" => (&mut one, "put", "put", &write),
            "patch" => (&mut one, "patch", "patch", &write),
            "delete" => (&mut one, "delete", "delete", &["dryRun", "propagationPolicy"]),
            _ => continue,
        };
        operations.insert(method.into(), operation(action, parameters));
    }
    if !many.is_empty() {
        paths.insert(collection.clone(), Value::Object(many));
    }
    if !one.is_empty() {
        paths.insert(format!("{collection}/{{name}}"), Value::Object(one));
    }
}
