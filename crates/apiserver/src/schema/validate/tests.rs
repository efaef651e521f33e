//! Validation against what a real kube-apiserver answered, and cases that need no server.

use serde_json::{Value, json};

use crate::schema::{FieldError, KUBERNETES, TypeRef};

fn definition(name: &str) -> Option<Value> {
    let line = KUBERNETES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    serde_json::from_str(line).ok()
}

fn custom(schema: &Value) -> TypeRef {
    TypeRef::custom(schema, false, &definition).expect("the schema must load")
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn sorted_causes(mut causes: Vec<Value>) -> Vec<Value> {
    causes.sort_by_key(Value::to_string);
    causes.dedup();
    causes
}

/// Each case of `tests/fixtures/validation` is an object that a real server was asked to store,
/// and the causes with which it refused.
#[test]
fn every_recorded_refusal_has_the_same_causes() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/validation");
    let mut failures = Vec::new();
    let mut cases = 0;
    for entry in std::fs::read_dir(directory).expect("the fixtures must be there") {
        let path = entry.expect("the directory must be readable").path();
        let text = std::fs::read_to_string(&path).expect("a fixture must be readable");
        let fixture: Value = serde_json::from_str(&text).expect("a fixture must be JSON");
        let ty = custom(&fixture["schema"]);
        for case in fixture["cases"].as_array().expect("a fixture must have cases") {
            cases += 1;
            if let Some(problem) = replay(&ty, case) {
                failures.push(problem);
            }
        }
    }
    assert!(cases >= 20, "only {cases} cases were found");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

fn replay(ty: &TypeRef, case: &Value) -> Option<String> {
    let mut object = case["object"].clone();
    let old = case.get("old");
    ty.prune(&mut object);
    ty.apply_defaults(&mut object);
    let ours = ty.validate(&object, old);
    let ours = ours
        .into_iter()
        .map(|error| json!({"reason": error.reason.as_str(), "message": error.message, "field": error.field}))
        .collect();
    let real = case["causes"].as_array().cloned().unwrap_or_default();
    let (ours, real) = (sorted_causes(ours), sorted_causes(real));
    if ours == real {
        return None;
    }
    Some(format!("{}\n ours: {}\n real: {}", case["name"], json!(ours), json!(real)))
}

#[test]
fn an_unchanged_mistake_is_forgiven_and_a_new_one_is_not() {
    let ty = custom(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "integer", "maximum": 3},
        "b": {"type": "integer", "maximum": 3},
    }}}}));
    let old = json!({"spec": {"a": 9}});
    assert_eq!(texts(&ty.validate(&json!({"spec": {"a": 9, "b": 1}}), Some(&old))), [] as [&str; 0]);
    assert_eq!(
        texts(&ty.validate(&json!({"spec": {"a": 10}}), Some(&old))),
        ["spec.a: Invalid value: 10: spec.a in body should be less than or equal to 3"]
    );
}

#[test]
fn items_of_a_map_list_correspond_by_their_keys() {
    let ty = custom(&json!({"type": "object", "properties": {"parts": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer", "maximum": 3}}},
    }}}));
    let old = json!({"parts": [{"name": "a", "n": 9}]});
    let new = json!({"parts": [{"name": "b", "n": 1}, {"name": "a", "n": 9}]});
    assert_eq!(texts(&ty.validate(&new, Some(&old))), [] as [&str; 0]);
}
