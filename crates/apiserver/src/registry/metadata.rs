//! The rules that all objects share: names, uids, timestamps, and what a writer may not change.

use serde_json::{Map, Value, json};
use windlass_apimachinery::names;

use super::resource::{Resource, text};
use crate::{
    environment::Environment,
    error::{Cause, Error, Result},
};

/// The longest name that `generateName` makes; longer prefixes are cut.
const GENERATED: usize = 63 - 5;

/// The object's metadata, created if it is not there.
pub(super) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("metadata must be an object by now")
}

/// A field of the metadata.
pub(super) fn meta<'a>(object: &'a Value, field: &str) -> &'a Value {
    object.get("metadata").and_then(|metadata| metadata.get(field)).unwrap_or(&Value::Null)
}

/// Copies a metadata field from one object to another, or removes it where the first has none.
pub(super) fn copy_meta(from: &Value, to: &mut Value, field: &str) {
    match meta(from, field) {
        Value::Null => drop(metadata(to).remove(field)),
        value => drop(metadata(to).insert(field.into(), value.clone())),
    }
}

/// Drops what says nothing: decoding into typed metadata leaves out nulls and empty maps and lists.
pub(super) fn tidy(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    });
}

/// Whether the object waits for finalizers.
pub(super) fn has_finalizers(object: &Value) -> bool {
    meta(object, "finalizers").as_array().is_some_and(|list| !list.is_empty())
}

/// Makes an object wait for a finalizer when it is deleted.
pub(super) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|one| one == finalizer)
    {
        list.push(json!(finalizer));
    }
}

/// Whether the object is being deleted.
pub(super) fn is_deleting(object: &Value) -> bool {
    meta(object, "deletionTimestamp").is_string()
}

/// Drops what only the server may decide.
pub(super) fn wipe(object: &mut Value) {
    let metadata = metadata(object);
    for field in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "uid",
        "creationTimestamp",
    ] {
        metadata.remove(field);
    }
}

/// Fills in what the server decides for a new object.
pub(super) fn stamp(object: &mut Value, namespace: &str, environment: &Environment) {
    wipe(object);
    let metadata = metadata(object);
    metadata.insert("uid".into(), json!(environment.uid()));
    metadata.insert("creationTimestamp".into(), json!(environment.now_text()));
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".into(), json!(namespace));
    }
}

/// Whether the object has no name, and a prefix to make one from.
pub(super) fn wants_name(object: &Value) -> bool {
    text(object, "/metadata/name").is_empty() && !text(object, "/metadata/generateName").is_empty()
}

/// Makes a name from `generateName`.
pub(super) fn generate_name(object: &mut Value, environment: &Environment) {
    let prefix: String = text(object, "/metadata/generateName").chars().take(GENERATED).collect();
    let name = format!("{prefix}{}", environment.name_suffix(5));
    metadata(object).insert("name".into(), json!(name));
}

/// Checks that the object says the same as the path about where it lives.
pub(super) fn match_namespace(object: &mut Value, resource: &Resource, namespace: &str) -> Result<()> {
    let own = text(object, "/metadata/namespace").to_owned();
    if !resource.namespaced {
        if !own.is_empty() {
            metadata(object).remove("namespace");
        }
        return Ok(());
    }
    if !own.is_empty() && own != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Error::bad_request(message));
    }
    metadata(object).insert("namespace".into(), json!(namespace));
    Ok(())
}

/// Checks that the body of an update names the object of the path.
pub(super) fn match_name(object: &mut Value, name: &str) -> Result<()> {
    let own = text(object, "/metadata/name").to_owned();
    if own.is_empty() {
        metadata(object).insert("name".into(), json!(name));
    } else if own != name {
        return Err(Error::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Carries over what no writer may change and checks what it claims about it.
pub(super) fn keep_system_fields(new: &mut Value, old: &Value, resource: &Resource) -> Result<()> {
    let name = text(old, "/metadata/name");
    let (claimed, actual) = (text(new, "/metadata/uid"), text(old, "/metadata/uid"));
    if !claimed.is_empty() && claimed != actual {
        let group = if resource.custom().is_some() { format!("{}/", resource.group) } else { String::new() };
        let namespace = text(old, "/metadata/namespace");
        let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{place}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {claimed}, UID in object meta: {actual}",
            resource.plural
        );
        return Err(Error::conflict(resource.named(), name, why));
    }
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
    ] {
        copy_meta(old, new, field);
    }
    metadata(new).remove("selfLink");
    Ok(())
}

/// How long all annotations of an object may be together.
const ANNOTATIONS: usize = 256 * 1024;

/// Which rule a kind's names follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRule {
    /// Dots allowed, 253 characters.
    Subdomain,
    /// No dots, 63 characters, may start with a digit.
    Label,
    /// Anything that fits into one path segment.
    PathSegment,
}

