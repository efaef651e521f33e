//! `x-kubernetes-validations`: rules that a schema sets for its values.

use std::sync::Arc;

use kube_cel::cel::{Value, objects::OptionalValue};
use serde_json::Value as Json;

use super::{CelError, typed};
use crate::schema::{
    Additional, FieldError, TypeRef,
    node::{Kind, Node, NodeId, Rule, Types},
    validate::{Counterparts, join, shown},
};

/// A message that an expression makes may be no longer than this.
const MAX_MESSAGE_SIZE: usize = 5 * 1024;

/// The rules that `new` breaks. `old` is the object which it replaces: rules that compare with it
/// run only where there is an old value, and values that did not change break no rule.
pub(crate) fn violations(ty: &TypeRef, new: &Json, old: Option<&Json>) -> Vec<FieldError> {
    let mut walk = Walk { types: ty.types(), errors: Vec::new(), exhausted: false };
    if ty.types().has_rules() {
        let unchanged = old == Some(new);
        walk.value(ty.id(), new, old, "", At { root: true, unchanged });
    }
    walk.errors
}

/// What is known about the place of a value.
#[derive(Clone, Copy)]
struct At {
    root: bool,
    /// Whether the value, or the nearest thing around it that can be compared, is as it was.
    unchanged: bool,
}

struct Walk<'a> {
    types: &'a Types,
    errors: Vec<FieldError>,
    /// Set when a rule was too costly: then no more are run.
    exhausted: bool,
}

impl<'a> Walk<'a> {
    fn value(&mut self, id: NodeId, new: &Json, old: Option<&Json>, path: &str, at: At) {
        let node: &'a Node = self.types.get(id);
        if new.is_null() || self.exhausted {
            return;
        }
        self.rules(node, id, new, old, path, at);
        for alternative in &node.all_of {
            let rules = self.types.get(*alternative);
            self.rules(rules, id, new, old, path, at);
        }
        match new {
            Json::Array(items) => self.items(node, items, old, path, at),
            Json::Object(object) => {
                for (key, value) in object {
                    let (child, path) = match (node.properties.get(key), node.additional) {
                        (Some(child), _) => (*child, join(path, key)),
                        (None, Additional::Schema(child)) => (child, format!("{path}[{}]", shown(key))),
                        _ => continue,
                    };
                    let before = old.and_then(|old| old.get(key));
                    let unchanged = before.map_or(at.unchanged, |before| before == value);
                    self.value(child, value, before, &path, At { root: false, unchanged });
                }
            }
            _ => {}
        }
    }

    fn items(&mut self, node: &Node, items: &[Json], old: Option<&Json>, path: &str, at: At) {
        let Some(child) = node.items else { return };
        let known = Counterparts::of(node, old);
        for (index, item) in items.iter().enumerate() {
            let before = known.get(item);
            let unchanged = before.map_or(at.unchanged, |before| before == item);
            self.value(child, item, before, &format!("{path}[{index}]"), At { root: false, unchanged });
        }
    }

    fn rules(&mut self, node: &'a Node, id: NodeId, new: &Json, old: Option<&Json>, path: &str, at: At) {
        if node.rules.is_empty() {
            return;
        }
        let whole = at.root || self.types.get(id).embedded_resource;
        let value = typed(self.types, id, new, whole);
        let before = old.filter(|old| !old.is_null()).map(|old| typed(self.types, id, old, whole));
        for rule in &node.rules {
            if self.exhausted {
                return;
            }
            let subject =
                Subject { node: self.types.get(id), json: new, value: &value, before: before.as_ref() };
            self.rule(rule, &subject, path, at);
        }
    }

    fn rule(&mut self, rule: &Rule, subject: &Subject<'_>, path: &str, at: At) {
        let kind = Json::String(subject.node.kind.map_or("", Kind::as_str).to_owned());
        let compiled = match &rule.program {
            Ok(compiled) => compiled,
            Err(error) => {
                let why = format!("rule compile error: {error}");
                self.errors.push(FieldError::invalid(path, &kind, &why));
                return;
            }
        };
        let optional = rule.optional_old_self == Some(true);
        let transition = compiled.uses_old_self();
        if transition && subject.before.is_none() && !optional {
            return;
        }
        let variables = subject.variables(optional);
        match compiled.evaluate(&variables) {
            Ok(Value::Bool(true)) => {}
            Ok(_) if !transition && at.unchanged => {}
            Ok(_) => self.errors.push(broken(rule, subject, &variables, path)),
            Err(CelError::TooCostly) => {
                self.exhausted = true;
                let why = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be \
                     run due to call cost exceeds limit for rule: {}",
                    rule.shown()
                );
                self.errors.push(FieldError::invalid(path, &kind, &why));
            }
            Err(error) => {
                let problem = error.to_string();
                let why = if problem.starts_with("no such overload") {
                    format!(
                        "'{problem}': call arguments did not match a supported operator, function or macro \
                         signature for rule: {}",
                        rule.shown()
                    )
                } else {
                    format!("{problem} evaluating rule: {}", rule.shown())
                };
                self.errors.push(FieldError::invalid(path, &kind, &why));
            }
        }
    }
}

/// The value that a rule looks at.
struct Subject<'a> {
    node: &'a Node,
    json: &'a Json,
    value: &'a Value,
    before: Option<&'a Value>,
}

impl Subject<'_> {
    fn variables(&self, optional: bool) -> Vec<(&'static str, Value)> {
        let mut variables = vec![("self", self.value.clone())];
        match (self.before, optional) {
            (Some(before), false) => variables.push(("oldSelf", before.clone())),
            (Some(before), true) => {
                let some = OptionalValue::of(before.clone());
                variables.push(("oldSelf", Value::Opaque(Arc::new(some))));
            }
            (None, true) => {
                variables.push(("oldSelf", Value::Opaque(Arc::new(OptionalValue::none()))));
            }
            (None, false) => {}
        }
        variables
    }
}

/// The error for a rule that does not hold.
fn broken(rule: &Rule, subject: &Subject<'_>, variables: &[(&str, Value)], path: &str) -> FieldError {
    let detail = message_of(rule, variables).unwrap_or_else(|| rule.message_or_default());
    let path = match &rule.field_path {
        Some(below) => join(path, below.strip_prefix('.').unwrap_or(below)),
        None => path.to_owned(),
    };
    let is_compound = matches!(subject.node.kind, Some(Kind::Object | Kind::Array));
    let value = (!is_compound).then_some(subject.json);
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(&path, &detail),
        Some("FieldValueRequired") => FieldError::required(&path, &detail),
        Some("FieldValueDuplicate") => FieldError::duplicate_or_omitted(&path, value),
        _ => FieldError::invalid_or_omitted(&path, value, &detail),
    }
}

/// What the rule's message expression says, when it says something that can be shown.
fn message_of(rule: &Rule, variables: &[(&str, Value)]) -> Option<String> {
    let expression = rule.message_program.as_ref()?;
    let Ok(Value::String(text)) = expression.evaluate(variables) else {
        return None;
    };
    let text = text.trim();
    let shown = !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE_SIZE;
    shown.then(|| text.to_owned())
}
