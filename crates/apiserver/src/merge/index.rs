//! Which item of a list is which: the path element that names it.

use serde_json::Value;

use super::path::PathElement;
use crate::schema::{ListRelation, ListShape, Types};

/// The element naming `item`, or why it cannot be named.
pub(crate) fn element_of(types: &Types, list: &ListShape, item: &Value) -> Result<PathElement, String> {
    match &list.relation {
        ListRelation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListRelation::Set => set_element(item),
        ListRelation::Map(keys) => map_element(types, list, keys, item),
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    let problem = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(scalar.clone())),
    };
    Err(problem.to_owned())
}

fn map_element(
    types: &Types,
    list: &ListShape,
    keys: &[String],
    item: &Value,
) -> Result<PathElement, String> {
    let object = match item {
        Value::Object(object) => object,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let items = types.get(list.items);
    // A key that is absent and has no default is left out: an item that has it is another item.
    let mut fields: Vec<(String, Value)> = keys
        .iter()
        .filter_map(|key| {
            let default = || {
                let id = items.properties.get(key)?;
                types.get(*id).default.as_ref()
            };
            let value = object.get(key).or_else(default)?;
            Some((key.clone(), value.clone()))
        })
        .collect();
    if fields.is_empty() {
        let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and \
             doesn't have default values for any key fields)",
            quoted.join(" ")
        ));
    }
    fields.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(PathElement::Key(fields))
}
