//! What all built-in kinds have in common: objects that are decoded into a type of Kubernetes.

use serde_json::Value;

use super::{Form, copy_top, keep_all_but_status};
use crate::{
    environment::Environment,
    error::Cause,
    registry::{decode, resource::Resource},
};

/// The form of the built-in kinds.
pub(super) const FORM: Form = Form { decode, decode_patched: decode, fill, prepare_update, validate };

fn decode(resource: &Resource, object: &mut Value) -> Result<(), String> {
    if let Some(why) = resource.schema().decode_error(object) {
        return Err(why);
    }
    decode::drop_nulls(object);
    Ok(())
}

fn fill(resource: &Resource, object: &mut Value) {
    resource.schema().normalize(object);
    (resource.strategy.defaults)(object);
}

fn prepare_update(
    resource: &Resource,
    subresource: &str,
    new: &mut Value,
    old: &Value,
    environment: &Environment,
) {
    let strategy = resource.strategy;
    if let Some(prepare) = strategy.part(subresource).and_then(|part| part.prepare) {
        prepare(new, old, environment);
        return;
    }
    if subresource == "status" {
        keep_all_but_status(resource, new, old);
        (strategy.prepare_status)(new, old, environment);
        fill(resource, new);
        return;
    }
    if resource.has("status") {
        copy_top(old, new, "status");
    }
    (strategy.prepare_update)(new, old);
    fill(resource, new);
    (strategy.complete_update)(new, old);
}

fn validate(resource: &Resource, subresource: &str, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let strategy = resource.strategy;
    if subresource == "status" {
        return (strategy.validate_status)(new);
    }
    let own = strategy.part(subresource).and_then(|part| part.validate);
    own.unwrap_or(strategy.validate)(new, old)
}
