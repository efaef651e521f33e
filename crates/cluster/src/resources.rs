//! Which kinds the API server has: discovery, as the controllers need it that work on all of them.

use std::{collections::BTreeMap, fmt};

use windlass::{
    Object,
    kube::{
        Api, Client, Discovery, Error,
        core::{DynamicObject, PartialObjectMeta},
        discovery::{ApiResource, Scope},
    },
};

/// An object of which nothing but the metadata is read.
pub(crate) type Meta = PartialObjectMeta<DynamicObject>;

/// Requests whose answers nobody reads: for these, no code of its own is compiled for the kind.
pub(crate) fn untyped<K: Object>(client: &Client, namespace: &str) -> Api<Meta> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<K>(&()))
}

/// A kind that objects can be listed and deleted of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    pub(crate) api: ApiResource,
    pub(crate) namespaced: bool,
    pub(crate) watchable: bool,
    /// Whether all objects of a namespace can be deleted with one request.
    pub(crate) collective: bool,
}

impl Resource {
    /// Whether an `apiVersion` and `kind` mean this kind, in whichever version.
    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        self.api.group == group && self.api.kind == kind
    }

    /// Events come and go by themselves, in great numbers, and own nothing.
    pub(crate) fn is_event(&self) -> bool {
        self.api.plural == "events" && matches!(self.api.group.as_str(), "" | "events.k8s.io")
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.api.plural)?;
        if !self.api.group.is_empty() {
            write!(f, ".{}", self.api.group)?;
        }
        Ok(())
    }
}

/// All kinds whose objects can be listed and deleted, ordered by group and name.
///
/// A group's preferred version says nothing of its kinds: one may be served in another version only. So each kind is
/// there once, in the first version that serves it: the preferred one, then the others, the most stable first.
pub(crate) async fn discover(client: &Client) -> Result<Vec<Resource>, Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut found: BTreeMap<(String, String), Resource> = BTreeMap::new();
    for group in discovery.groups() {
        for version in group.preferred_version().into_iter().chain(group.versions()) {
            for (api, capabilities) in group.versioned_resources(version) {
                if capabilities.supports_operation("list") && capabilities.supports_operation("delete") {
                    let resource = Resource {
                        namespaced: capabilities.scope == Scope::Namespaced,
                        watchable: capabilities.supports_operation("watch"),
                        collective: capabilities.supports_operation("deletecollection"),
                        api,
                    };
                    let name = (resource.api.group.clone(), resource.api.plural.clone());
                    found.entry(name).or_insert(resource);
                }
            }
        }
    }
    Ok(found.into_values().collect())
}
