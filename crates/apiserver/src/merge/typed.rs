//! Reading a value with its type: the fields it sets, and whether it fits at all.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    field_set::FieldSet,
    index::element_of,
    path::{Path, PathElement, shown},
};
use crate::schema::{Atom, ListRelation, Node, NodeId, ScalarKind, TypeRef, Types};

/// The fields that `value` sets: the leaves, and every item of a list or map that it names.
pub(crate) fn fields_of(ty: &TypeRef, value: &Value) -> FieldSet {
    let mut walk = FieldsWalk { types: ty.types(), path: Vec::new(), set: FieldSet::new() };
    walk.value(ty.id(), value);
    walk.set
}

struct FieldsWalk<'a> {
    types: &'a Types,
    path: Path,
    set: FieldSet,
}

impl<'a> FieldsWalk<'a> {
    fn own(&mut self) {
        self.set.insert(&self.path);
    }

    fn below(&mut self, element: PathElement, visit: impl FnOnce(&mut Self)) {
        self.path.push(element);
        visit(self);
        self.path.pop();
    }

    fn value(&mut self, id: NodeId, value: &Value) {
        let node: &'a Node = self.types.get(id);
        match node.atom(Some(value)) {
            Some(Atom::Map(map)) if map.atomic => self.own(),
            Some(Atom::Map(_)) => {
                if let Value::Object(object) = value {
                    self.map(node, object);
                }
            }
            Some(Atom::List(list)) => match (&list.relation, value) {
                (ListRelation::Atomic, _) => self.own(),
                (_, Value::Array(items)) => self.list(node, items),
                _ => {}
            },
            Some(Atom::Scalar(_)) | None => self.own(),
        }
    }

    fn map(&mut self, node: &Node, object: &Map<String, Value>) {
        for (key, value) in object {
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            let declared = node.properties.contains_key(key);
            self.below(PathElement::field(key), |walk| {
                if let Some(child) = node.child(key) {
                    walk.value(child, value);
                }
                if empty || !declared {
                    walk.own();
                }
            });
        }
    }

    fn list(&mut self, node: &Node, items: &[Value]) {
        let Some(list) = &node.shape.list else {
            return;
        };
        let mut named: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
        for item in items {
            if let Ok(element) = element_of(self.types, list, item) {
                named.entry(element).or_default().push(item);
            }
        }
        for (element, items) in named {
            self.below(element, |walk| {
                // Items that share a name are owned as one, because nothing tells them apart.
                if let [item] = items[..] {
                    walk.value(list.items, item);
                }
                walk.own();
            });
        }
    }
}

/// Why `value` does not fit its type, in the words of the real server; empty when it fits.
pub(crate) fn misfits(ty: &TypeRef, value: &Value) -> Vec<String> {
    let mut walk = FitWalk { types: ty.types(), path: Vec::new(), problems: Vec::new() };
    walk.value(ty.id(), value);
    walk.problems
}

struct FitWalk<'a> {
    types: &'a Types,
    path: Path,
    problems: Vec<String>,
}

impl<'a> FitWalk<'a> {
    fn problem(&mut self, text: &str) {
        let path = shown(&self.path);
        self.problems.push(if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") });
    }

    fn below(&mut self, element: PathElement, visit: impl FnOnce(&mut Self)) {
        self.path.push(element);
        visit(self);
        self.path.pop();
    }

    fn value(&mut self, id: NodeId, value: &Value) {
        let node: &'a Node = self.types.get(id);
        match (node.atom(Some(value)), value) {
            (_, Value::Null) | (None, _) => {}
            (Some(Atom::Map(_)), Value::Object(object)) => self.map(node, object),
            (Some(Atom::Map(_)), other) => {
                self.problem(&format!("expected map, got {}", go_value(other)));
            }
            (Some(Atom::List(_)), Value::Array(items)) => self.list(node, items),
            (Some(Atom::List(_)), other) => {
                self.problem(&format!("expected list, got {}", go_value(other)));
            }
            (Some(Atom::Scalar(kind)), scalar) => {
                if let Some(problem) = scalar_problem(kind, scalar) {
                    self.problem(&problem);
                }
            }
        }
    }

    fn map(&mut self, node: &Node, object: &Map<String, Value>) {
        for (key, value) in object {
            self.below(PathElement::field(key), |walk| match node.child(key) {
                Some(child) => walk.value(child, value),
                None => walk.problem("field not declared in schema"),
            });
        }
    }

    fn list(&mut self, node: &Node, items: &[Value]) {
        let Some(list) = &node.shape.list else {
            return;
        };
        let mut seen = std::collections::BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if list.relation == ListRelation::Atomic {
                PathElement::Index(index as i64)
            } else {
                match element_of(self.types, list, item) {
                    Ok(element) => element,
                    Err(problem) => {
                        self.problem(&format!("element {index}: {problem}"));
                        return;
                    }
                }
            };
            let repeated = list.relation != ListRelation::Atomic && !seen.insert(element.clone());
            if repeated {
                self.problem(&format!("duplicate entries for key {element}"));
            }
            self.below(element, |walk| walk.value(list.items, item));
        }
    }
}

fn scalar_problem(kind: ScalarKind, value: &Value) -> Option<String> {
    let fits = match kind {
        ScalarKind::Numeric => value.is_number(),
        ScalarKind::String => value.is_string(),
        ScalarKind::Boolean => value.is_boolean(),
        ScalarKind::Any => !value.is_array() && !value.is_object(),
    };
    if fits {
        return None;
    }
    Some(match kind {
        ScalarKind::Numeric => {
            format!("expected numeric (int or float), got {}", go_type(value))
        }
        ScalarKind::String => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value))
        }
        ScalarKind::Boolean => format!("expected boolean, got {}", go_value(value)),
        ScalarKind::Any => format!("expected any scalar, got {}", go_value(value)),
    })
}

/// The Go type that the real server prints for a JSON value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints the wrapper that holds it.
fn go_value(value: &Value) -> String {
    fn inner(value: &Value) -> String {
        match value {
            Value::Null => "<nil>".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(inner).collect();
                format!("[{}]", items.join(" "))
            }
            Value::Object(object) => {
                let entries: Vec<String> =
                    object.iter().map(|(key, value)| format!("{key}:{}", inner(value))).collect();
                format!("map[{}]", entries.join(" "))
            }
            scalar => scalar.to_string(),
        }
    }
    format!("&{{{}}}", inner(value))
}

/// A value in Go's `%#v` syntax.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(object) => {
            let entries: Vec<String> =
                object.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
