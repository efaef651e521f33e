//! Whether the user may do what the request asks for. Asked before a body is read.

use super::{
    Call,
    path::{RequestInfo, Route},
};
use crate::{
    auth::rbac::Action,
    error::{Error, Named, Result},
};

impl Call<'_> {
    /// Refuses what the user may not do.
    pub(super) fn authorize(&self, route: &Route) -> Result<()> {
        match route {
            Route::Resource(place) => self.authorize_resource(place),
            _ => self.authorize_path(),
        }
    }

    fn authorize_resource(&self, place: &RequestInfo) -> Result<()> {
        self.authorize_verb(place, self.verb(place))
    }

    pub(super) fn authorize_verb(&self, place: &RequestInfo, verb: &str) -> Result<()> {
        let resource = match &place.subresource {
            Some(subresource) => format!("{}/{subresource}", place.resource),
            None => place.resource.clone(),
        };
        // A list or a watch of one name asks about that name.
        let name = match verb {
            "list" | "watch" if place.name.is_none() => self.query.selected_name(),
            _ => place.name(),
        };
        // A namespace is within itself: a Role there may speak of it.
        let namespace = match place.name() {
            name if place.group.is_empty() && place.resource == "namespaces" => name,
            _ => place.namespace(),
        };
        let action = Action::Resource { verb, group: &place.group, resource: &resource, namespace, name };
        if self.decide(action) {
            return Ok(());
        }
        let why = action.refusal(&self.identity.name);
        Err(Error::forbidden(Named { group: &place.group, resource: &place.resource }, name, why))
    }

    /// Whether the user may do it; the audit log is told why.
    fn decide(&self, action: Action<'_>) -> bool {
        let allowed = self.registry.allows(&self.identity, action);
        let (audit, word) = (self.warnings.audit(), if allowed { "allow" } else { "forbid" });
        audit.annotate("authorization.k8s.io/decision", || word.to_owned());
        audit.annotate("authorization.k8s.io/reason", || {
            if allowed { self.registry.reason(&self.identity, action) } else { String::new() }
        });
        allowed
    }

    fn authorize_path(&self) -> Result<()> {
        let (verb, path) = (self.parts.method.as_str().to_lowercase(), self.parts.uri.path());
        let action = Action::Path { verb: &verb, path };
        if self.decide(action) {
            return Ok(());
        }
        let why = action.refusal(&self.identity.name);
        Err(Error::forbidden(Named { group: "", resource: "" }, "", why))
    }
}
