//! CustomResourceDefinitions as objects: defaults and rules. What is served from them is in `crd`.

mod conversion;
mod formats;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Strategy, cells, text};
use crate::{
    error::Cause,
    registry::{catalog, crd, strategy::Generation},
    schema::structural_errors,
};

/// CustomResourceDefinition.
pub(super) static DEFINITION: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults,
    validate,
    warnings: formats::warnings,
    begin_deletion: |definition, environment| crd::begin_deletion(definition, &environment.now_text()),
    row: Some(row),
    after_write: |registry, _| registry.settle_definitions(),
    after_removal: |registry, _, _| registry.settle_definitions(),
    ..Strategy::PLAIN
};

/// Defaults of a definition.
fn defaults(definition: &mut Value) {
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
fn validate(new: &Value, old: Option<&Value>) -> Vec<Cause> {
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

fn row(object: &Value, _: Timestamp) -> Vec<Value> {
    let versions = cells::list(object, "/spec/versions").iter().map(|version| {
        let mark = if cells::flag(version, "/storage") { "(storage)" } else { "" };
        format!("{}{mark}", text(version, "/name"))
    });
    let short = cells::list(object, "/spec/names/shortNames").iter().map(|one| cells::plain(Some(one)));
    let established = cells::list(object, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "Established" && text(one, "/status") == "True");
    vec![
        cells::name(object),
        json!(text(object, "/spec/scope")),
        json!(cells::joined(versions)),
        json!(text(object, "/metadata/creationTimestamp")),
        json!(text(object, "/spec/group")),
        json!(text(object, "/spec/names/kind")),
        json!(cells::joined(short)),
        json!(established),
    ]
}
