//! CustomResourceDefinitions: from a definition to served resources.
//!
//! The real server does this in controllers beside it. Here it is part of the write: when the create of
//! a definition has returned, the definition is Established and its resources are in discovery.

mod names;
mod settle;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Origin, Presented, Resource, Subresource, catalog,
    conversion::Webhook,
    decode,
    metadata::is_deleting,
    resource::{GroupVersionKind, text},
    scale,
    strategy::{Selectable, custom::CUSTOM},
};
use crate::{schema::TypeRef, store::Object};

pub(super) use self::settle::{Known, begin_deletion};

/// What `kubectl delete crd` waits for.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A column that `kubectl get` prints.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The type of its cells.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where the cell's value is.
    pub json_path: String,
    /// How the value is written, such as `date`.
    #[serde(default)]
    pub format: String,
    /// What the column means.
    #[serde(default)]
    pub description: String,
    /// 0 is always shown, 1 only in wide output.
    #[serde(default)]
    pub priority: i32,
}

/// What a served version of a custom resource adds to a [`Resource`].
#[derive(Debug)]
pub struct Served {
    /// The definition's name.
    pub definition: String,
    /// The columns of `kubectl get`.
    pub columns: Vec<Column>,
    /// Where the replicas are, if it can be scaled.
    pub scale: Option<scale::Paths>,
    /// The schema, as the definition says it.
    pub schema: Value,
    /// Whether the definition is being deleted.
    pub terminating: bool,
    /// What every request of a deprecated version is told.
    pub(super) deprecation: Option<String>,
    /// Who converts between versions, if somebody does.
    pub(super) webhook: Option<Webhook>,
    preserve_unknown: bool,
    api_version: String,
    storage_api_version: String,
    /// How the bytes of an object of this version begin.
    prefix: Vec<u8>,
    /// Objects written before this revision may lack defaults that the schema has now.
    since: u64,
    type_ref: OnceLock<TypeRef>,
    /// The schema of the version in which objects are stored, where that is another one and nobody converts.
    storage_schema: Option<Value>,
    storage_type: OnceLock<TypeRef>,
}

impl Served {
    /// The type of the objects. A schema that cannot be loaded was refused when the definition was
    /// written, so what fails here is treated as no schema at all.
    pub(super) fn type_ref(&self) -> TypeRef {
        self.type_ref.get_or_init(|| self.load(&self.schema)).clone()
    }

    fn load(&self, schema: &Value) -> TypeRef {
        let resolve = |name: &str| catalog::definitions().get(name);
        TypeRef::custom(schema, self.preserve_unknown, &resolve).unwrap_or_else(|_| TypeRef::untyped())
    }

    /// The type of what is stored, if that is of another version.
    fn storage_type(&self) -> Option<&TypeRef> {
        let schema = self.storage_schema.as_ref()?;
        Some(self.storage_type.get_or_init(|| self.load(schema)))
    }

    /// A stored object as this version shows it.
    pub(super) fn present(&self, object: &Arc<Object>) -> Presented {
        if object.revision > self.since && object.bytes.starts_with(&self.prefix) {
            return Presented::Stored(Arc::clone(object));
        }
        Presented::Converted(self.show_stored(decode::stored(object)))
    }

    /// An object of the storage version as this version shows it: with the defaults of the version that it is stored
    /// in, and the fields that both know.
    pub(super) fn show_stored(&self, mut object: Value) -> Value {
        let own = self.type_ref();
        match self.storage_type().filter(|_| object["apiVersion"] != json!(self.api_version)) {
            Some(storage) => {
                storage.prune(&mut object);
                storage.apply_defaults(&mut object);
                own.prune(&mut object);
            }
            None => {
                own.prune(&mut object);
                own.apply_defaults(&mut object);
            }
        }
        object["apiVersion"] = json!(self.api_version);
        object
    }

    /// The form in which an object of this version is stored, where nobody has to be asked for it.
    pub(super) fn to_storage(&self, mut object: Value) -> Value {
        if self.webhook.is_none() {
            object["apiVersion"] = json!(self.storage_api_version);
            if let Some(storage) = self.storage_type() {
                storage.prune(&mut object);
            }
        }
        object
    }

    /// The version in which objects are stored.
    pub(super) fn storage_api_version(&self) -> &str {
        &self.storage_api_version
    }

    /// Whether the object was stored in this version.
    pub(super) fn is_of_version(&self, object: &Object) -> bool {
        object.bytes.starts_with(&self.prefix)
    }

    /// The revision at which the definition took its present form.
    pub(super) fn since(&self) -> u64 {
        self.since
    }
}

