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
        let ours = structural_errors(&case["schema"], "spec.validation.openAPIV3Schema", false, &|_| None);
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
    let errors = structural_errors(&schema, "s", false, &|_| None);
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
    assert_eq!(structural_errors(&schema, "s", false, &|_| None).len(), 1);
}

/// What Kubernetes 1.37.1 says to rules that do not fit the schema, and to some that do.
#[test]
fn the_types_of_rules_are_checked_in_the_words_of_the_real_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cel-types.json");
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in fixture["cases"].as_array().unwrap() {
        let mut schema = fixture["schema"].clone();
        let place = if case["root"] == true { &mut schema } else { &mut schema["properties"]["spec"] };
        place["x-kubernetes-validations"] = match case.get("messageExpression") {
            Some(message) => json!([{"rule": "true", "messageExpression": message}]),
            None => json!([{"rule": case["rule"], "message": "m"}]),
        };
        let errors = structural_errors(&schema, "spec.validation.openAPIV3Schema", false, &|_| None);
        let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
        match case["error"].as_str() {
            None => assert!(words.is_empty(), "{case}: {words:?}"),
            Some(error) => assert_eq!(words, [error], "{case}"),
        }
    }
}

/// What Kubernetes 1.37.1 says to rules that could cost too much. Each stands in a list that is long enough to bring it
/// just over the limit, where the real server tells the estimate to the sixth digit.
#[test]
fn rules_that_could_cost_too_much_are_refused_with_the_factor_of_the_real_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cel-costs.json");
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in fixture["cases"].as_array().unwrap() {
        let mut item = fixture["item"].clone();
        item["x-kubernetes-validations"] = match case.get("messageExpression") {
            Some(message) => json!([{"rule": "true", "messageExpression": message}]),
            None => json!([{"rule": case["rule"], "message": "m"}]),
        };
        let all = json!({"type": "array", "maxItems": case["times"], "items": item,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
        let spec = json!({"type": "object", "properties": {"all": all}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let errors = structural_errors(&schema, "spec.validation.openAPIV3Schema", false, &|_| None);
        let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
        if json!(words) != case["errors"] {
            wrong.push(format!("{case}\n    {words:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
