//! `AdmissionReview`: the question to a webhook, and what counts as an answer.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::Attributes;
use crate::{registry::Resource, webhook::go_kind};

/// The versions of the review that the server speaks, the API's group before them.
const GROUP: &str = "admission.k8s.io";

/// What a webhook answered.
#[derive(Debug, Default)]
pub(super) struct AdmissionResponse {
    pub(super) allowed: bool,
    /// Its reasons, as a `Status`.
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
    /// What it says for the audit log.
    pub(super) annotations: Vec<(String, String)>,
    /// A patch and its type.
    pub(super) patch: Option<(Vec<u8>, String)>,
}

/// The first version that the webhook takes and the server speaks.
pub(super) fn version(versions: &[String]) -> Option<&str> {
    versions.iter().map(String::as_str).find(|version| matches!(*version, "v1" | "v1beta1"))
}

/// The question. `resource` is the version of the resource that the webhook wants to hear of.
pub(super) fn question(
    version: &str,
    uid: &str,
    request: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    json!({
        "kind": "AdmissionReview", "apiVersion": format!("{GROUP}/{version}"),
        "request": fields(uid, request, resource, object, old),
    })
}

/// The fields of a request, which expressions see as `request`.
pub(super) fn fields(
    uid: &str,
    request: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    let own = request.target.resource;
    let kind = |resource: &Resource| {
        let kind = request.kind_in(resource);
        json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
    };
    let place = |resource: &Resource| json!({"group": &*resource.group, "version": &*resource.version, "resource": &*resource.plural});
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("uid", json!(uid));
    put("kind", kind(resource));
    put("resource", place(resource));
    let part = request.target.subresource;
    if !part.is_empty() {
        put("subResource", json!(part));
    }
    put("requestKind", kind(own));
    put("requestResource", place(own));
    if !part.is_empty() {
        put("requestSubResource", json!(part));
    }
    for (name, value) in [("name", request.name.as_str()), ("namespace", request.namespace())] {
        if !value.is_empty() {
            put(name, json!(value));
        }
    }
    put("operation", json!(request.operation.name()));
    put("userInfo", request.user.to_json());
    put("object", object.cloned().unwrap_or_default());
    put("oldObject", old.cloned().unwrap_or_default());
    put("dryRun", json!(request.dry_run));
    put("options", request.options());
    Value::Object(fields)
}

/// What goes wrong while an answer is decoded, and what is wrong with a decoded one.
#[derive(Debug)]
pub(super) enum Unusable {
    /// It is no review.
    Undecodable(String),
    /// It is a review that says nothing.
    Invalid(String),
}

/// Reads an answer.
pub(super) fn response(
    version: &str,
    uid: &str,
    mutating: bool,
    review: &Value,
) -> Result<AdmissionResponse, Unusable> {
    check_kind(version, review).map_err(Unusable::Undecodable)?;
    let invalid = |why: String| Err(Unusable::Invalid(why));
    let Some(response) = review.get("response").filter(|response| !response.is_null()) else {
        return invalid("webhook response was absent".into());
    };
    check_types(response).map_err(Unusable::Undecodable)?;
    let patch = patch_bytes(response).map_err(Unusable::Undecodable)?;
    let kind = response.get("patchType").and_then(Value::as_str);
    let text = |name: &str| response[name].as_str().unwrap_or_default();
    if version == "v1" {
        if text("uid") != uid {
            return invalid(format!("expected response.uid=\"{uid}\", got \"{}\"", text("uid")));
        }
        let (own, named) = (review["apiVersion"].as_str(), review["kind"].as_str());
        if own.is_none_or(str::is_empty) || named.is_none_or(str::is_empty) {
            return invalid(format!(
                "expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got /, Kind="
            ));
        }
        match (mutating, patch.is_empty(), kind) {
            (true, false, None) => {
                return invalid("webhook returned response.patch but not response.patchType".into());
            }
            (true, true, Some(_)) => {
                return invalid("webhook returned response.patchType but not response.patch".into());
            }
            (true, false, Some("")) => {
                return invalid("webhook returned invalid response.patchType of \"\"".into());
            }
            (false, false, _) => return invalid("validating webhook may not return response.patch".into()),
            (false, true, Some(_)) => {
                return invalid("validating webhook may not return response.patchType".into());
            }
            _ => {}
        }
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
    Ok(AdmissionResponse {
        allowed: response["allowed"] == json!(true),
        status: response.get("status").filter(|status| status.is_object()).cloned(),
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        annotations: annotations
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        patch: (mutating && !patch.is_empty()).then(|| (patch, kind.unwrap_or("JSONPatch").to_owned())),
    })
}

/// A review that names no version is taken as the one that was asked for.
fn check_kind(version: &str, review: &Value) -> Result<(), String> {
    let (own, kind) = (review["apiVersion"].as_str().unwrap_or(""), review["kind"].as_str().unwrap_or(""));
    if own.is_empty() || kind.is_empty() || (own == format!("{GROUP}/{version}") && kind == "AdmissionReview")
    {
        return Ok(());
    }
    match own.strip_prefix("admission.k8s.io/") {
        Some(other @ ("v1" | "v1beta1")) if kind == "AdmissionReview" => Err(format!(
            "converting ({other}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        )),
        _ => Err(format!(
            "no kind \"{kind}\" is registered for version \"{own}\" in scheme \"pkg/runtime/scheme.go:111\""
        )),
    }
}

type Check = fn(&Value) -> bool;

fn check_types(response: &Value) -> Result<(), String> {
    let wrong = |field: &str, value: &Value, wanted: &str| {
        format!(
            "json: cannot unmarshal {} into Go struct field AdmissionResponse.response.{field} of type {wanted}",
            go_kind(value)
        )
    };
    if !response.is_object() {
        let kind = go_kind(response);
        return Err(format!(
            "json: cannot unmarshal {kind} into Go struct field AdmissionReview.response of type v1.AdmissionResponse"
        ));
    }
    let fields: [(&str, &str, Check); 7] = [
        ("uid", "types.UID", Value::is_string),
        ("allowed", "bool", Value::is_boolean),
        ("status", "v1.Status", Value::is_object),
        ("patch", "[]uint8", Value::is_string),
        ("patchType", "v1.PatchType", Value::is_string),
        ("auditAnnotations", "map[string]string", Value::is_object),
        ("warnings", "[]string", Value::is_array),
    ];
    for (field, wanted, is_right) in fields {
        if let Some(value) = response.get(field).filter(|value| !value.is_null())
            && !is_right(value)
        {
            return Err(wrong(field, value, wanted));
        }
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    match warnings.into_iter().find(|warning| !warning.is_string()) {
        Some(other) => Err(wrong("warnings", other, "string")),
        None => Ok(()),
    }
}

fn patch_bytes(response: &Value) -> Result<Vec<u8>, String> {
    let text = response["patch"].as_str().unwrap_or_default();
    STANDARD.decode(text).map_err(|error| {
        let place = match error {
            base64::DecodeError::InvalidByte(place, _)
            | base64::DecodeError::InvalidLastSymbol { offset: place, .. } => place,
            _ => text.len(),
        };
        format!("illegal base64 data at input byte {place}")
    })
}