/// Checks name, labels, annotations, finalizers and owner references.
pub(super) fn validate(object: &Value, rule: NameRule) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, "/metadata/name");
    let generate = text(object, "/metadata/generateName");
    if name.is_empty() && generate.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = name_errors(name, rule).into_iter();
        causes.extend(wrong.map(|why| Cause::invalid("metadata.name", &json!(name), why)));
    }
    for (key, value) in map_of(object, "labels") {
        let wrong = qualified_name_errors(key).into_iter();
        causes.extend(wrong.map(|why| Cause::invalid("metadata.labels", &json!(key), why)));
        let wrong = label_value_errors(value.as_str().unwrap_or_default()).into_iter();
        causes.extend(wrong.map(|why| Cause::invalid("metadata.labels", value, why)));
    }
    let mut annotated = 0;
    for (key, value) in map_of(object, "annotations") {
        let wrong = qualified_name_errors(&key.to_lowercase()).into_iter();
        causes.extend(wrong.map(|why| Cause::invalid("metadata.annotations", &json!(key), why)));
        annotated += key.len() + value.as_str().map_or(0, str::len);
    }
    if annotated > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    causes.extend(owner_errors(object));
    causes.extend(finalizer_errors(object));
    causes
}

fn map_of<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    meta(object, field).as_object().into_iter().flatten()
}

/// Finalizers of others carry a domain; the server's own few do not.
fn finalizer_errors(object: &Value) -> Vec<Cause> {
    let finalizers = meta(object, "finalizers").as_array().map_or(&[][..], Vec::as_slice);
    let names = || finalizers.iter().enumerate().filter_map(|(index, one)| Some((index, one.as_str()?)));
    let mut causes: Vec<Cause> = names()
        .flat_map(|(_, name)| {
            let wrong = qualified_name_errors(name).into_iter();
            wrong.map(move |why| Cause::invalid("metadata.finalizers", &json!(name), why))
        })
        .collect();
    let known = ["orphan", "foregroundDeletion", "kubernetes"];
    let plain = names().filter(|(_, name)| !name.contains('/') && !known.contains(name));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    causes.extend(
        plain.map(|(index, name)| Cause::invalid(format!("metadata.finalizers[{index}]"), &json!(name), why)),
    );
    causes
}

fn owner_errors(object: &Value) -> Vec<Cause> {
    let owners = meta(object, "ownerReferences").as_array().map_or(&[][..], Vec::as_slice);
    let mut causes = Vec::new();
    for (index, owner) in owners.iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::required(path, "must not be empty"));
            }
        }
    }
    let controllers: Vec<String> = owners
        .iter()
        .filter(|owner| owner["controller"] == json!(true))
        .map(|owner| format!("{}/{}", text(owner, "/kind"), text(owner, "/name")))
        .collect();
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let shown: Vec<String> = owners.iter().map(owner_text).collect();
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: [{}]: {why}", shown.join(",")),
            field: "metadata.ownerReferences".into(),
        });
    }
    causes
}

/// An owner reference with its fields in the order of the API.
fn owner_text(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let pairs: Vec<String> = fields
        .iter()
        .filter_map(|field| owner.get(*field).map(|value| format!("{}:{value}", json!(field))))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

/// All texts for a name that breaks its rule.
pub(super) fn name_errors(name: &str, rule: NameRule) -> Vec<String> {
    match rule {
        NameRule::Subdomain => names::dns1123_subdomain(name),
        NameRule::Label => names::dns1123_label(name),
        NameRule::PathSegment => names::path_segment(name),
    }
}

pub(super) fn name_error(name: &str, rule: NameRule) -> Option<String> {
    name_errors(name, rule).into_iter().next()
}

/// The text for a name that is no RFC 1123 subdomain.
pub(crate) fn subdomain_error(name: &str) -> Option<String> {
    names::dns1123_subdomain(name).into_iter().next()
}

/// The text for a name that is no DNS-1035 label.
pub(crate) fn service_label_error(name: &str) -> Option<String> {
    names::dns1035_label(name).into_iter().next()
}

/// The first text for a name that is no qualified name, with or without a prefix.
pub(crate) fn qualified_name_error(name: &str) -> Option<String> {
    names::qualified_name(name).into_iter().next()
}

/// All texts for a name that is no qualified name.
pub(crate) use names::qualified_name as qualified_name_errors;

/// All texts for a value that no label may have.
pub(crate) use names::label_value as label_value_errors;

pub(super) fn label_value_error(value: &str) -> Option<String> {
    names::label_value(value).into_iter().next()
}
