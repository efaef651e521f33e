//! Which requests may be made twice: those of which a second one, should the first have been carried out after all,
//! changes nothing.

use http::{Method, header::CONTENT_TYPE, request::Parts};
use kube::client::Body;
use serde_json::Value;

/// Whether a request that failed without telling how far it came may be made again.
pub(super) async fn is_safe(parts: &Parts, body: Option<Body>) -> bool {
    if parts.method == Method::GET || parts.method == Method::HEAD {
        return true;
    }
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if parts.method == Method::PATCH && kind.starts_with("application/apply-patch+") {
        return true;
    }
    // Never a creation: the name may be the server's to choose.
    if ![Method::PUT, Method::PATCH, Method::DELETE].contains(&parts.method) {
        return false;
    }
    let Some(body) = body else { return false };
    let Ok(bytes) = body.collect_bytes().await else { return false };
    serde_json::from_slice(&bytes).is_ok_and(|body| is_conditional(&parts.method, &body))
}

/// Whether a write names the version, or a deletion the object, that it is meant for.
fn is_conditional(method: &Method, body: &Value) -> bool {
    let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    if *method == Method::DELETE {
        let conditions = &body["preconditions"];
        return said(&conditions["uid"]) || said(&conditions["resourceVersion"]);
    }
    match body {
        Value::Array(steps) => steps.iter().any(|step| {
            step["op"] == "test" && step["path"] == "/metadata/resourceVersion" && said(&step["value"])
        }),
        body => said(&body["metadata"]["resourceVersion"]),
    }
}
