//! Which objects of which kind a controller watches.

use kube::core::{DynamicObject, PartialObjectMeta};

use crate::{
    object::{AnyObject, Kind, Object},
    predicate::Predicate,
};

/// Which objects of a kind a controller watches, and which updates of them count.
///
/// A watch of [`PartialObjectMeta<K>`](kube::core::PartialObjectMeta) transfers and caches the metadata alone,
/// which is all that a kind needs that is only owned, counted or referred to:
///
/// ```no_run
/// # use windlass::{Controller, ObjectKey, Reconciler, Watch, k8s_openapi::api::core::v1::Secret};
/// # use windlass::kube::core::PartialObjectMeta;
/// # fn example<C: Reconciler>(controller: Controller<C>) -> Controller<C> {
/// controller.watches::<PartialObjectMeta<Secret>, _>(|secret, _| vec![ObjectKey::of(secret)])
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Watch<K> {
    pub(crate) kind: Kind,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) filter: Option<Predicate<K>>,
    pub(crate) optional: bool,
}

impl<K: Object> Default for Watch<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> Watch<K> {
    /// All objects, all updates.
    pub fn new() -> Self {
        Self::of(Kind::of::<K>())
    }
}

impl Watch<DynamicObject> {
    /// All objects of a kind that is known only when the program runs.
    pub fn dynamic(kind: Kind) -> Self {
        Self::of(kind)
    }
}

impl Watch<PartialObjectMeta<DynamicObject>> {
    /// The metadata of all objects of a kind that is known only when the program runs.
    pub fn dynamic_metadata(kind: Kind) -> Self {
        Self::of(kind)
    }
}

/// All objects of a kind that is known only when the program runs.
impl From<Kind> for Watch<DynamicObject> {
    fn from(kind: Kind) -> Self {
        Self::dynamic(kind)
    }
}

impl<K: AnyObject> Watch<K> {
    pub(crate) fn of(kind: Kind) -> Self {
        Self { kind, labels: None, fields: None, filter: None, optional: false }
    }

    /// Only objects that match a label selector, such as `app=web,tier!=db`.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only objects that match a field selector, such as `spec.nodeName=n1`.
    ///
    /// By fields other than `metadata.name` and `metadata.namespace` only the server can tell what matches: what this
    /// program writes is then in the cache when the watch has delivered it, unless it is a child that the controller
    /// owns by this very watch.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Only updates that pass a filter. Several filters must all pass.
    pub fn filter(mut self, filter: Predicate<K>) -> Self {
        self.filter = Some(match self.filter {
            Some(first) => first.and(filter),
            None => filter,
        });
        self
    }

    /// The API server may not serve the kind, now or later: the operator starts and stays ready without it.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}
