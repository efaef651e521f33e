//! Answers: from results to HTTP.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Body, Call};
use crate::error::Error;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn response(code: StatusCode, kind: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A name for content that changes when the content does.
pub(super) fn tag(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let half = digest.first_chunk().expect("a SHA-256 must have 32 bytes");
    format!("{:032X}", u128::from_be_bytes(*half))
}

impl Call<'_> {
    /// The answer with a name for its content, or a word that the client has it already.
    pub(super) fn unless_known(&self, tag: &str, make: impl FnOnce() -> Response<Body>) -> Response<Body> {
        let quoted = format!("\"{tag}\"");
        let known = self.header(header::IF_NONE_MATCH).split(',').map(str::trim);
        let known = known.map(|one| one.trim_start_matches("W/")).any(|one| one == quoted || one == "*");
        let mut response = if known {
            with_status(Response::new(Body::whole(Bytes::new())), StatusCode::NOT_MODIFIED)
        } else {
            make()
        };
        if let Ok(value) = HeaderValue::from_str(&quoted) {
            response.headers_mut().insert(header::ETAG, value);
        }
        response
    }
}

/// A value as JSON.
pub(super) fn json(value: &Value) -> Response<Body> {
    bytes(value.to_string().into())
}

/// A set of public keys.
pub(super) fn key_set(value: &Value) -> Response<Body> {
    let media = HeaderValue::from_static("application/jwk-set+json");
    response(StatusCode::OK, media, Body::whole(value.to_string()))
}

/// Bytes that are JSON already.
pub(super) fn bytes(bytes: Bytes) -> Response<Body> {
    response(StatusCode::OK, JSON, Body::whole(bytes))
}

/// A JSON body in pieces or without an end.
pub(super) fn body(body: Body) -> Response<Body> {
    response(StatusCode::OK, JSON, body)
}

/// The same answer with another status.
pub(super) fn with_status(mut response: Response<Body>, code: StatusCode) -> Response<Body> {
    *response.status_mut() = code;
    response
}

/// The same answer with warnings for the client to show. One that cannot be a header is left out.
pub(super) fn with_warnings(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    for warning in warnings.iter().filter(|text| !text.contains(char::is_control)) {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// A page of metrics.
pub(super) fn metrics(page: String) -> Response<Body> {
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response(StatusCode::OK, media, Body::whole(page))
}

/// Plain text.
pub(super) fn text(text: &str) -> Response<Body> {
    response(StatusCode::OK, TEXT, Body::whole(text.to_owned()))
}

/// The answer of a health check that failed.
pub(super) fn health_failure(text: &str) -> Response<Body> {
    response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, Body::whole(text.to_owned()))
}

/// The answer to a path outside of the API.
pub(super) fn not_a_path() -> Response<Body> {
    response(StatusCode::NOT_FOUND, TEXT, Body::whole("404 page not found\n"))
}

/// A failure.
pub(super) fn failure(error: &Error) -> Response<Body> {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(code, JSON, Body::whole(error.to_status().to_string()));
    let seconds = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
