//! Kinds about which there is hardly anything to say.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes},
    pod, required, text,
};
use crate::{
    error::Cause,
    registry::metadata::{NameRule, service_label_error},
};

/// Nothing at all.
pub(super) static PLAIN: Strategy = Strategy::PLAIN;

/// ServiceAccount.
pub(super) static SERVICE_ACCOUNT: Strategy = Strategy {
    // Of the Secrets of an account only the names count.
    prepare_create: |account, _| keep_names(account),
    prepare_update: |account, _| keep_names(account),
    returns_deleted: true,
    ..Strategy::PLAIN
};

/// ComponentStatus.
pub(super) static COMPONENT_STATUS: Strategy =
    Strategy { deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"), ..Strategy::PLAIN };

/// APIService.
pub(super) static API_SERVICE: Strategy = Strategy {
    unconditional_update: false,
    validate: required::api_service,
    row: Some(api_service),
    ..Strategy::PLAIN
};

/// RuntimeClass.
pub(super) static RUNTIME_CLASS: Strategy = Strategy {
    unconditional_update: false,
    validate: |new, old| {
        let mut causes = Vec::new();
        validate_runtime_class(&mut causes, new, old);
        causes
    },
    creates_on_update: true,
    row: Some(runtime_class),
    ..Strategy::PLAIN
};

/// StorageVersionMigration.
pub(super) static MIGRATION: Strategy = Strategy {
    unconditional_update: false,
    validate: |new, old| {
        let mut causes = Vec::new();
        migration(&mut causes, new, old);
        causes
    },
    ..Strategy::PLAIN
};

fn keep_names(account: &mut Value) {
    for secret in account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = secret.get("name").cloned();
        *secret =
            Value::Object(name.map(|name| ("name".to_owned(), name)).into_iter().collect::<Map<_, _>>());
    }
}

fn validate_runtime_class(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        check::fixed(causes, new, old, "", "handler");
    }
    match text(new, "/handler") {
        "" => causes.push(Cause::required("handler", "")),
        handler => check::name(causes, handler, "handler", NameRule::Label),
    }
    if let Some(overhead) = new.pointer("/overhead/podFixed") {
        pod::amounts::resources(causes, &json!({"limits": overhead}), "overhead");
    }
    if let Some(scheduling) = new.get("scheduling") {
        check::labels(causes, scheduling, "scheduling", "nodeSelector");
        pod::validate::tolerations(causes, scheduling, "scheduling");
    }
}

fn migration(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let resource = text(new, "/spec/resource/resource");
    if resource.is_empty() {
        causes.push(Cause::required("spec.resource.resource", "resource is required to be set"));
    } else if let Some(why) = service_label_error(resource) {
        causes.push(Cause::invalid("spec.resource.resource", &json!(resource), why));
    }
    let group = text(new, "/spec/resource/group");
    if !group.is_empty() {
        check::name(causes, group, "spec.resource.group", NameRule::Subdomain);
    }
    if let Some(old) = old {
        check::immutable(causes, new, old, "", "spec");
    }
}

fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = object.pointer("/spec/service").map_or("Local".to_owned(), |service| {
        format!("{}/{}", text(service, "/namespace"), text(service, "/name"))
    });
    let available =
        cells::list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Available");
    let shown = match available {
        Some(one) if text(one, "/status") == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", text(one, "/status"), text(one, "/reason")),
        None => "Unknown".to_owned(),
    };
    vec![cells::name(object), json!(service), json!(shown), cells::age(object, now)]
}

fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![cells::name(object), json!(text(object, "/handler")), cells::age(object, now)]
}
