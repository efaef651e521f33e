//! What a container is asked and told: probes, hooks, and the variables that it takes from elsewhere.

use serde_json::{Value, json};

use super::container::port_name_errors;
use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at, list},
        metadata::NameRule,
        resource::text,
    },
};

/// Checks a probe.
pub(super) fn probe(causes: &mut Causes, probe: &Value, place: &str, kind: &str) {
    handler(causes, probe, place, None);
    let counts =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    check::non_negative(causes, probe, place, &counts);
    if let Some(seconds) = probe["terminationGracePeriodSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        let field = at(place, "terminationGracePeriodSeconds");
        causes.push(Cause::invalid(field, &json!(seconds), "must be greater than 0"));
    }
    let successes = probe["successThreshold"].as_i64().unwrap_or(1);
    if kind == "readinessProbe" {
        if let Some(seconds) = probe.get("terminationGracePeriodSeconds") {
            let why = "must not be set for readinessProbes";
            causes.push(Cause::invalid(at(place, "terminationGracePeriodSeconds"), seconds, why));
        }
    } else if successes != 1 {
        causes.push(Cause::invalid(at(place, "successThreshold"), &json!(successes), "must be 1"));
    }
}

/// Checks what happens when a container starts and before it ends.
pub(super) fn lifecycle(causes: &mut Causes, lifecycle: &Value, grace: Option<i64>, place: &str) {
    for hook in ["postStart", "preStop"] {
        if let Some(spec) = lifecycle.get(hook) {
            handler(causes, spec, &at(place, hook), grace);
        }
    }
}

fn handler(causes: &mut Causes, object: &Value, place: &str, grace: Option<i64>) {
    let known = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut given = known.iter().filter_map(|name| Some((*name, object.get(*name)?)));
    let Some((name, first)) = given.next() else {
        causes.push(Cause::required(place, "must specify a handler type"));
        return;
    };
    let field = at(place, name);
    match name {
        "exec" if list(first, "command").is_empty() => {
            causes.push(Cause::required(at(&field, "command"), ""));
        }
        "httpGet" => http_get(causes, first, &field),
        "tcpSocket" => port(causes, &first["port"], &at(&field, "port")),
        "grpc" => check::port(causes, first["port"].as_i64().unwrap_or_default(), at(&field, "port")),
        "sleep" => sleep(causes, first, grace, &field),
        _ => {}
    }
    for (name, _) in given {
        causes.push(Cause::forbidden(at(place, name), "may not specify more than 1 handler type"));
    }
}

fn http_get(causes: &mut Causes, action: &Value, place: &str) {
    check::required(causes, action, place, "path");
    port(causes, &action["port"], &at(place, "port"));
    check::one_of(causes, action, place, "scheme", &["HTTP", "HTTPS"]);
    for header in list(action, "httpHeaders") {
        let name = text(header, "/name");
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.bytes().all(plain) {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex \
                       used for validation is '[-A-Za-z0-9]+')";
            causes.push(Cause::invalid(at(place, "httpHeaders"), &json!(name), why));
        }
    }
}

/// A port by number or by name.
fn port(causes: &mut Causes, port: &Value, place: &str) {
    match port {
        Value::String(name) => {
            let wrong = port_name_errors(name).into_iter();
            causes.extend(wrong.map(|why| Cause::invalid(place, &json!(name), why)));
        }
        other => check::port(causes, other.as_i64().unwrap_or_default(), place),
    }
}

fn sleep(causes: &mut Causes, sleep: &Value, grace: Option<i64>, place: &str) {
    let seconds = sleep["seconds"].as_i64().unwrap_or_default();
    let Some(grace) = grace else { return };
    if seconds < 0 || seconds > grace {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.push(Cause::invalid(place, &json!(seconds), why));
    }
}

/// Checks the sources of many variables at once.
pub(super) fn env_from(causes: &mut Causes, container: &Value, place: &str) {
    let all = at(place, "envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let place = format!("{place}.envFrom[{index}]");
        let prefix = text(source, "/prefix");
        if !prefix.is_empty() && !prefix.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let why = "a valid environment variable name must consist only of printable ASCII characters other than \
                       '='";
            causes.push(Cause::invalid(at(&place, "prefix"), &json!(prefix), why));
        }
        let mut given =
            ["configMapRef", "secretRef"].iter().filter_map(|name| Some((*name, source.get(*name)?)));
        let Some((name, reference)) = given.next() else {
            let why = "must specify one of: `configMapRef` or `secretRef`";
            causes.push(Cause::invalid(all.clone(), &json!(""), why));
            continue;
        };
        for (name, reference) in [(name, reference)].into_iter().chain(given.clone()) {
            let field = format!("{place}.{name}.name");
            match text(reference, "/name") {
                "" => causes.push(Cause::required(field, "")),
                name => check::name(causes, name, field, NameRule::Subdomain),
            }
        }
        if given.next().is_some() {
            let why = "may not have more than one field specified at a time";
            causes.push(Cause::invalid(all.clone(), &json!(""), why));
        }
    }
}

/// Checks the key of a ConfigMap or a Secret.
pub(super) fn key(causes: &mut Causes, key: &str, place: String) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() {
        causes.push(Cause::required(place, ""));
        return;
    }
    let mut refuse = |why: &str| causes.push(Cause::invalid(place.clone(), &json!(key), why));
    if key.len() > 253 {
        refuse("must be no more than 253 bytes");
    }
    if !key.bytes().all(plain) {
        refuse(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        );
    }
    match key {
        "." => refuse("must not be '.'"),
        ".." => refuse("must not be '..'"),
        other if other.starts_with("..") => refuse("must not start with '..'"),
        _ => {}
    }
}
