//! Taking over fields: what a former field manager has set becomes ours, so that an apply can take it away.
//!
//! Enters: the `managedFields` of an object. Leaves: the same list with the entries of former managers joined into
//! ours. The server accepts a list that is written by hand; the resource version makes sure that it replaces the very
//! list that was read.

use serde_json::{Map, Value, json};

use crate::wire::FieldManager;

/// The patch that takes the fields over; `None` if there is nothing to take.
pub(super) fn patch(manager: &FieldManager, object: &Value) -> Option<json_patch::Patch> {
    serde_json::from_value(operations(manager, object)?).ok()
}

fn operations(manager: &FieldManager, object: &Value) -> Option<Value> {
    let meta = &object["metadata"];
    let entries = meta["managedFields"].as_array()?;
    let is_main = |entry: &Value| entry["subresource"].as_str().unwrap_or_default().is_empty();
    let is_former = |entry: &&Value| {
        is_main(entry) && entry["manager"].as_str().is_some_and(|name| manager.succeeds(name))
    };
    let is_ours = |entry: &&Value| {
        is_main(entry) && entry["manager"] == manager.name() && entry["operation"] == "Apply"
    };
    let newest_former = entries.iter().rfind(is_former)?;
    let mut ours = entries.iter().find(is_ours).unwrap_or(newest_former).clone();
    let mut fields = Map::new();
    for entry in entries.iter().filter(|entry| is_former(entry) || is_ours(entry)) {
        join(&mut fields, entry["fieldsV1"].as_object().unwrap_or(&Map::new()));
    }
    ours["manager"] = manager.name().into();
    ours["operation"] = "Apply".into();
    ours["fieldsV1"] = fields.into();
    let others = entries.iter().filter(|entry| !is_former(entry) && !is_ours(entry)).cloned();
    let list: Vec<Value> = others.chain([ours]).collect();
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        {"op": "replace", "path": "/metadata/managedFields", "value": list},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
    ]))
}

/// The union of two field sets.
fn join(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (element, below) in from {
        let place = into.entry(element.clone()).or_insert_with(|| json!({}));
        if let (Value::Object(place), Value::Object(below)) = (place, below) {
            join(place, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    fn patched(entries: &[Value]) -> Option<Value> {
        let manager = FieldManager::new("us", vec!["old".into(), "manager".into()]);
        let meta = json!({"uid": "u", "resourceVersion": "7", "managedFields": entries});
        Some(operations(&manager, &json!({ "metadata": meta }))?[1]["value"].clone())
    }

    #[test]
    fn the_fields_of_former_managers_join_ours() {
        let mut status = entry("old", "Update", &json!({"f:status": {}}));
        status["subresource"] = "status".into();
        let list = patched(&[
            entry("old", "Apply", &json!({"f:data": {"f:a": {}, "f:b": {}}})),
            entry("them", "Update", &json!({"f:data": {"f:z": {}}})),
            entry("us", "Apply", &json!({"f:data": {"f:b": {}, "f:c": {}}})),
            entry("manager", "Update", &json!({"f:metadata": {"f:labels": {".": {}, "f:x": {}}}})),
            status.clone(),
        ]);
        let ours = json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}});
        let them = entry("them", "Update", &json!({"f:data": {"f:z": {}}}));
        assert_eq!(list, Some(json!([them, status, entry("us", "Apply", &ours)])));
    }

    #[test]
    fn without_former_fields_there_is_nothing_to_take() {
        assert_eq!(patched(&[entry("us", "Apply", &json!({})), entry("them", "Update", &json!({}))]), None);
        assert_eq!(patched(&[]), None);
        let first = patched(&[entry("old", "Update", &json!({"f:data": {"f:a": {}}}))]).unwrap();
        assert_eq!(first, json!([entry("us", "Apply", &json!({"f:data": {"f:a": {}}}))]));
    }
}
