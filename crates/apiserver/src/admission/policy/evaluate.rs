//! What a policy says of one request.

use std::collections::HashMap;

use kube_cel::cel::Value as Cel;
use serde_json::Value;

use super::{super::review, Condition, PolicySpec, Validation};
use crate::{
    admission::Attributes,
    registry::Resource,
    schema::cel::{Expression, plain},
};

/// What expressions see.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) request: &'a Attributes<'a>,
    pub(super) resource: &'a Resource,
    pub(super) object: Option<Value>,
    pub(super) old: Option<Value>,
    pub(super) namespace: Value,
    pub(super) params: Value,
}

/// A validation that failed.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) message: String,
    pub(super) reason: Option<String>,
}

pub(super) type Variables = Vec<(&'static str, Cel)>;

/// The validations that the request fails.
pub(super) fn evaluate(spec: &PolicySpec, input: &Input<'_>) -> Vec<Outcome> {
    let fails_open = spec.failure_policy.as_deref() == Some("Ignore");
    let mut variables = variables(input);
    match conditions(&spec.match_conditions, &variables) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(_) if fails_open => return Vec::new(),
        Err(message) => return vec![Outcome { message, reason: None }],
    }
    add_composed(spec, &mut variables);
    spec.validations
        .iter()
        .filter_map(|validation| match holds(&validation.check, &variables) {
            Ok(true) => None,
            Ok(false) => {
                let message = message(validation, &variables);
                Some(Outcome { message, reason: validation.reason.clone() })
            }
            Err(_) if fails_open => None,
            Err(message) => Some(Outcome { message, reason: validation.reason.clone() }),
        })
        .collect()
}

pub(super) fn variables(input: &Input<'_>) -> Variables {
    let fields = review::fields("", input.request, input.resource, None, None);
    let shown = |value: &Option<Value>| value.as_ref().map_or(Cel::Null, plain);
    vec![
        ("object", shown(&input.object)),
        ("oldObject", shown(&input.old)),
        ("request", plain(&fields)),
        ("namespaceObject", plain(&input.namespace)),
        ("params", plain(&input.params)),
    ]
}

/// Adds `variables`, each of which may use the ones before it. One that fails is missing, and so fails its users.
pub(super) fn add_composed(spec: &PolicySpec, variables: &mut Variables) {
    let mut composed: HashMap<String, Cel> = HashMap::new();
    for variable in &spec.variables {
        let mut known = variables.clone();
        known.push(("variables", Cel::from(composed.clone())));
        if let Ok(value) = variable.value.compiled().and_then(|expression| expression.evaluate(&known)) {
            composed.insert(variable.name.clone(), value);
        }
    }
    variables.push(("variables", Cel::from(composed)));
}

pub(super) fn conditions(list: &[Condition], variables: &Variables) -> Result<bool, String> {
    let mut problems = Vec::new();
    for condition in list {
        match holds(condition, variables) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => problems.push(why),
        }
    }
    match problems.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn holds(condition: &Condition, variables: &Variables) -> Result<bool, String> {
    let failed = |why: &dyn std::fmt::Display| {
        format!("expression '{}' resulted in error: {why}", condition.expression.trim())
    };
    let value = condition.compiled().and_then(|expression| expression.evaluate(variables));
    match value.map_err(|error| failed(&error))? {
        Cel::Bool(result) => Ok(result),
        other => Err(failed(&format!("expected bool, got {}", other.type_of()))),
    }
}

/// What the client is told: the expression's text if it yields one line, else the fixed text.
fn message(validation: &Validation, variables: &Variables) -> String {
    let told = Expression::compile(&validation.message_expression)
        .ok()
        .filter(|_| !validation.message_expression.is_empty())
        .and_then(|expression| expression.evaluate(variables).ok());
    if let Some(Cel::String(text)) = told
        && !text.trim().is_empty()
        && !text.contains('\n')
    {
        return text.trim().to_owned();
    }
    if validation.message.is_empty() {
        return format!("failed expression: {}", validation.check.expression.trim());
    }
    validation.message.trim().to_owned()
}
