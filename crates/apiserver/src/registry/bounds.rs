//! How deep and how large an object may become, whatever a request says.
//!
//! A body is limited where it is read. These are the limits of what a small request can make out of an object
//! that is there already: patches that nest it deeper each time, or copy a part of it into itself.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::{
    error::{Details, Error, Reason, Result},
    schema::json::size,
};

/// How deep an object may be nested, its record of field owners included. Decoders stop at 128 levels, and a list
/// or a watch adds some.
const DEPTH: usize = 120;

/// How long a stored object may be, as in etcd.
pub(super) const OBJECT: usize = 1536 * 1024;

/// How many objects the lists of an object may hold. Defaults make a large object of each of them, and so many of the
/// smallest that mean anything fill a stored object.
const ENTRIES: usize = 65_536;

/// How many operations a JSON patch may have, as in the real server.
const OPERATIONS: usize = 10_000;

/// By how much the copies of a JSON patch may make an object larger, as in the real server.
const COPIED: usize = 3 * 1024 * 1024;

/// How many elements of lists a JSON patch may move: each insertion and each removal moves all that stand behind it.
const MOVED: usize = 20_000_000;

/// Refuses an object that could not be read again.
pub(super) fn check_depth(object: &Value) -> Result<()> {
    if fits(object, DEPTH) {
        return Ok(());
    }
    Err(Error::bad_request(format!("the object is nested too deeply: at most {DEPTH} levels are allowed")))
}

/// Refuses an object that defaults would make many times as large as it came.
pub(super) fn check_entries(object: &Value) -> Result<()> {
    if entries(object) <= ENTRIES {
        return Ok(());
    }
    let message = format!("the lists of the object have more than {ENTRIES} entries: split it into several");
    Err(Error::new(Reason::RequestEntityTooLarge, message))
}

fn entries(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(entries).sum(),
        Value::Array(list) => list.iter().map(|value| usize::from(value.is_object()) + entries(value)).sum(),
        _ => 0,
    }
}

fn fits(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Object(map) => map.values().all(|value| fits(value, below)),
        Value::Array(list) => list.iter().all(|value| fits(value, below)),
        _ => true,
    }
}

/// Applies a JSON patch, one operation after the other, within bounds.
pub(super) fn json_patch(old: &Value, patch: &Patch) -> Result<Value> {
    if patch.0.len() > OPERATIONS {
        let message =
            format!("The allowed maximum operations in a JSON patch is {OPERATIONS}, got {}", patch.0.len());
        return Err(Error::new(Reason::RequestEntityTooLarge, message));
    }
    let (mut new, mut copied, mut moved) = (old.clone(), 0, 0);
    for operation in &patch.0 {
        moved += elements_moved(&new, operation);
        if moved > MOVED {
            let message = format!(
                "Unable to complete the patch, its operations move {moved} elements of lists, exceeding the limit \
                 {MOVED}: replace the list instead"
            );
            return Err(Error::new(Reason::RequestEntityTooLarge, message));
        }
        if let PatchOperation::Copy(copy) = operation {
            copied += new.pointer(copy.from.as_str()).map_or(0, size);
            if copied > COPIED {
                let message = format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the \
                     limit {COPIED}"
                );
                return Err(Error::new(Reason::RequestEntityTooLarge, message));
            }
        }
        json_patch::patch(&mut new, std::slice::from_ref(operation)).map_err(|error| {
            tracing::debug!(%error, "a JSON patch did not apply");
            let mut failure =
                Error::new(Reason::Invalid, "the server rejected our request due to an error in our request");
            failure.details = Some(Box::<Details>::default());
            failure
        })?;
    }
    Ok(new)
}

/// How many elements stand behind those that an operation inserts or removes.
fn elements_moved(object: &Value, operation: &PatchOperation) -> usize {
    let behind = |path: &str| {
        let Some((list, index)) = path.rsplit_once('/') else { return 0 };
        let Some(Value::Array(list)) = object.pointer(list) else { return 0 };
        index.parse().map_or(0, |index| list.len().saturating_sub(index))
    };
    match operation {
        PatchOperation::Add(one) => behind(one.path.as_str()),
        PatchOperation::Remove(one) => behind(one.path.as_str()),
        PatchOperation::Copy(one) => behind(one.path.as_str()),
        PatchOperation::Move(one) => behind(one.from.as_str()) + behind(one.path.as_str()),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_that_double_an_object_are_stopped() {
        let double = json!([
            {"op": "copy", "from": "/a", "path": "/b"}, {"op": "copy", "from": "", "path": "/a"},
        ]);
        let operations: Vec<Value> =
            std::iter::repeat_n(double.as_array().unwrap().clone(), 30).flatten().collect();
        let patch: Patch = serde_json::from_value(json!(operations)).unwrap();
        let error = json_patch(&json!({"a": "x".repeat(1000)}), &patch).unwrap_err();
        assert_eq!(error.code, 413, "{error}");
        assert!(error.message.starts_with("Unable to complete the copy"), "{error}");
    }

    #[test]
    fn insertions_at_the_head_of_a_long_list_have_an_end() {
        let insert = |count: usize| -> Patch {
            let one = json!({"op": "add", "path": "/a/0", "value": 1});
            serde_json::from_value(json!(vec![one; count])).unwrap()
        };
        let long = json!({"a": vec![0; 300_000]});
        let error = json_patch(&long, &insert(OPERATIONS)).unwrap_err();
        assert_eq!(error.code, 413, "{error}");
        assert!(error.message.starts_with("Unable to complete the patch"), "{error}");
        assert!(json_patch(&json!({"a": [1]}), &insert(2000)).is_ok(), "short lists may be changed often");
    }

    #[test]
    fn too_many_operations_are_refused_by_their_number() {
        let operations = vec![json!({"op": "test", "path": "/a", "value": 1}); OPERATIONS + 1];
        let patch: Patch = serde_json::from_value(json!(operations)).unwrap();
        assert_eq!(json_patch(&json!({"a": 1}), &patch).unwrap_err().code, 413);
    }

    #[test]
    fn an_object_may_be_as_deep_as_it_can_be_read_again() {
        let nest = |levels: usize| (1..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(check_depth(&nest(DEPTH)).is_ok());
        assert!(check_depth(&nest(DEPTH + 1)).is_err());
        let listed = json!({"items": [nest(DEPTH)]}).to_string();
        assert!(serde_json::from_str::<Value>(&listed).is_ok(), "a list of it can be read");
    }
}