/// The resources that a definition serves, one for each served version.
fn resources(definition: &Value, since: u64) -> Vec<Resource> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let storage = versions.iter().find(|version| version["storage"] == json!(true)).unwrap_or(&Value::Null);
    let mut served: Vec<&Value> =
        versions.iter().filter(|version| version["served"] == json!(true)).collect();
    served.sort_by(|one, other| names::by_priority(text(one, "/name"), text(other, "/name")));
    served.into_iter().map(|version| resource(definition, version, storage, since)).collect()
}

fn resource(definition: &Value, version: &Value, storage: &Value, since: u64) -> Resource {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let (group, name, plural, kind) =
        (text(spec, "/group"), text(version, "/name"), text(names, "/plural"), text(names, "/kind"));
    let strings = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    Resource {
        group: group.into(),
        version: name.into(),
        plural: plural.into(),
        singular: text(names, "/singular").to_owned(),
        kind: kind.to_owned(),
        list_kind: text(names, "/listKind").to_owned(),
        short_names: strings(&names["shortNames"]),
        categories: strings(&names["categories"]),
        namespaced: text(spec, "/scope") == "Namespaced",
        verbs: verbs.map(str::to_owned).to_vec(),
        subresources: subresources(version, group, name, kind),
        table: catalog::table_of(group, plural),
        origin: Origin::Custom(Box::new(served(definition, version, storage, since))),
        strategy: &CUSTOM,
        selectable: selectable
            .map(|field| Selectable::custom(text(field, "/jsonPath").trim_start_matches('.')))
            .collect(),
        schema: OnceLock::new(),
    }
}

fn served(definition: &Value, version: &Value, storage: &Value, since: u64) -> Served {
    let group = text(definition, "/spec/group");
    let kind = text(definition, "/spec/names/kind");
    let api_version = super::group_version(group, text(version, "/name"));
    let schema_of =
        |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({}));
    let schema = schema_of(version);
    let elsewhere = text(storage, "/name") != text(version, "/name");
    let columns = serde_json::from_value(version["additionalPrinterColumns"].clone()).unwrap_or_default();
    Served {
        definition: text(definition, "/metadata/name").to_owned(),
        columns: if version.get("additionalPrinterColumns").is_some() { columns } else { vec![age()] },
        scale: scale_paths(version),
        terminating: is_deleting(definition),
        deprecation: deprecation(&definition["spec"], version),
        webhook: Webhook::of(definition),
        preserve_unknown: definition["spec"]["preserveUnknownFields"] == json!(true),
        prefix: format!("{{\"kind\":{},\"apiVersion\":{},", json!(kind), json!(api_version)).into_bytes(),
        storage_api_version: super::group_version(group, text(storage, "/name")),
        storage_schema: elsewhere.then(|| schema_of(storage)),
        storage_type: OnceLock::new(),
        api_version,
        schema,
        since,
        type_ref: OnceLock::new(),
    }
}

/// The author's own words about a deprecated version, or the best version that is not deprecated.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != json!(true) {
        return None;
    }
    if let Some(words) = version["deprecationWarning"].as_str() {
        return Some(words.to_owned());
    }
    let (group, kind, name) = (text(spec, "/group"), text(spec, "/names/kind"), text(version, "/name"));
    let better = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|other| other["served"] == json!(true) && other["deprecated"] != json!(true))
        .map(|other| text(other, "/name"))
        .filter(|other| names::by_priority(other, name).is_lt())
        .min_by(|one, other| names::by_priority(one, other));
    let instead = better.map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

/// The column of definitions that name none.
fn age() -> Column {
    Column {
        name: "Age".into(),
        kind: "date".into(),
        json_path: ".metadata.creationTimestamp".into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
    }
}

fn scale_paths(version: &Value) -> Option<scale::Paths> {
    let scale = version.pointer("/subresources/scale")?;
    let pointer = |field: &str| text(scale, field).replace('.', "/");
    let selector = pointer("/labelSelectorPath");
    Some(scale::Paths {
        wanted: pointer("/specReplicasPath"),
        observed: pointer("/statusReplicasPath"),
        selector: Some(selector),
    })
}

fn subresources(version: &Value, group: &str, name: &str, kind: &str) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let own = GroupVersionKind { group: group.into(), version: name.into(), kind: kind.into() };
    let scaled = GroupVersionKind { group: "autoscaling".into(), version: "v1".into(), kind: "Scale".into() };
    let has = |name: &str| version.pointer(&format!("/subresources/{name}")).is_some();
    let mut list = Vec::new();
    if has("status") {
        list.push(Subresource { name: "status".into(), kind: own, verbs: verbs() });
    }
    if has("scale") {
        list.push(Subresource { name: "scale".into(), kind: scaled, verbs: verbs() });
    }
    list
}
