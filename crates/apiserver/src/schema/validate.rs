//! Validation of custom objects against their schema, with the real server's checks, order and
//! words.
//!
//! When an object is updated, what was invalid before and did not change is let through, so that
//! a schema can become stricter without freezing the objects that exist.

use serde_json::{Map, Value};

use super::{
    Additional, FieldError, FieldReason, TypeRef, cel,
    node::{Node, NodeId, Types},
};

mod formats;
mod limits;
mod lists;
mod types;

pub(super) use lists::Counterparts;

/// What one schema says about one value.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// How many checks passed; of alternatives that all fail, the one with most is reported.
    passed: usize,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.passed += other.passed;
    }

    fn fail(&mut self, error: Option<FieldError>) {
        self.errors.extend(error);
    }
}

impl TypeRef {
    /// Why a value alone does not fit the schema, rules and lists aside: for defaults.
    pub(super) fn validate_shape(&self, value: &Value) -> Vec<FieldError> {
        Walk { types: self.types() }.value(self.id(), value, None, "").errors
    }

    /// Why `new` is not valid; empty when it is. `old` is the object that it replaces.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let walk = Walk { types: self.types() };
        let mut errors = walk.value(self.id(), new, old, "").errors;
        errors.extend(lists::embedded(self.types(), self.id(), new));
        // Lists that had duplicates before may keep them.
        let before = old.map(|old| lists::duplicates(self.types(), self.id(), old));
        if before.is_none_or(|duplicates| duplicates.is_empty()) {
            errors.extend(lists::duplicates(self.types(), self.id(), new));
        }
        if blocks_rules(&errors) {
            if self.types().has_rules() {
                let why = "some validation rules were not checked because the object was invalid; correct the \
                           existing errors to complete validation";
                errors.push(FieldError::invalid("", &Value::Null, why));
            }
        } else {
            errors.extend(cel::violations(self, new, old));
        }
        errors
    }
}

/// Whether rules that look at the whole object make no sense, since its shape is wrong already.
fn blocks_rules(errors: &[FieldError]) -> bool {
    errors.iter().any(|error| {
        matches!(
            error.reason,
            FieldReason::NotSupported
                | FieldReason::Required
                | FieldReason::TooLong
                | FieldReason::TooMany
                | FieldReason::TypeInvalid
        )
    })
}

struct Walk<'a> {
    types: &'a Types,
}

impl<'a> Walk<'a> {
    /// Checks a value, and forgives when it was like that before.
    fn value(&self, id: NodeId, value: &Value, old: Option<&Value>, path: &str) -> Outcome {
        let mut outcome = self.check(self.types.get(id), value, old, path);
        if !outcome.errors.is_empty() && old == Some(value) {
            outcome.errors.clear();
        }
        outcome
    }

    fn check(&self, node: &'a Node, value: &Value, old: Option<&Value>, path: &str) -> Outcome {
        let mut outcome = Outcome::default();
        if types::applies(node) || value.is_null() {
            match types::check(node, value, path) {
                None => outcome.passed += 1,
                error => outcome.fail(error),
            }
            outcome.passed += 1;
        }
        if value.is_null() {
            outcome.fail(limits::enumeration(node, value, path));
            return outcome;
        }
        outcome.merge(self.combinations(node, value, old, path));
        match value {
            Value::String(text) => {
                outcome.fail(limits::string(&node.limits, text, path));
                outcome.fail(formats::check(node, text, path));
                outcome.passed += 1;
            }
            Value::Number(number) => {
                outcome.errors.extend(limits::number(node, number, path));
                outcome.passed += 2;
            }
            Value::Array(items) => self.items(node, items, old, path, &mut outcome),
            _ => {}
        }
        outcome.fail(limits::enumeration(node, value, path));
        outcome.passed += 1;
        if let Value::Object(object) = value {
            self.object(node, object, old, path, &mut outcome);
        }
        outcome.passed += 1;
        outcome
    }

    fn items(&self, node: &Node, items: &[Value], old: Option<&Value>, path: &str, outcome: &mut Outcome) {
        if let Some(child) = node.items {
            let known = lists::Counterparts::of(node, old);
            for (index, item) in items.iter().enumerate() {
                let before = known.get(item);
                outcome.merge(self.value(child, item, before, &format!("{path}[{index}]")));
            }
        }
        outcome.errors.extend(limits::list(&node.limits, items, path));
        outcome.passed += 2;
    }

