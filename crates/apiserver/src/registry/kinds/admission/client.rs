//! What is wrong with the address of a webhook. Definitions with conversion webhooks have the same.

use serde_json::{Value, json};

use super::text;
use crate::{error::Cause, registry::names};

const FORM: &str = "; desired format: https://host[/path]";

/// Checks a `clientConfig`.
pub(in crate::registry::kinds) fn validate(config: &Value, path: &str, causes: &mut Vec<Cause>) {
    match (config["url"].as_str(), config["service"].is_object()) {
        (Some(url), false) => validate_url(url, &format!("{path}.url"), causes),
        (None, true) => validate_service(&config["service"], &format!("{path}.service"), causes),
        _ => causes.push(Cause::required(path, "exactly one of url or service is required")),
    }
}

fn validate_url(url: &str, path: &str, causes: &mut Vec<Cause>) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let mut refuse = |value: &str, why: String| causes.push(Cause::invalid(path, &json!(value), why));
    if scheme != "https" {
        refuse(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (before, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let authority = if scheme.is_empty() { "" } else { before.split('/').next().unwrap_or_default() };
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        refuse("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        refuse(user, "user information is not permitted in the URL".into());
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL".into());
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL".into());
    }
}

fn validate_service(service: &Value, path: &str, causes: &mut Vec<Cause>) {
    // The real server mixes up the two names when it calls its own check, so this is their order.
    for field in ["namespace", "name"] {
        if text(service, field).is_empty() {
            let shown = if field == "name" { "namespace" } else { "name" };
            causes.push(Cause::required(format!("{path}.{shown}"), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{path}.port"), &json!(port), why));
    }
    if let Some(url_path) = service["path"].as_str() {
        validate_path(url_path, &format!("{path}.path"), causes);
    }
}

fn validate_path(url_path: &str, path: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |why: String| causes.push(Cause::invalid(path, &json!(url_path), why));
    match url_path {
        "" | "/" => return,
        "//" => return refuse("segment[0] may not be empty".into()),
        _ => {}
    }
    if !url_path.starts_with('/') {
        refuse("must start with a '/'".into());
    }
    let mut inner = url_path.chars();
    inner.next();
    let inner = inner.as_str();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{index}] may not be empty"));
        } else if let Some(why) = names::subdomain_error(step) {
            refuse(format!("segment[{index}]: {why}"));
        }
    }
}
