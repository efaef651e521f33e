//! Secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, entries},
    data::{self, decoded_size, kept, key},
    default, text,
};
use crate::{error::Cause, registry::strategy::Selectable};

/// Secret.
pub(super) static SECRET: Strategy = Strategy {
    selectable: &[Selectable::new("type", "/type")],
    defaults,
    validate: |new, old| {
        let mut causes = Vec::new();
        validate(&mut causes, new, old);
        causes
    },
    row: Some(row),
    after_write: |registry, secret| registry.fill_stored_token(secret),
    ..Strategy::PLAIN
};

/// What was written as text is stored as bytes.
fn defaults(secret: &mut Value) {
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

fn validate(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        check::immutable(causes, new, old, "", "type");
    }
    kept(causes, new, old, &["data"]);
    for (name, _) in entries(new, "data") {
        key(causes, name, "data");
    }
    if decoded_size(new, "data") > data::LONGEST {
        causes.push(Cause::too_long("data", data::LONGEST));
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = data::count(object, &["data"]);
    vec![cells::name(object), json!(text(object, "/type")), json!(entries), cells::age(object, now)]
}
