//! `ConversionReview`: the question to a conversion webhook, and what it may answer.

use serde_json::{Map, Value, json};

use crate::registry::names;

const GROUP: &str = "apiextensions.k8s.io";

/// The first version that the webhook takes and the server speaks.
pub(super) fn version(versions: &[String]) -> Option<&str> {
    versions.iter().map(String::as_str).find(|version| matches!(*version, "v1" | "v1beta1"))
}

/// The question.
pub(super) fn question(version: &str, uid: &str, wanted: &str, objects: &[Value]) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": format!("{GROUP}/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
    })
}

/// The objects in an answer.
pub(super) fn converted(version: &str, uid: &str, review: &Value) -> Result<Vec<Value>, String> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (own, kind) = (text(review, "apiVersion"), text(review, "kind"));
    let expected = format!("{GROUP}/{version}");
    if version == "v1" && (own != expected || kind != "ConversionReview") {
        let (group, number) = own.split_once('/').unwrap_or(("", &own));
        return Err(format!(
            "expected webhook response of {expected}, Kind=ConversionReview, got {group}/{number}, Kind={kind}"
        ));
    }
    let response = review.get("response").filter(|response| !response.is_null());
    let response = response.ok_or_else(|| "no response provided".to_owned())?;
    if version == "v1" && text(response, "uid") != uid {
        return Err(format!("expected response.uid=\"{uid}\", got \"{}\"", text(response, "uid")));
    }
    let status = text(&response["result"], "status");
    if status != "Success" {
        let message = text(&response["result"], "message");
        if message.is_empty() {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        return Err(message);
    }
    Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
}

/// A converted object with the metadata of the one that was sent: a conversion may change labels and
/// annotations, and nothing else that makes an object what it is.
pub(super) fn accept(wanted: &str, sent: &Value, mut object: Value) -> Result<Value, String> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let version = text(&object, "apiVersion");
    if version != wanted {
        return Err(format!(
            "invalid object at index 0: invalid groupVersion (expected {wanted}, received {version})"
        ));
    }
    let (before, after) = (text(sent, "kind"), text(&object, "kind"));
    if before != after {
        return Err(format!("invalid object at index 0: invalid kind (expected {before}, received {after})"));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (text(&sent["metadata"], field), text(&object["metadata"], field));
        if before != after {
            return Err(format!("invalid object: must have the same {shown}: {before} != {after}"));
        }
    }
    let metadata = restored(sent, &object).map_err(|why| format!("invalid metadata: {why}"))?;
    object["metadata"] = metadata;
    Ok(object)
}

fn restored(sent: &Value, object: &Value) -> Result<Value, String> {
    let Some(returned) = object.get("metadata").and_then(Value::as_object) else {
        return Err("missing metadata in converted object".to_owned());
    };
    let mut metadata = sent["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match returned.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(map)) => {
                check_map(field, map)?;
                metadata.insert(field.to_owned(), Value::Object(map.clone()));
            }
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        }
    }
    Ok(Value::Object(metadata))
}

fn check_map(field: &str, map: &Map<String, Value>) -> Result<(), String> {
    for (key, value) in map {
        if !value.is_string() {
            return Err(format!("metadata.{field}[{key}] must be a string in converted object"));
        }
        if let Some(why) = names::qualified_name_error(key) {
            let shown = if field == "labels" { "labels" } else { "annotation" };
            return Err(format!("metadata.{shown}: Invalid value: {}: {why}", json!(key)));
        }
    }
    Ok(())
}
