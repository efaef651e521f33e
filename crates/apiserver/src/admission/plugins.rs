//! Admission that is built in: what the real server does to objects without being configured.
//!
//! Built-in mutations come before the webhooks that mutate, built-in checks before the policies and webhooks
//! that check, and quotas after everybody: [`Registry::charge_quotas`] is part of the commit itself.

mod certificates;
mod classes;
mod limits;
mod pod_security;
mod priority;
mod quota;
mod roles;
mod runtime_class;
mod service_account;

use serde_json::Value;

use super::{Attributes, Operation};
use crate::{
    auth::rbac::GROUP,
    error::{Error, Result},
    registry::Registry,
    store::{Key, TableName},
};

/// A kind that built-in admission has something to say about.
fn is(request: &Attributes<'_>, group: &str, plural: &str) -> bool {
    request.target.subresource.is_empty() && is_any(request, group, plural)
}

/// The same, of any of its subresources.
fn is_any(request: &Attributes<'_>, group: &str, plural: &str) -> bool {
    let resource = request.target.resource;
    &*resource.group == group && &*resource.plural == plural
}

/// Whether the request gives somebody something.
fn is_grant(request: &Attributes<'_>) -> bool {
    let known = ["clusterrolebindings", "clusterroles", "rolebindings", "roles"];
    let resource = request.target.resource;
    &*resource.group == GROUP && request.operation != Operation::Delete && known.contains(&&*resource.plural)
}

/// Somebody may not do this, said of the object by the name that it has or will have.
fn forbidden(request: &Attributes<'_>, object: &Value, why: impl std::fmt::Display) -> Error {
    let metadata = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let name = Some(request.name.as_str()).filter(|name| !name.is_empty());
    let name = name.or_else(|| metadata("name")).or_else(|| metadata("generateName")).unwrap_or("Unknown");
    Error::forbidden(request.target.resource.named(), name, why)
}

impl Registry {
    /// Whether built-in admission has a say in the request.
    pub(super) fn plugins_concern(&self, request: &Attributes<'_>) -> bool {
        let creates = request.operation == Operation::Create;
        let mutated = [("", "pods"), ("", "secrets"), ("networking.k8s.io", "ingresses")];
        let claims = is(request, "", "persistentvolumeclaims") && request.operation != Operation::Delete;
        is_grant(request)
            || certificates::concerns(request)
            || claims
            || priority::concerns(request)
            || (creates && mutated.iter().any(|(group, plural)| is(request, group, plural)))
            || (is_any(request, "", "pods") && request.target.subresource == "resize")
            || pod_security::concerns(self, request)
    }

    /// Changes an object as the real server does by itself.
    pub(super) fn mutate_by_plugins(&self, request: &Attributes<'_>, object: &mut Value) -> Result<()> {
        if request.operation != Operation::Create {
            return Ok(());
        }
        if is(request, "", "pods") {
            if self.runs_plugin("LimitRanger") {
                limits::set_defaults(self, request, object);
            }
            if self.runs_plugin("ServiceAccount") {
                service_account::admit(self, request, object)?;
            }
            if self.runs_plugin("Priority") {
                priority::resolve(self, request, object)?;
            }
            if self.runs_plugin("RuntimeClass") {
                runtime_class::apply(self, request, object)?;
            }
        } else if is(request, "", "secrets") {
            self.fill_token(request.target.namespace, &request.name, object);
        } else if is(request, "", "persistentvolumeclaims") && self.runs_plugin("DefaultStorageClass") {
            classes::of_storage(self, object);
        } else if is(request, "networking.k8s.io", "ingresses") && self.runs_plugin("DefaultIngressClass") {
            classes::of_ingress(self, object);
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
        let Some(object) = object else { return Ok(()) };
        if self.runs_plugin("LimitRanger") {
            limits::check(self, request, object, old)?;
        }
        if self.runs_plugin("PodSecurity") {
            pod_security::check(self, request, object, old)?;
        }
        if priority::concerns(request) {
            priority::check_class(self, request, object)?;
        }
        if is(request, "", "persistentvolumeclaims")
            && let Some(old) = old
        {
            classes::check_growth(self, request, object, old)?;
        }
        if request.operation == Operation::Create && is(request, "", "pods") {
            runtime_class::check(self, request, object)?;
        }
        certificates::check(self, request, object, old)?;
        if is_grant(request) {
            roles::check(self, request, object, old)?;
        }
        Ok(())
    }

    /// An object that a plug-in looks up.
    fn look_up(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let table = TableName { group: group.into(), plural: plural.into() };
        let found = self.store().get(&table, &Key::new(namespace, name))?;
        serde_json::from_slice(&found.bytes).ok()
    }

    /// All objects of a kind that a plug-in looks at, in the order of their names.
    fn look_through(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Value> {
        let table = TableName { group: group.into(), plural: plural.into() };
        if self.store().count(&table) == 0 {
            return Vec::new();
        }
        let objects = self.store().snapshot(&table, namespace).objects;
        objects.iter().filter_map(|object| serde_json::from_slice(&object.bytes).ok()).collect()
    }
}
