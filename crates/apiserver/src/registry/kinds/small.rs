//! Kinds about which there is hardly anything to say.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Strategy, cells, required, text};

/// Nothing at all.
pub(super) static PLAIN: Strategy = Strategy::PLAIN;

/// A deletion is answered with the object.
pub(super) static RETURNS_DELETED: Strategy = Strategy { returns_deleted: true, ..Strategy::PLAIN };

/// ComponentStatus.
pub(super) static COMPONENT_STATUS: Strategy =
    Strategy { deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"), ..Strategy::PLAIN };

/// APIService.
pub(super) static API_SERVICE: Strategy =
    Strategy { validate: required::api_service, row: Some(api_service), ..Strategy::PLAIN };

/// RuntimeClass.
pub(super) static RUNTIME_CLASS: Strategy = Strategy {
    creates_on_update: true,
    validate: required::runtime_class,
    row: Some(runtime_class),
    ..Strategy::PLAIN
};

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
