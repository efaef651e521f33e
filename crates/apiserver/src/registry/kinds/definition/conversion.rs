//! What is wrong with how a definition converts its versions.

use serde_json::{Value, json};

use super::text;
use crate::{
    error::Cause,
    registry::kinds::admission::{review_versions, validate_client},
};

const PATH: &str = "spec.conversion";
const CLIENT: &str = "spec.conversion.webhookClientConfig";
const VERSIONS: &str = "spec.conversion.conversionReviewVersions";

/// Fills in the port of the webhook's Service.
pub(super) fn defaults(definition: &mut Value) {
    if let Some(service) = definition.pointer_mut("/spec/conversion/webhook/clientConfig/service")
        && let Some(service) = service.as_object_mut()
    {
        service.entry("port").or_insert_with(|| json!(443));
    }
}

/// Checks `spec.conversion`. The paths are those of the unversioned type, as in the real server.
pub(super) fn validate(spec: &Value, causes: &mut Vec<Cause>) {
    let conversion = &spec["conversion"];
    let strategy = text(conversion, "/strategy");
    if !matches!(strategy, "None" | "Webhook") {
        causes.push(Cause::not_supported(format!("{PATH}.strategy"), strategy, &["None", "Webhook"]));
    }
    let webhook = &conversion["webhook"];
    let client = webhook.get("clientConfig").filter(|client| client.is_object());
    let versions = &webhook["conversionReviewVersions"];
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            causes.push(Cause::forbidden(CLIENT, why));
        }
        if versions.as_array().is_some_and(|list| !list.is_empty()) {
            causes.push(Cause::forbidden(VERSIONS, why));
        }
        return;
    }
    match client {
        None => causes.push(Cause::required(CLIENT, "required when strategy is set to Webhook")),
        Some(client) => validate_client(client, CLIENT, causes),
    }
    if versions.as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required(VERSIONS, ""));
    } else {
        review_versions(versions, VERSIONS, causes);
    }
}
