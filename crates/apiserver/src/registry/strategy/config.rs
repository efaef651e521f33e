//! ConfigMaps, Secrets, and the roles and bindings of access control.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    Resource,
    check::{self, Causes, at, entries, list},
    default, text,
};
use crate::{error::Cause, registry::metadata::NameRule};

/// How long the data of a ConfigMap or Secret may be.
const DATA: usize = 1024 * 1024;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Defaults of an object of this room.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    match &*resource.plural {
        "secrets" => default_secret(object),
        "roles" | "clusterroles" => default(object, "rules", || Value::Null),
        "rolebindings" | "clusterrolebindings" => {
            if text(object, "/roleRef/apiGroup").is_empty() {
                object["roleRef"]["apiGroup"] = json!(RBAC);
            }
            for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
                if matches!(text(subject, "/kind"), "User" | "Group") {
                    default(subject, "apiGroup", || json!(RBAC));
                }
            }
        }
        _ => {}
    }
}

/// What was written as text is stored as bytes.
fn default_secret(secret: &mut Value) {
    if let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|map| map.remove("stringData")) {
        default(secret, "data", || json!({}));
        for (key, value) in texts {
            secret["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    }
    if text(secret, "/type").is_empty() {
        secret["type"] = json!("Opaque");
    }
}

/// What is wrong with an object of this room.
pub(super) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    match &*resource.plural {
        "configmaps" => config_map(&mut causes, new, old),
        "secrets" => secret(&mut causes, new, old),
        "roles" => rules(&mut causes, new, true),
        "clusterroles" => rules(&mut causes, new, false),
        "rolebindings" => binding(&mut causes, new, old, &["Role", "ClusterRole"]),
        "clusterrolebindings" => binding(&mut causes, new, old, &["ClusterRole"]),
        _ => {}
    }
    causes
}

fn key(causes: &mut Causes, key: &str, field: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let why = if key.len() > 253 {
        "must be no more than 253 characters"
    } else if key.is_empty() || !key.bytes().all(plain) {
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  \
         or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    } else if key == "." {
        "must not be '.'"
    } else if key == ".." {
        "must not be '..'"
    } else if key.starts_with("..") {
        "must not start with '..'"
    } else {
        return;
    };
    causes.push(Cause::invalid(format!("{field}[{key}]"), &json!(key), why));
}

/// What was declared immutable stays as it is.
fn kept(causes: &mut Causes, new: &Value, old: Option<&Value>, fields: &[&str]) {
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else { return };
    let why = "field is immutable when `immutable` is set";
    if new["immutable"] != json!(true) {
        causes.push(Cause::forbidden("immutable", why));
    }
    for field in fields.iter().filter(|field| new.get(**field) != old.get(**field)) {
        causes.push(Cause::forbidden(*field, why));
    }
}

fn config_map(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    kept(causes, new, old, &["data", "binaryData"]);
    for (name, _) in entries(new, "data") {
        key(causes, name, "data");
        if new.get("binaryData").is_some_and(|binary| binary.get(name).is_some()) {
            let why = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(format!("data[{name}]"), &json!(name), why));
        }
    }
    for (name, _) in entries(new, "binaryData") {
        key(causes, name, "binaryData");
    }
    let texts: usize = entries(new, "data").map(|(_, value)| value.as_str().map_or(0, str::len)).sum();
    if texts + decoded_size(new, "binaryData") > DATA {
        causes.push(Cause::too_long("[]", DATA));
    }
}

/// How long the values of a map are that are written in base64.
fn decoded_size(object: &Value, field: &str) -> usize {
    let size = |text: &str| text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count();
    entries(object, field)
        .map(|(_, value)| value.as_str().filter(|text| text.len() >= 4).map_or(0, size))
        .sum()
}

