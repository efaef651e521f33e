//! CustomResourceDefinitions: from a definition to served resources.
//!
//! The real server does this in controllers beside it. Here it is part of the write: when the create of
//! a definition has returned, the definition is Established and its resources are in discovery.

mod conversion;
mod names;
mod settle;

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Origin, Presented, Resource, Subresource, catalog,
    conversion::Webhook,
    decode,
    metadata::is_deleting,
    resource::{GroupVersionKind, text},
    scale,
};
use crate::{
    error::Cause,
    schema::{TypeRef, structural_errors},
    store::Object,
};

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
    /// The fields that selectors may name, without their leading dot.
    pub selectable: Vec<String>,
    /// Where the replicas are, if it can be scaled.
    pub scale: Option<scale::Paths>,
    /// The schema, as the definition says it.
    pub schema: Value,
    /// Whether the definition is being deleted.
    pub terminating: bool,
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

/// Whether the resource is the one of the definitions themselves.
pub(super) fn is_definitions(resource: &Resource) -> bool {
    &*resource.group == "apiextensions.k8s.io" && &*resource.plural == "customresourcedefinitions"
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
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    Served {
        definition: text(definition, "/metadata/name").to_owned(),
        columns: if version.get("additionalPrinterColumns").is_some() { columns } else { vec![age()] },
        selectable: selectable
            .map(|field| text(field, "/jsonPath").trim_start_matches('.').to_owned())
            .collect(),
        scale: scale_paths(version),
        terminating: is_deleting(definition),
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

/// Defaults of a definition.
pub(super) fn defaults(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    let storage = definition["spec"]["versions"]
        .as_array()
        .and_then(|versions| versions.iter().find(|version| version["storage"] == json!(true)))
        .map(|version| text(version, "/name").to_owned());
    let names = &mut definition["spec"]["names"];
    if text(names, "/singular").is_empty() {
        names["singular"] = json!(kind.to_lowercase());
    }
    if text(names, "/listKind").is_empty() {
        names["listKind"] = json!(format!("{kind}List"));
    }
    if definition.pointer("/spec/conversion/strategy").is_none() {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
    conversion::defaults(definition);
    let Some(storage) = storage else { return };
    let stored = &mut definition["status"]["storedVersions"];
    match stored.as_array_mut() {
        Some(list) if list.contains(&json!(storage)) => {}
        Some(list) => list.push(json!(storage)),
        None => *stored = json!([storage]),
    }
}

/// What is wrong with a definition.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    let expected = format!("{}.{}", text(spec, "/names/plural"), text(spec, "/group"));
    let name = text(new, "/metadata/name");
    if name != expected {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    for field in ["group", "scope"] {
        if text(spec, &format!("/{field}")).is_empty() {
            causes.push(Cause::required(format!("spec.{field}"), ""));
        }
    }
    for field in ["plural", "kind"] {
        if text(&spec["names"], &format!("/{field}")).is_empty() {
            causes.push(Cause::required(format!("spec.names.{field}"), ""));
        }
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    if versions.iter().filter(|version| version["storage"] == json!(true)).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
    }
    conversion::validate(spec, &mut causes);
    let single = versions.len() == 1;
    for (index, version) in versions.iter().enumerate() {
        // With one version the real server speaks of the place where schemas once were.
        let path =
            if single { "spec.validation".to_owned() } else { format!("spec.versions[{index}].schema") };
        let before = old.and_then(|old| named_version(&old["spec"], text(version, "/name")));
        let unchanged = before.is_some_and(|before| before["schema"] == version["schema"]);
        causes.extend(validate_schema(version, &format!("{path}.openAPIV3Schema"), unchanged));
    }
    for field in ["group", "scope"] {
        let before = old.map_or("", |old| text(old, &format!("/spec/{field}")));
        let now = text(spec, &format!("/{field}"));
        if !before.is_empty() && before != now {
            causes.push(Cause::invalid(format!("spec.{field}"), &json!(now), "field is immutable"));
        }
    }
    if let Some(old) = old {
        let (before, now) = (text(old, "/spec/names/kind"), text(spec, "/names/kind"));
        if before != now {
            causes.push(Cause::invalid("spec.names.kind", &json!(now), "field is immutable"));
        }
        causes.extend(lost_versions(new));
    }
    causes
}

/// Versions in which objects may be stored, and which the definition does not have any more.
fn lost_versions(definition: &Value) -> Vec<Cause> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let known: BTreeSet<&str> = versions.map(|version| text(version, "/name")).collect();
    let stored = definition["status"]["storedVersions"].as_array().into_iter().flatten().enumerate();
    stored
        .filter_map(|(index, version)| Some((index, version.as_str().filter(|one| !known.contains(one))?)))
        .map(|(index, lost)| {
            let why = format!(
                "missing from spec.versions; {lost} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {lost} and removes {lost} from \
                 status.storedVersions"
            );
            Cause::invalid(format!("status.storedVersions[{index}]"), &json!(lost), why)
        })
        .collect()
}

fn named_version<'a>(spec: &'a Value, name: &str) -> Option<&'a Value> {
    spec["versions"].as_array()?.iter().find(|version| text(version, "/name") == name)
}

fn validate_schema(version: &Value, path: &str, unchanged: bool) -> Vec<Cause> {
    let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
        return vec![Cause::required(path, "schemas are required")];
    };
    let resolve = |name: &str| catalog::definitions().get(name);
    structural_errors(schema, path, unchanged, &resolve).into_iter().map(Cause::from).collect()
}
