//! What a policy says of one request.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::Value as Cel;
use serde_json::Value;

use super::{super::review, AuditAnnotation, Condition, PolicySpec, Validation};
use crate::{
    admission::Attributes,
    registry::Resource,
    schema::cel::{self, Access, AccessCheck, Asking, CelError, Expression, REQUEST_RESOURCE, plain},
};

/// What expressions see.
#[derive(Debug)]
pub(in crate::admission) struct Input<'a> {
    pub(in crate::admission) request: &'a Attributes<'a>,
    pub(in crate::admission) resource: &'a Resource,
    pub(in crate::admission) object: Option<Value>,
    pub(in crate::admission) old: Option<Value>,
    pub(in crate::admission) namespace: Value,
    pub(in crate::admission) params: Value,
    pub(in crate::admission) access: Arc<dyn Access>,
}

/// A validation that failed.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) message: String,
    pub(super) reason: Option<String>,
}

impl Input<'_> {
    /// What the request is about, for those who want to know whether its sender may do something else with it.
    fn access_check(&self) -> AccessCheck {
        let target = self.request.target;
        AccessCheck::Resource(cel::Resource {
            group: target.resource.group.to_string(),
            plural: target.resource.plural.to_string(),
            subresource: target.subresource.to_owned(),
            namespace: target.namespace.to_owned(),
            name: self.request.name.clone(),
        })
    }
}

/// What an expression can name.
#[derive(Debug)]
pub(in crate::admission) struct Variables {
    values: Vec<(&'static str, Cel)>,
    /// The variables of the policy that have no value, and why.
    failed: HashMap<String, String>,
}

impl Variables {
    /// What an expression gives, or why it does not.
    pub(super) fn evaluate(&self, expression: Result<&Expression, CelError>) -> Result<Cel, String> {
        expression.and_then(|expression| expression.evaluate(&self.values)).map_err(|error| {
            let told = error.to_string();
            let missing = told.strip_prefix("no such key: ").and_then(|name| self.failed.get_key_value(name));
            match missing {
                Some((name, why)) => format!("composited variable \"{name}\" fails to evaluate: {why}"),
                None => told,
            }
        })
    }

    /// Adds `variables`, each of which may use the ones before it. One that fails is missing, and so fails its users.
    pub(super) fn compose(&mut self, spec: &PolicySpec) {
        let mut composed: HashMap<String, Cel> = HashMap::new();
        for variable in &spec.variables {
            self.values.push(("variables", Cel::from(composed.clone())));
            match self.evaluate(variable.value.compiled()) {
                Ok(value) => drop(composed.insert(variable.name.clone(), value)),
                Err(why) => drop(self.failed.insert(variable.name.clone(), why)),
            }
            self.values.pop();
        }
        self.values.push(("variables", Cel::from(composed)));
    }
}

/// A key and a value for the audit log.
type Annotation = (String, String);

/// The validations that the request fails, and what is said for the audit log.
pub(super) fn evaluate(spec: &PolicySpec, input: &Input<'_>) -> (Vec<Outcome>, Vec<Annotation>) {
    let fails_open = spec.failure_policy.as_deref() == Some("Ignore");
    let mut variables = variables(input);
    match conditions(&spec.match_conditions, &variables) {
        Ok(true) => {}
        Ok(false) => return (Vec::new(), Vec::new()),
        Err(_) if fails_open => return (Vec::new(), Vec::new()),
        Err(message) => return (vec![Outcome { message, reason: None }], Vec::new()),
    }
    variables.compose(spec);
    let outcomes = spec
        .validations
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
        .collect();
    (outcomes, annotations(spec, &variables))
}

/// What the policy says for the audit log. An expression that gives no text, or none at all, says nothing.
fn annotations(spec: &PolicySpec, variables: &Variables) -> Vec<Annotation> {
    let value = |annotation: &AuditAnnotation| {
        let expression = Expression::compile(&annotation.value_expression).ok()?;
        match variables.evaluate(Ok(&expression)) {
            Ok(Cel::String(text)) => Some((annotation.key.clone(), text.to_string())),
            _ => None,
        }
    };
    spec.audit_annotations.iter().filter_map(value).collect()
}

pub(in crate::admission) fn variables(input: &Input<'_>) -> Variables {
    let fields = review::fields("", input.request, input.resource, None, None);
    let shown = |value: &Option<Value>| value.as_ref().map_or(Cel::Null, plain);
    let values = vec![
        ("object", shown(&input.object)),
        ("oldObject", shown(&input.old)),
        ("request", plain(&fields)),
        ("namespaceObject", plain(&input.namespace)),
        ("params", plain(&input.params)),
        ("authorizer", Asking::start(Arc::clone(&input.access))),
        (REQUEST_RESOURCE, Asking::about(Arc::clone(&input.access), input.access_check())),
    ];
    Variables { values, failed: HashMap::new() }
}

pub(in crate::admission) fn conditions(list: &[Condition], variables: &Variables) -> Result<bool, String> {
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
    match variables.evaluate(condition.compiled()).map_err(|error| failed(&error))? {
        Cel::Bool(result) => Ok(result),
        other => Err(failed(&format!("expected bool, got {}", other.type_of()))),
    }
}

/// What the client is told: the expression's text if it yields one line, else the fixed text.
fn message(validation: &Validation, variables: &Variables) -> String {
    let told = Expression::compile(&validation.message_expression)
        .ok()
        .filter(|_| !validation.message_expression.is_empty())
        .and_then(|expression| variables.evaluate(Ok(&expression)).ok());
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
