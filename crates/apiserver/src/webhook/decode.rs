//! Answers of webhooks: what Kubernetes' own client makes of a status and a body.

use http::StatusCode;
use serde_json::Value;

use super::CallError;

/// What the decoder wants to find first.
const VERSION_AND_KIND: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The longest part of a body that a message repeats.
const SHOWN: usize = 2048;

/// The JSON object in an answer.
pub(super) fn answer(status: StatusCode, media: &str, body: &[u8]) -> Result<Value, CallError> {
    if !status.is_success() {
        return Err(CallError(refusal(status, media, body)));
    }
    if body.is_empty() {
        return Err(CallError(format!(
            "0-length response with status code: {} and content type: {media}",
            status.as_u16()
        )));
    }
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return Err(CallError(unreadable(body, &error))),
    };
    if !value.is_object() {
        let why = format!("json: cannot unmarshal {} into Go value of type {VERSION_AND_KIND}", kind(&value));
        return Err(CallError(format!("couldn't get version/kind; json parse error: {why}")));
    }
    Ok(value)
}

/// The name of a JSON type in Go's messages.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn unreadable(body: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(body);
    let why = if !text.trim_start().starts_with(['{', '[']) {
        // The real server tries YAML next, and as YAML almost any text is a string.
        format!("json: cannot unmarshal string into Go value of type {VERSION_AND_KIND}")
    } else if error.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        error.to_string()
    };
    format!("couldn't get version/kind; json parse error: {why}")
}

fn refusal(status: StatusCode, media: &str, body: &[u8]) -> String {
    if let Ok(value) = serde_json::from_slice::<Value>(body)
        && value["kind"] == "Status"
        && let Some(message) = value["message"].as_str().filter(|message| !message.is_empty())
    {
        return message.to_owned();
    }
    // What does not call itself text is not shown.
    let shown = if media.is_empty() || media.starts_with("text/") { body } else { b"unknown" };
    let text: String = String::from_utf8_lossy(shown).trim().chars().take(SHOWN).collect();
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => text,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 => "the server was unable to respond with a content type that the client supports".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        415 => "the body of the request was in an unknown format".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing \
                the request"
                .to_owned()
        }
        code if code >= 500 => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        code => {
            format!("the server responded with the status code {code} but did not return more information")
        }
    }
}
