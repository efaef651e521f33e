//! JSON patches from webhooks, applied as the real server's library applies them.
//!
//! It differs from the RFC in one thing that webhooks rely on: to `replace` a key that an object does not
//! have adds it.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::webhook::go_kind;

/// Why a patch could not be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is no patch.
    Undecodable(String),
    /// It does not fit the object.
    Unfit(String),
}

/// The operations of a patch, not yet understood.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Value>, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Array(operations)) => Ok(operations),
        Ok(other) => Err(Problem::Undecodable(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
            go_kind(&other)
        ))),
        Err(error) => Err(Problem::Undecodable(undecodable(bytes, &error))),
    }
}

fn undecodable(bytes: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(bytes);
    let start = text.trim_start();
    // Go says which literal it was reading when it met something else.
    for literal in ["null", "true", "false"] {
        let common = start.chars().zip(literal.chars()).take_while(|(one, other)| one == other).count();
        if common > 0 {
            let found = start.chars().nth(common).unwrap_or(' ');
            let wanted = literal.chars().nth(common).unwrap_or(' ');
            return format!("invalid character '{found}' in literal {literal} (expecting '{wanted}')");
        }
    }
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    match start.chars().next() {
        Some(first) if !"[{\"-0123456789".contains(first) => {
            format!("invalid character '{first}' looking for beginning of value")
        }
        _ => error.to_string(),
    }
}

/// Applies the operations, one after the other.
pub(super) fn apply(object: &mut Value, operations: &[Value]) -> Result<(), Problem> {
    for operation in operations {
        let kind = operation["op"].as_str().unwrap_or_default().to_owned();
        if !matches!(kind.as_str(), "add" | "remove" | "replace" | "move" | "copy" | "test") {
            return Err(Problem::Unfit(format!("Unexpected kind: {kind}")));
        }
        let path = operation["path"].as_str().unwrap_or_default().to_owned();
        let mut operation = operation.clone();
        if kind == "replace" && is_missing_key(object, &path) {
            operation["op"] = Value::from("add");
        }
        let failed = || Problem::Unfit(words(&kind, &path));
        let operation: PatchOperation = serde_json::from_value(operation).map_err(|_| failed())?;
        json_patch::patch(object, std::slice::from_ref(&operation)).map_err(|_| failed())?;
    }
    Ok(())
}

fn is_missing_key(object: &Value, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    object.pointer(path).is_none() && object.pointer(parent).is_some_and(Value::is_object)
}

fn words(kind: &str, path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    match kind {
        "test" => format!("testing value {path} failed: test failed"),
        "remove" => {
            format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {last}: missing value"
            )
        }
        _ => format!("{kind} operation does not apply: doc is missing path: \"{path}\": missing value"),
    }
}
