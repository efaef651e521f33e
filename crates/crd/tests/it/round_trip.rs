//! A definition becomes types, and the CRD that is derived from the types is the definition again.

use std::{collections::BTreeMap, path::Path, sync::LazyLock};

use serde_json::{Value, json};
use windlass::kube::CustomResourceExt;
use windlass_crd::{Definition, Options, schema::normal};

use crate::generated as g;

/// The CRD of every generated module, by the module's name.
fn derived() -> &'static BTreeMap<&'static str, Value> {
    static DERIVED: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(derive);
    &DERIVED
}

fn derive() -> BTreeMap<&'static str, Value> {
    fn crd<K: CustomResourceExt>() -> Value {
        let mut crd = serde_json::to_value(K::crd()).unwrap();
        crd["apiVersion"] = json!("apiextensions.k8s.io/v1");
        crd
    }
    BTreeMap::from([
        ("bare_v1", crd::<g::bare_v1::Bare>()),
        ("cronjob_v1", crd::<g::cronjob_v1::CronJob>()),
        ("database_v1", crd::<g::database_v1::Database>()),
        ("database_v1alpha1", crd::<g::database_v1alpha1::Database>()),
        ("databasebackup_v1", crd::<g::databasebackup_v1::DatabaseBackup>()),
        ("everything_v1", crd::<g::everything_v1::Everything>()),
        ("everything_v1beta1", crd::<g::everything_v1beta1::Everything>()),
        ("helloworld_v1alpha1", crd::<g::helloworld_v1alpha1::HelloWorld>()),
        ("imoocpod_v1alpha1", crd::<g::imoocpod_v1alpha1::ImoocPod>()),
        ("memcached_v1alpha1", crd::<g::memcached_v1alpha1::Memcached>()),
        ("podmanager_v1", crd::<g::podmanager_v1::PodManager>()),
        ("podmanager_v1alpha1", crd::<g::podmanager_v1alpha1::PodManager>()),
        ("webapp_v1alpha1", crd::<g::webapp_v1alpha1::WebApp>()),
        ("webserver_v1", crd::<g::webserver_v1::WebServer>()),
    ])
}

/// Every definition that the modules are made of, with the module's name and the version.
pub(crate) fn sources() -> Vec<(String, Definition, String)> {
    static SOURCES: LazyLock<Vec<(String, Definition, String)>> = LazyLock::new(read);
    SOURCES.clone()
}

fn read() -> Vec<(String, Definition, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for folder in ["../../config/crd/bases", "tests/it/definitions"] {
        for entry in std::fs::read_dir(here.join(folder)).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for definition in Definition::parse(&text).unwrap() {
                for version in &definition.versions {
                    let name = format!("{}_{}", definition.names.singular.replace('-', "_"), version.name);
                    sources.push((name, definition.clone(), version.name.clone()));
                }
            }
        }
    }
    sources.sort_by(|one, other| one.0.cmp(&other.0));
    sources
}

#[test]
fn the_generated_modules_are_what_the_generator_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/generated");
    let sources = sources();
    for (name, definition, version) in &sources {
        let module = definition.rust(version, &Options::default()).unwrap();
        let kept = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap_or_default();
        let kept = kept.replace("\r\n", "\n");
        assert!(
            kept == module.source,
            "{name}.rs is not what the generator writes: cargo run -p windlass-crd --example types"
        );
    }
    let derived = derived();
    let names: Vec<&str> = sources.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(derived.keys().copied().collect::<Vec<_>>(), names, "each module is compiled and compared");
}

/// The normal schema, without what every object has and without what the derive cannot say.
fn schema(definition: &Definition, version: &str) -> Value {
    let mut schema = normal(definition.version(version).unwrap().schema().unwrap());
    let properties = schema["properties"].as_object_mut().unwrap();
    for name in ["apiVersion", "kind", "metadata"] {
        properties.remove(name);
    }
    if let Some(Value::Object(status)) = properties.get_mut("status") {
        status.remove("nullable");
    }
    Value::Object(schema)
}

