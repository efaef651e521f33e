//! CRD schemas against what a real kube-apiserver said about them.

use serde_json::{Value, json};

use super::*;

#[test]
fn every_recorded_schema_gets_the_same_objections() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/structural.json");
    let text = std::fs::read_to_string(path).expect("the fixture must be readable");
    let fixture: Value = serde_json::from_str(&text).expect("the fixture must be JSON");
    let mut failures = Vec::new();
    for case in fixture.as_array().expect("the fixture must be a list") {
        let ours = structural_errors(&case["schema"], "spec.validation.openAPIV3Schema", &|_| None);
        let mut ours: Vec<Value> = ours
            .into_iter()
            .map(|error| json!({"reason": error.reason.as_str(), "message": error.message, "field": error.field}))
            .collect();
        let mut real = case["causes"].as_array().cloned().unwrap_or_default();
        ours.sort_by_key(Value::to_string);
        real.sort_by_key(Value::to_string);
        if ours != real {
            failures.push(format!("{}\n ours: {}\n real: {}", case["name"], json!(ours), json!(real)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_rule_that_does_not_parse_is_named() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]});
    let errors = structural_errors(&schema, "s", &|_| None);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].field, "s.x-kubernetes-validations[0].rule");
    assert!(errors[0].message.contains("compilation failed"), "{}", errors[0]);
}

#[test]
fn endless_nesting_is_refused() {
    let mut schema = json!({"type": "object"});
    for _ in 0..400 {
        schema = json!({"type": "object", "properties": {"p": schema}});
    }
    assert_eq!(structural_errors(&schema, "s", &|_| None).len(), 1);
}
