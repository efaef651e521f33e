//! What custom kinds have in common: objects that are read by the schema of their definition.

use serde_json::{Value, json};

use super::{Form, Generation, Strategy, changed, copy_top, keep_all_but_status};
use crate::{
    environment::Environment,
    error::Cause,
    registry::{
        metadata::{self, meta},
        resource::Resource,
    },
};

/// The strategy of every custom kind.
pub(in crate::registry) static CUSTOM: Strategy = Strategy {
    unconditional_update: false,
    form: &Form {
        decode: |_, object| {
            if !resets_ownership(object) {
                metadata::tidy(object);
            }
            Ok(())
        },
        decode_patched: |_, object| {
            metadata::tidy(object);
            Ok(())
        },
        fill,
        prepare_update,
        validate,
    },
    // Without a subresource for it, the status is a part of what is wanted.
    generation: Generation::Changes(|resource, _, new, old| changed(new, old, resource.has("status"))),
    status_metadata: &[],
    after_removal: |registry, resource, _| {
        if resource.custom().is_some_and(|served| served.terminating) {
            registry.settle_definitions();
        }
    },
    ..Strategy::PLAIN
};

/// An explicit empty list of managers is a wish: forget who owns what.
fn resets_ownership(object: &Value) -> bool {
    meta(object, "managedFields").as_array().is_some_and(|list| list.iter().all(|one| one == &json!({})))
}

fn fill(resource: &Resource, object: &mut Value) {
    resource.schema().fill_defaults(object);
}

fn prepare_update(resource: &Resource, subresource: &str, new: &mut Value, old: &Value, _: &Environment) {
    // The real server does it before anybody asks which part of the object is meant.
    fill(resource, new);
    if subresource == "status" {
        keep_all_but_status(resource, new, old);
    } else if resource.has("status") {
        copy_top(old, new, "status");
    }
}

fn validate(resource: &Resource, subresource: &str, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let found = resource.schema().validate(new, old).into_iter().map(Cause::from);
    found.map(|cause| if subresource == "status" { within_status(cause) } else { cause }).collect()
}

/// The real server checks a written status by itself, and its messages begin inside of it.
fn within_status(mut cause: Cause) -> Cause {
    if let Some(inside) = cause.field.strip_prefix("status.") {
        cause.message =
            cause.message.replace(&format!("{} in body", cause.field), &format!("{inside} in body"));
    }
    cause
}