fn secret(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        check::immutable(causes, new, old, "", "type");
    }
    kept(causes, new, old, &["data"]);
    for (name, _) in entries(new, "data") {
        key(causes, name, "data");
    }
    if decoded_size(new, "data") > DATA {
        causes.push(Cause::too_long("data", DATA));
    }
    let has = |key: &str| new.get("data").and_then(|data| data.get(key)).is_some();
    let mut need = |key: &str| {
        if !has(key) {
            causes.push(Cause::required(format!("data[{key}]"), ""));
        }
    };
    match text(new, "/type") {
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().for_each(need),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            ["username", "password"].into_iter().for_each(need);
        }
        "kubernetes.io/ssh-auth" => need("ssh-privatekey"),
        "kubernetes.io/dockerconfigjson" => docker(causes, new, ".dockerconfigjson"),
        "kubernetes.io/dockercfg" => docker(causes, new, ".dockercfg"),
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            let annotations = new.pointer("/metadata/annotations");
            if annotations.is_none_or(|all| all.get(name).is_none()) {
                causes.push(Cause::required(format!("metadata.annotations[{name}]"), ""));
            }
        }
        _ => {}
    }
}

fn docker(causes: &mut Causes, secret: &Value, name: &str) {
    let field = format!("data[{name}]");
    let Some(content) = secret.get("data").and_then(|data| data.get(name)).and_then(Value::as_str) else {
        causes.push(Cause::required(field, ""));
        return;
    };
    let decoded = STANDARD.decode(content).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&decoded) {
        causes.push(Cause::invalid(field, &json!("<secret contents redacted>"), error));
    }
}

fn rules(causes: &mut Causes, role: &Value, namespaced: bool) {
    let all = list(role, "rules");
    for (index, rule) in all.iter().enumerate() {
        let place = format!("rules[{index}]");
        let urls = list(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let field = at(&place, "nonResourceURLs");
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(field, &rule["nonResourceURLs"], why));
            } else if ["apiGroups", "resources", "resourceNames"]
                .iter()
                .any(|name| !list(rule, name).is_empty())
            {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(field, &rule["nonResourceURLs"], why));
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            let why = "resource rules must supply at least one api group";
            causes.push(Cause::required(at(&place, "apiGroups"), why));
        }
        if list(rule, "resources").is_empty() {
            let why = "resource rules must supply at least one resource";
            causes.push(Cause::required(at(&place, "resources"), why));
        }
    }
    for (index, _) in all.iter().enumerate().filter(|(_, rule)| list(rule, "verbs").is_empty()) {
        causes.push(Cause::required(format!("rules[{index}].verbs"), ""));
    }
}

fn binding(causes: &mut Causes, new: &Value, old: Option<&Value>, kinds: &[&str]) {
    let reference = &new["roleRef"];
    if text(reference, "/apiGroup") != RBAC {
        causes.push(Cause::not_supported("roleRef.apiGroup", text(reference, "/apiGroup"), &[RBAC]));
    }
    if !kinds.contains(&text(reference, "/kind")) {
        causes.push(Cause::not_supported("roleRef.kind", text(reference, "/kind"), kinds));
    }
    check::required(causes, reference, "roleRef", "name");
    for (index, subject) in list(new, "subjects").iter().enumerate() {
        self::subject(causes, subject, &format!("subjects[{index}]"), kinds.len() > 1);
    }
    if old.is_some_and(|old| old["roleRef"] != *reference) {
        let (group, kind, name) = (&reference["apiGroup"], &reference["kind"], &reference["name"]);
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}: field is immutable"
            ),
            field: "roleRef".into(),
        });
    }
}

fn subject(causes: &mut Causes, subject: &Value, place: &str, namespaced: bool) {
    let (kind, name, group) = (text(subject, "/kind"), text(subject, "/name"), text(subject, "/apiGroup"));
    let allowed: &[&str] = match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                check::name(causes, name, at(place, "name"), NameRule::Subdomain);
            }
            if !namespaced && text(subject, "/namespace").is_empty() {
                causes.push(Cause::required(at(place, "namespace"), ""));
            }
            &[""]
        }
        "User" | "Group" => &[RBAC],
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(at(place, "kind"), other, &kinds));
            return;
        }
    };
    if !allowed.contains(&group) {
        causes.push(Cause::not_supported(at(place, "apiGroup"), group, allowed));
    }
    if name.is_empty() {
        causes.push(Cause::required(at(place, "name"), ""));
    }
}
