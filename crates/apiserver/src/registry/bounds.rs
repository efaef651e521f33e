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

/// How long the paths of all values of an object may be together: whoever walks the object tells them one by one, and
/// a long key is part of every path below it.
const PATHS: usize = 128 * 1024 * 1024;

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
    let mut found = Extent::default();
    found.add(object, 0);
    let message = if found.entries > ENTRIES {
        format!("the lists of the object have more than {ENTRIES} entries: split it into several")
    } else if found.paths > PATHS {
        "the object has very long keys with very much below them: use shorter keys".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::new(Reason::RequestEntityTooLarge, message))
}

/// How much there is to walk in an object.
#[derive(Default)]
struct Extent {
    /// The objects in its lists.
    entries: usize,
    /// The length of all paths together.
    paths: usize,
}

impl Extent {
    fn add(&mut self, value: &Value, path: usize) {
        self.paths = self.paths.saturating_add(path);
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| self.add(value, path + key.len() + 1)),
            Value::Array(list) => {
                self.entries += list.iter().filter(|value| value.is_object()).count();
                for value in list {
                    self.add(value, path + 1);
                }
            }
            _ => {}
        }
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
    fn a_long_key_with_much_below_it_is_refused() {
        let below = |key: usize, values: usize| json!({"k".repeat(key): vec![1; values]});
        assert!(check_entries(&below(1_000, 100_000)).is_ok());
        assert!(check_entries(&below(1_000_000, 10)).is_ok());
        assert_eq!(check_entries(&below(500_000, 300_000)).unwrap_err().code, 413);
        assert_eq!(check_entries(&json!(vec![json!({}); ENTRIES + 1])).unwrap_err().code, 413);
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
