//! Kinds and keys: what the SDK needs to know of a Kubernetes type, and how it names one object.

use std::{any::TypeId, fmt, fmt::Debug, sync::Arc};

use k8s_openapi::{
    ClusterResourceScope, api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Client, Resource,
    core::{ApiResource, GroupVersionKind},
};
use serde::{Serialize, de::DeserializeOwned};

/// Anything that can be cached and written: typed kinds, [`DynamicObject`](kube::core::DynamicObject)s, and the
/// metadata alone ([`PartialObjectMeta`](kube::core::PartialObjectMeta)) of either.
///
/// Implemented for every type that fits; there is nothing to write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "a kind of your own derives `CustomResource`, `Clone`, `Debug`, `Serialize`, `Deserialize` and `JsonSchema`",
    note = "the kind is then named after `#[kube(kind = \"..\")]`, not after its spec"
)]
pub trait AnyObject: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static {}

impl<T> AnyObject for T where
    T: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
}

/// A typed Kubernetes kind: everything from `k8s_openapi` and everything that derives `CustomResource`.
///
/// Implemented for every type that fits; there is nothing to write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a typed Kubernetes kind",
    note = "a kind of your own derives `CustomResource`, `Clone`, `Debug`, `Serialize`, `Deserialize` and `JsonSchema`",
    note = "the kind is then named after `#[kube(kind = \"..\")]`, not after its spec"
)]
pub trait Object: AnyObject + Resource<DynamicType = (), Scope: 'static> {}

impl<T> Object for T where T: AnyObject + Resource<DynamicType = (), Scope: 'static> {}

/// The names of a kind, as RBAC rules, URLs and messages need them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version, without the group.
    pub version: String,
    /// The kind, as in `kind: Deployment`.
    pub kind: String,
    /// The plural resource name, as in URLs and RBAC rules.
    pub plural: String,
    /// Whether objects of this kind live in a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// The names of `K`.
    pub fn of<K: Object>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: is_namespaced::<K>(),
        }
    }

    /// The names of a kind that is known only when the program runs.
    ///
    /// ```
    /// use windlass::{Kind, kube::core::{ApiResource, GroupVersionKind}};
    ///
    /// let route = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute");
    /// let kind = Kind::dynamic(&ApiResource::from_gvk(&route), true);
    /// assert_eq!(kind.plural, "httproutes");
    /// ```
    pub fn dynamic(resource: &ApiResource, namespaced: bool) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespaced,
        }
    }

    /// Asks the API server for the names of a kind; `None` if it does not serve it.
    pub async fn discover(client: &Client, kind: &GroupVersionKind) -> Result<Option<Self>, kube::Error> {
        match kube::discovery::pinned_kind(client, kind).await {
            Ok((resource, capabilities)) => {
                let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
                Ok(Some(Self::dynamic(&resource, namespaced)))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(kube::Error::Discovery(kube::error::DiscoveryError::MissingKind(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names as kube's dynamic API takes them.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// The path of the collection, of one namespace or of all.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let base = format!("/{root}/{}", self.api_version());
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{}", self.plural),
            None => format!("{base}/{}", self.plural),
        }
    }

    /// A reference to an object of this kind, as events need it.
    pub(crate) fn reference(&self, meta: &ObjectMeta) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version()),
            kind: Some(self.kind.clone()),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            ..ObjectReference::default()
        }
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

fn is_namespaced<K: Object>() -> bool {
    TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
}

/// The name of one object of a known kind: what the queue holds and a reconciler is called for.
///
/// Ordered by namespace, then name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl ObjectKey {
    /// A key with an optional namespace.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self { namespace: namespace.filter(|ns| !ns.is_empty()).map(Arc::from), name: Arc::from(name) }
    }

    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self::new(Some(namespace), name)
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self::new(None, name)
    }

    /// The key of `object`.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::of_meta(object.meta())
    }

    pub(crate) fn of_meta(meta: &ObjectMeta) -> Self {
        Self::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(crate) fn shared_namespace(&self) -> Option<Arc<str>> {
        self.namespace.clone()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The resource version as a number, which Kubernetes 1.35 and later guarantee to be ordered.
pub(crate) fn version<K: Resource>(object: &K) -> u64 {
    version_of(object.meta())
}

pub(crate) fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// The uid, or an empty string for an object that the server has not seen.
pub(crate) fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};

    use super::*;

    #[test]
    fn a_kind_knows_its_scope() {
        assert!(Kind::of::<Deployment>().namespaced);
        assert!(!Kind::of::<Node>().namespaced);
        assert_eq!(Kind::of::<Deployment>().api_version(), "apps/v1");
        assert_eq!(Kind::of::<Node>().api_version(), "v1");
    }

    #[test]
    fn keys_order_by_namespace_then_name() {
        let mut keys = [
            ObjectKey::namespaced("b", "a"),
            ObjectKey::namespaced("a", "z"),
            ObjectKey::namespaced("a", "b"),
            ObjectKey::cluster("q"),
        ];
        keys.sort();
        assert_eq!(keys.map(|k| k.to_string()), ["q", "a/b", "a/z", "b/a"]);
    }
}
