//! `x-kubernetes-validations`: rules that do not compile, that do not fit the types around them, or that look back
//! where there is nothing to look back to.

use serde_json::{Value, json};

use super::{FieldError, additional, properties, text};
use crate::schema::{
    cel::{self, CelError},
    json::escaped,
};

/// What is wrong with the rules of a whole resource.
pub(super) fn errors(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    collect(schema, path, true, None, &mut errors);
    errors
}

/// `uncorrelated` is the path of the list or map around whose parts have no old values.
fn collect(schema: &Value, path: &str, root: bool, uncorrelated: Option<&str>, errors: &mut Vec<FieldError>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}]");
        let optional_old = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
        let compile = |text: &str, wanted| cel::compile_rule(text, schema, root, optional_old, wanted);
        match compile(text(rule, "rule"), cel::Wanted::Rule) {
            Err(error) => {
                errors.push(FieldError::invalid_shown(
                    &format!("{at}.rule"),
                    &go_rule(rule),
                    &error.to_string(),
                ));
            }
            Ok(expression) => {
                if let (true, Some(around)) = (expression.uses_old_self(), uncorrelated) {
                    let why = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {around}"
                    );
                    let given = Value::String(text(rule, "rule").to_owned());
                    errors.push(FieldError::invalid(&format!("{at}.rule"), &given, &why));
                }
            }
        }
        let message = text(rule, "messageExpression");
        if let (false, Err(error)) = (message.is_empty(), compile(message, cel::Wanted::Message)) {
            let at = format!("{at}.messageExpression");
            let why = match &error {
                CelError::Compile(_) => format!("messageExpression {error}"),
                _ => error.to_string(),
            };
            errors.push(FieldError::invalid_shown(&at, &go_rule(rule), &why));
        }
    }
    let atomic_map = text(schema, "x-kubernetes-map-type") == "atomic";
    let in_fields = if atomic_map { uncorrelated.or(Some(path)) } else { uncorrelated };
    for (name, property) in properties(schema).into_iter().flatten() {
        collect(property, &format!("{path}.properties[{name}]"), false, in_fields, errors);
    }
    if let Some(additional) = additional(schema) {
        collect(additional, &format!("{path}.additionalProperties"), false, uncorrelated, errors);
    }
    if let Some(items) = schema.get("items") {
        let keyed = text(schema, "x-kubernetes-list-type") == "map";
        let in_items = if keyed { uncorrelated } else { uncorrelated.or(Some(path)) };
        collect(items, &format!("{path}.items"), false, in_items, errors);
    }
}

/// A rule as the real server prints the Go struct that holds it, in the order of its fields.
fn go_rule(rule: &Value) -> String {
    let fields = [
        ("Rule", "rule", json!("")),
        ("Message", "message", json!("")),
        ("MessageExpression", "messageExpression", json!("")),
        ("Reason", "reason", Value::Null),
        ("FieldPath", "fieldPath", json!("")),
        ("OptionalOldSelf", "optionalOldSelf", Value::Null),
    ];
    let shown = fields
        .map(|(name, field, default)| format!("\"{name}\":{}", escaped(rule.get(field).unwrap_or(&default))));
    format!("{{{}}}", shown.join(","))
}
