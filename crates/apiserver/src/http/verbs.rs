//! From a path and a method to a verb of the API, and from the verb to what answers it.

use std::sync::Arc;

use http::{Method, Response};

use super::{Body, Call, answer, aside, path::RequestInfo};
use crate::{
    error::{Error, Reason, Result},
    registry::Resource,
    store::Key,
};

impl Call<'_> {
    /// The API's word for what the request does.
    pub(super) fn verb(&self, place: &RequestInfo) -> &'static str {
        let named = place.name.is_some();
        match self.parts.method {
            _ if place.watch => "watch",
            // One object is got, never watched: whoever wants that selects it by name.
            Method::GET | Method::HEAD if !named && self.query.flag("watch") => "watch",
            Method::GET | Method::HEAD if named => "get",
            Method::GET | Method::HEAD => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "deletecollection",
            _ => "",
        }
    }

    pub(super) async fn resource(&self, place: &RequestInfo) -> Result<Response<Body>> {
        if self.registry.catalog().group(&place.group).is_none() {
            return Ok(answer::not_a_path());
        }
        let resource = self.registry.resource(&place.group, &place.version, &place.resource)?;
        if place.namespace.is_some() && !resource.namespaced {
            return Err(Error::no_such_path());
        }
        let verb = self.verb(place);
        if place.below {
            return Err(Error::no_such_path());
        }
        if place.watch && !matches!(self.parts.method, Method::GET | Method::HEAD) {
            return Err(not_allowed());
        }
        if let Some(subresource) = &place.subresource {
            let known = resource.subresources.iter().find(|known| &known.name == subresource);
            let known = known.ok_or_else(Error::no_such_path)?;
            if !known.verbs.iter().any(|allowed| allowed == verb) {
                return Err(not_allowed());
            }
        } else if verb.is_empty() || resource.allow(verb).is_err() {
            return Err(not_allowed());
        }
        if place.namespace.is_none() && resource.namespaced {
            if place.name.is_some() {
                return Err(Error::no_such_path());
            }
            if !matches!(verb, "list" | "watch") {
                return Err(not_allowed());
            }
        }
        let unnamed = place.name.is_none() && matches!(verb, "update" | "patch");
        if unnamed || (verb == "create" && place.name.is_some() && place.subresource.is_none()) {
            return Err(not_allowed());
        }
        if let Some(warning) = resource.deprecation() {
            self.warnings.add(warning);
        }
        self.perform(verb, place, &resource).await
    }

    /// How many bytes the request makes the server look at, about.
    fn weight(&self, verb: &str, place: &RequestInfo, resource: &Resource) -> usize {
        let store = self.registry.store();
        self.body.len()
            + match verb {
                "list" | "watch" | "deletecollection" => store.count(&resource.table) * aside::LISTED,
                "update" | "patch" | "delete" => {
                    let object = store.get(&resource.table, &Key::new(place.namespace(), place.name()));
                    object.map_or(0, |object| object.bytes.len())
                }
                // An object that is got goes out as the bytes that are there.
                _ => 0,
            }
    }

    async fn perform(
        &self,
        verb: &str,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        if self.weight(verb, place, resource) < aside::HEAVY {
            return self.answer_verb(verb, place, resource).await;
        }
        aside::heavy(self.guard.heavy(), Box::pin(self.answer_verb(verb, place, resource))).await
    }

    async fn answer_verb(
        &self,
        verb: &str,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        match verb {
            _ if connects(place) => self.connect(place, resource).await,
            "get" => self.get(place, resource).await,
            "list" => self.list(place, resource).await,
            "watch" => self.watch(place, resource).await,
            "create" => self.create(place, resource).await,
            "update" => self.update(place, resource).await,
            "patch" => self.patch(place, resource).await,
            "delete" => self.delete(place, resource).await,
            "deletecollection" => self.delete_collection(place, resource).await,
            _ => Err(not_allowed()),
        }
    }
}

/// Whether the request enters a container.
pub(super) fn connects(place: &RequestInfo) -> bool {
    matches!(place.subresource.as_deref(), Some("exec" | "attach"))
}

fn not_allowed() -> Error {
    let mut error = Error::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    );
    error.details = Some(Box::default());
    error
}
