//! The parameters that a binding gives its policy.

use serde_json::Value;

use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at},
        metadata::NameRule,
        resource::text,
    },
};

/// Checks by what a binding finds its parameters.
pub(super) fn validate(causes: &mut Causes, spec: &Value) {
    let Some(reference) = spec.get("paramRef") else { return };
    let path = "spec.paramRef";
    let (name, selector) = (text(reference, "/name"), reference.get("selector"));
    let both = "name and selector are mutually exclusive";
    if !name.is_empty() {
        check::name(causes, name, at(path, "name"), NameRule::PathSegment);
        if selector.is_some() {
            causes.push(Cause::forbidden(at(path, "name"), both));
        }
    }
    if let Some(selector) = selector {
        check::selector(causes, selector, &at(path, "selector"));
        if !name.is_empty() {
            causes.push(Cause::forbidden(at(path, "selector"), both));
        }
    }
    if name.is_empty() && selector.is_none() {
        causes.push(Cause::required(path, "one of name or selector must be specified"));
    }
    check::required_one_of(causes, reference, path, "parameterNotFoundAction", &["Deny", "Allow"]);
}