    fn object(
        &self,
        node: &Node,
        object: &Map<String, Value>,
        old: Option<&Value>,
        path: &str,
        outcome: &mut Outcome,
    ) {
        outcome.errors.extend(limits::object(&node.limits, object.len(), path));
        for (key, value) in object {
            if node.properties.contains_key(key) {
                continue;
            }
            match node.additional {
                Additional::Forbidden => outcome.errors.push(FieldError::invalid(
                    path,
                    &Value::String(key.clone()),
                    &format!("{path}.{key} in body is a forbidden property"),
                )),
                Additional::Schema(child) => {
                    let before = old.and_then(|old| old.get(key));
                    outcome.merge(self.value(child, value, before, &join(path, key)));
                }
                Additional::Unset | Additional::Allowed => {}
            }
        }
        for (name, child) in &node.properties {
            let Some(value) = object.get(name) else { continue };
            // The server's own metadata is checked elsewhere; here the author's wishes count.
            let child = if name == "metadata" && self.types.get(*child).is_object_meta() {
                node.metadata_rules
            } else {
                Some(*child)
            };
            if let Some(child) = child {
                let before = old.and_then(|old| old.get(name));
                outcome.merge(self.value(child, value, before, &join(path, name)));
            }
        }
        for name in &node.required {
            if !object.contains_key(name) {
                outcome.errors.push(FieldError::required(&join(path, name), ""));
            }
        }
        outcome.passed += 1;
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`.
    fn combinations(&self, node: &'a Node, value: &Value, old: Option<&Value>, path: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let try_all = |ids: &[NodeId]| -> Vec<Outcome> {
            ids.iter().map(|id| self.check(self.types.get(*id), value, old, path)).collect()
        };
        let whole = |text: String| FieldError::invalid("", &Value::String(String::new()), &text);
        if !node.any_of.is_empty() {
            let (chosen, valid) = choose(try_all(&node.any_of));
            if valid == 0 {
                outcome.errors.push(whole(format!("{path:?} must validate at least one schema (anyOf)")));
            }
            outcome.merge(chosen);
        }
        if !node.one_of.is_empty() {
            let (chosen, valid) = choose(try_all(&node.one_of));
            if valid != 1 {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    many => format!("Found {many} valid alternatives"),
                };
                let text = format!("{path:?} must validate one and only one schema (oneOf). {found}");
                outcome.errors.push(whole(text));
            }
            if valid <= 1 {
                outcome.merge(chosen);
            }
        }
        if !node.all_of.is_empty() {
            let results = try_all(&node.all_of);
            let valid = results.iter().filter(|result| result.errors.is_empty()).count();
            let complete = valid == results.len();
            for result in results {
                outcome.merge(result);
            }
            if !complete {
                let none = if valid == 0 { ". None validated" } else { "" };
                outcome.errors.push(whole(format!("{path:?} must validate all the schemas (allOf){none}")));
            }
        }
        if let Some(not) = node.not
            && self.check(self.types.get(not), value, old, path).errors.is_empty()
        {
            outcome.errors.push(whole(format!("{path:?} must not validate the schema (not)")));
        }
        outcome.passed += 1;
        outcome
    }
}

/// The first alternative that holds, or the one that came nearest; and how many hold.
fn choose(results: Vec<Outcome>) -> (Outcome, usize) {
    let valid = results.iter().filter(|result| result.errors.is_empty()).count();
    let mut best: Option<Outcome> = None;
    for result in results {
        if result.errors.is_empty() {
            return (result, valid);
        }
        if best.as_ref().is_none_or(|best| result.passed > best.passed) {
            best = Some(result);
        }
    }
    // With a valid alternative, failures before it are of no interest.
    let best = best.unwrap_or_default();
    (best, valid)
}

/// The longest key that is part of a path as it is: the path of everything below a key tells it again.
const KEY: usize = 512;

/// A key as paths have it.
pub(in crate::schema) fn shown(key: &str) -> &str {
    &key[..key.floor_char_boundary(KEY)]
}

pub(in crate::schema) fn join(path: &str, key: &str) -> String {
    let key = shown(key);
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests;
