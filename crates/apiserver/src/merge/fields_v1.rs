//! `FieldsV1`: the JSON in which `managedFields` holds a field set.
//!
//! A key is a path element (`f:name`, `k:{"name":"web"}`, `v:"x"`, `i:3`), its value the set below
//! it; `"."` says that the element itself is a member when something lies below it too.

use serde_json::{Map, Value};

use super::{
    field_set::{Branch, FieldSet},
    path::PathElement,
};
use crate::schema::json::escaped;

/// Why a `FieldsV1` could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FieldsError {
    /// A set is not a JSON object.
    #[error("failed to read fields: expected an object, got {0}")]
    NotAnObject(String),
    /// A key has no type prefix.
    #[error("failed to read the field key {0:?}: it must start with \"f:\", \"k:\", \"v:\" or \"i:\"")]
    NoPrefix(String),
    /// What follows the prefix does not parse.
    #[error("failed to read the field key {key:?}: {problem}")]
    Malformed {
        /// The whole key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl FieldSet {
    /// Reads a `FieldsV1`. Elements of unknown types are dropped, as a future server may add some.
    pub(crate) fn from_json(json: &Value) -> Result<Self, FieldsError> {
        let Value::Object(object) = json else {
            return Err(FieldsError::NotAnObject(json.to_string()));
        };
        let mut set = Self::new();
        for (key, below) in object {
            if key == "." {
                continue;
            }
            let Some(element) = parse(key)? else {
                continue;
            };
            let is_leaf = below.as_object().is_none_or(Map::is_empty);
            let branch = Branch {
                member: is_leaf || below.get(".").is_some(),
                below: if is_leaf { Self::new() } else { Self::from_json(below)? },
            };
            set.put(element, branch);
        }
        Ok(set)
    }

    /// The set as `FieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = Map::new();
        for (element, branch) in self.branches() {
            let mut below = branch.below.to_json();
            if let (true, false, Value::Object(below)) = (branch.member, branch.below.is_empty(), &mut below)
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            object.insert(print(element), below);
        }
        Value::Object(object)
    }
}

fn parse(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let (prefix, rest) = key
        .split_at_checked(2)
        .filter(|(prefix, _)| prefix.ends_with(':'))
        .ok_or_else(|| FieldsError::NoPrefix(key.to_owned()))?;
    let malformed = |problem: String| FieldsError::Malformed { key: key.to_owned(), problem };
    Ok(Some(match prefix {
        "f:" => PathElement::field(rest),
        "v:" => PathElement::Value(serde_json::from_str(rest).map_err(|e| malformed(e.to_string()))?),
        "k:" => {
            let fields: Map<String, Value> =
                serde_json::from_str(rest).map_err(|e| malformed(e.to_string()))?;
            PathElement::Key(fields.into_iter().collect())
        }
        "i:" => PathElement::Index(rest.parse().map_err(|_| malformed("not a number".to_owned()))?),
        _ => return Ok(None),
    }))
}

fn print(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(fields) => {
            let fields: Map<String, Value> = fields.iter().cloned().collect();
            format!("k:{}", escaped(&Value::Object(fields)))
        }
        PathElement::Value(value) => format!("v:{}", escaped(value)),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

#[cfg(test)]
mod tests;