/// Where two values differ, as paths.
fn differences(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let none = Value::String("(nothing)".into());
                let path = format!("{path}/{key}");
                differences(&path, one.get(key).unwrap_or(&none), other.get(key).unwrap_or(&none), found);
            }
        }
        _ if one != other => found.push(format!("{path}: {one} became {other}")),
        _ => {}
    }
}

#[test]
fn the_derived_schema_is_the_definitions() {
    let derived = derived();
    let mut found = Vec::new();
    for (name, definition, version) in sources() {
        let again = Definition::from_value(derived[name.as_str()].clone()).unwrap();
        differences(&name, &schema(&definition, &version), &schema(&again, &version), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_derived_definition_has_all_that_is_said_about_the_kind() {
    let derived = derived();
    for (name, definition, version) in sources() {
        let again = Definition::from_value(derived[name.as_str()].clone()).unwrap();
        assert_eq!(again.group, definition.group, "{name}");
        assert_eq!(again.names, definition.names, "{name}");
        assert_eq!(again.scope, definition.scope, "{name}");
        let (old, new) = (definition.version(&version).unwrap(), again.version(&version).unwrap());
        assert_eq!(new.served, old.served, "{name}");
        assert_eq!(new.storage, old.storage, "{name}");
        assert_eq!(new.deprecated, old.deprecated, "{name}");
        assert_eq!(new.deprecation_warning, old.deprecation_warning, "{name}");
        assert_eq!(new.printer_columns, old.printer_columns, "{name}");
        assert_eq!(new.has_status(), old.has_status(), "{name}");
        assert_eq!(new.scale(), old.scale(), "{name}");
        assert!(new.selectable_fields().eq(old.selectable_fields()), "{name}");
    }
}

/// The descriptions of all fields, without spaces and fences, by their paths.
fn descriptions(schema: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    if let Some(text) = schema["description"].as_str() {
        let text = text.replace("```text", "```").replace('\\', "");
        found.insert(path.to_owned(), text.split_whitespace().collect());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        descriptions(property, &format!("{path}.{name}"), found);
    }
    for below in ["items", "additionalProperties"].into_iter().filter(|below| schema[below].is_object()) {
        descriptions(&schema[below], &format!("{path}[]"), found);
    }
}

#[test]
fn every_description_is_kept() {
    let derived = derived();
    for (name, definition, version) in sources() {
        let again = Definition::from_value(derived[name.as_str()].clone()).unwrap();
        let of = |definition: &Definition| {
            let mut found = BTreeMap::new();
            let schema = definition.version(&version).unwrap().schema().unwrap().clone();
            descriptions(&Value::Object(schema), "", &mut found);
            found.retain(|path, _| ![".apiVersion", ".kind", ".metadata"].contains(&path.as_str()));
            found
        };
        let new = of(&again);
        for (path, text) in of(&definition) {
            assert_eq!(new.get(&path), Some(&text), "{name}{path}");
        }
    }
}

/// What the API server makes of an object that leaves everything out that has a default.
fn defaulted(definition: &Definition, version: &str, object: &Value) -> Value {
    let schema = Value::Object(definition.version(version).unwrap().schema().unwrap().clone());
    let ty = windlass_apiserver::schema::TypeRef::from_openapi(&schema, &crate::kubernetes).unwrap();
    let mut object = object.clone();
    ty.apply_defaults(&mut object);
    assert_eq!(ty.validate(&object, None), Vec::new(), "the object of this test is valid");
    object
}

#[test]
fn an_object_is_read_with_the_defaults_of_its_definition_and_written_as_it_was() {
    let (_, definition, version) = sources().into_iter().find(|(name, ..)| name == "everything_v1").unwrap();
    let small = json!({
        "apiVersion": "test.example.com/v1", "kind": "Everything", "metadata": {"name": "small"},
        "spec": {"name": "abc", "nullableRequired": null, "left": true},
    });
    let large = json!({
        "apiVersion": "test.example.com/v1", "kind": "Everything", "metadata": {"name": "large"},
        "spec": {
            "name": "abc", "nullableRequired": "x", "right": false, "type": "two words", "self": "s", "crate": "c",
            "$ref": "r", "x-dashed": "1", "x_dashed": "2", "1st": false, "clusterIPs": ["10.0.0.1"], "port": 65535,
            "nullableItems": ["a", null], "nullableEnum": "z", "bytes": "aGk=", "port2": "http", "port4": null,
            "ports": [1, "two"], "free": {"a": [1]}, "anything": [1, {"b": null}], "size": "2Gi",
            "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
            "embeddedTyped": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "p"}, "spec": {"x": 1}},
            "halfOpen": {"known": "k", "unknown": {"deep": true}}, "labels": {"a": "b"}, "limits": {"cpu": "1"},
            "byName": {"n": {"v": 1}}, "nested": {"n": [{"a": true}]}, "matrix": [[0.5]], "choices": ["x", "z"],
            "tree": {"tree": {"branch": "b"}}, "items": [{"name": "n"}, {"name": "n", "protocol": "UDP"}],
            "resources": {"limits": {"cpu": "1"}}, "selector": {"matchLabels": {"a": "b"}}, "otherRef": {"name": "o"},
        },
        "status": {"replicas": 1, "at": "2026-01-01T00:00:00Z"},
    });
    for object in [small, large] {
        let expected = defaulted(&definition, &version, &object);
        let read: g::everything_v1::Everything = serde_json::from_value(object).unwrap();
        let mut written = serde_json::to_value(&read).unwrap();
        // Absent and null are the same where null is allowed and nothing else is said.
        let mut expected_spec = expected["spec"].clone();
        for spec in [&mut expected_spec, &mut written["spec"]] {
            spec.as_object_mut()
                .unwrap()
                .retain(|name, value| !value.is_null() || name == "nullableRequired");
        }
        assert_eq!(written["spec"], expected_spec);
        assert_eq!(written["status"], expected["status"]);
    }
}

#[test]
fn what_the_derive_cannot_say_is_listed() {
    let yaml = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: losses.example.com}
spec:
  group: example.com
  names: {kind: Loss, plural: losses}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          metadata: {type: object, properties: {name: {type: string, maxLength: 9}}}
          spec:
            type: object
            properties:
              addresses:
                type: array
                items:
                  type: object
                  properties: {type: {type: string}, value: {type: string}}
                  oneOf: [{properties: {type: {enum: [IP]}}}, {properties: {type: {enum: [Name]}}}]
          status: {type: object, default: {a: x}, properties: {a: {type: string}}}
";
    let definition = &Definition::parse(yaml).unwrap()[0];
    let module = definition.rust("v1", &Options::default()).unwrap();
    let lost: Vec<&str> = module.lost.iter().map(|lost| lost.path.as_str()).collect();
    assert_eq!(lost, ["spec.addresses[]", "metadata", "spec", "status", "status"]);
    for lost in &module.lost {
        assert!(module.source.contains(&lost.what), "the module says so too: {lost:?}");
    }
    assert!(definition.rust("v2", &Options::default()).unwrap_err().to_string().ends_with("there are v1"));
}

#[test]
fn types_of_its_own_are_made_where_those_of_kubernetes_are_not_wanted() {
    let (_, definition, version) = sources().into_iter().find(|(name, ..)| name == "cronjob_v1").unwrap();
    let options = Options { well_known: false, ..Options::default() };
    let module = definition.rust(&version, &options).unwrap();
    assert!(module.source.contains("pub struct JobTemplate {"), "the template is a struct of the module");
    assert!(!module.source.contains("::PodTemplateSpec"));
}
