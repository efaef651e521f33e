//! Admission that is built in: what the real server does to objects without being configured.
//!
//! Built-in mutations come before the webhooks that mutate, built-in checks after the webhooks that check.

mod roles;
mod service_account;

use serde_json::Value;

use super::{Attributes, Operation};
use crate::{auth::rbac::GROUP, error::Result, registry::Registry};

/// A kind that built-in admission has something to say about.
fn is(request: &Attributes<'_>, group: &str, plural: &str) -> bool {
    let resource = request.target.resource;
    request.target.subresource.is_empty() && &*resource.group == group && &*resource.plural == plural
}

/// Whether built-in admission has a say in the request.
pub(super) fn concern(request: &Attributes<'_>) -> bool {
    is_grant(request)
        || (request.operation == Operation::Create && (is(request, "", "pods") || is(request, "", "secrets")))
}

/// Whether the request gives somebody something.
fn is_grant(request: &Attributes<'_>) -> bool {
    let known = ["clusterrolebindings", "clusterroles", "rolebindings", "roles"];
    let resource = request.target.resource;
    &*resource.group == GROUP && request.operation != Operation::Delete && known.contains(&&*resource.plural)
}

impl Registry {
    /// Changes an object as the real server does by itself.
    pub(super) fn mutate_by_plugins(&self, request: &Attributes<'_>, object: &mut Value) -> Result<()> {
        if request.operation == Operation::Create && is(request, "", "pods") {
            service_account::admit(self, request, object)?;
        }
        if request.operation == Operation::Create && is(request, "", "secrets") {
            service_account::fill(self, request, object);
        }
        Ok(())
    }

    /// Refuses what the real server refuses by itself.
    pub(super) fn validate_by_plugins(
        &self,
        request: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        match object {
            Some(object) if is_grant(request) => roles::check(self, request, object, old),
            _ => Ok(()),
        }
    }
}
