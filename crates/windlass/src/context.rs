//! What a reconciler works with: cached reads, and writes that enter the cache at once.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;

use crate::{
    apply::{self, Applied, Attempt, Children, OnFailure, Owner, Shared},
    cache::Reader,
    error::{Error, Result},
    object::{AnyObject, Kind, Object, ObjectKey, uid},
    owner,
    watches::Watches,
};

mod dynamic;
mod finalize;
mod status;
mod write;

pub use dynamic::Dynamic;
pub use finalize::Finalization;

/// One run of a reconciler: the object's key, the cache, and the way to write.
///
/// Reads come from the cache and never make a request. Writes return the object as the API server has it, which
/// is in the cache by then: the next run cannot miss it.
pub struct Context<R> {
    shared: Arc<Shared>,
    watches: Watches<R>,
    key: ObjectKey,
    object: Option<Arc<R>>,
    written: status::Written,
}

impl<R> fmt::Debug for Context<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.shared.controller)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<R: AnyObject> Context<R> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        watches: Watches<R>,
        key: ObjectKey,
        object: Option<Arc<R>>,
    ) -> Self {
        Self { shared, watches, key, object, written: status::Written::default() }
    }

    /// The key of this run.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.shared.controller
    }

    /// The client, for requests that the context does not offer. What they write enters the cache through the
    /// watch only.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The field manager under which this controller writes what it does not apply: the operator's, unless
    /// [`Controller::writes_as`](crate::Controller::writes_as) says another.
    pub fn field_manager(&self) -> &str {
        self.shared.manager()
    }

    /// The operator's clock. Use it for every timestamp, so that tests can set the time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// How long ago `then` was by the operator's clock; zero if it is in the future.
    pub fn since(&self, then: Timestamp) -> Duration {
        Duration::try_from(self.now().duration_since(then)).unwrap_or_default()
    }

    /// The cached objects of every kind that this controller watches.
    pub fn cache(&self) -> &Reader {
        &self.shared.reader
    }

    /// The cached object of that name, or `None`. The kind must be watched by this controller.
    pub fn get<K: Object>(&self, namespace: Option<&str>, name: &str) -> Result<Option<Arc<K>>> {
        self.shared.reader.get(namespace, name)
    }

    /// The cached objects of a namespace, or of all with `None`, ordered by key.
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Result<Vec<Arc<K>>> {
        self.shared.reader.list(namespace)
    }

    /// The cached objects of a namespace, or of all with `None`, whose labels match a selector, ordered by key.
    ///
    /// The selector is written as for `kubectl get -l`: `app=web,tier notin (db, cache),!canary`.
    pub fn list_where<K: Object>(&self, namespace: Option<&str>, labels: &str) -> Result<Vec<Arc<K>>> {
        self.shared.reader.list_where(namespace, labels)
    }

    /// The cached objects with this value in an index, ordered by key.
    pub fn indexed<K: Object>(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>> {
        self.shared.reader.indexed(index, value)
    }

    /// As [`indexed`](Self::indexed), of one namespace.
    pub fn indexed_in<K: Object>(&self, namespace: &str, index: &str, value: &str) -> Result<Vec<Arc<K>>> {
        self.shared.reader.indexed_in(namespace, index, value)
    }

    /// Whether the API server serves the kind, as far as is known. Every object is reconciled again when a kind
    /// that the controller watches appears or vanishes.
    pub fn is_served<K: Object>(&self) -> Result<bool> {
        self.shared.reader.is_served::<K>()
    }

    /// Reads and writes of a kind that is known only when the program runs.
    pub fn dynamic<'a>(&'a self, kind: &'a Kind) -> Dynamic<'a, R> {
        Dynamic::new(self, kind)
    }

    /// The watches that are added and removed while the controller runs.
    pub fn watches(&self) -> &Watches<R> {
        &self.watches
    }

    /// Whether this run only logs what it would write.
    pub fn is_dry_run(&self) -> bool {
        self.shared.dry_run
    }

    /// The cached objects of a kind that the reconciled object controls, ordered by key.
    pub fn owned<K: Object>(&self) -> Result<Vec<Arc<K>>> {
        let owner = self.object("read owned objects")?;
        Ok(self.shared.family::<K>(&Kind::of::<K>())?.owned_by(uid(&**owner)))
    }

    /// Makes the children real, and deletes those of the owned kinds that are no longer among them.
    ///
    /// Each child gets the owner reference and is sent by server-side apply under one field manager; **nothing
    /// is sent** for a child that already is what is wanted. An object of the same name that this owner does
    /// not control is an [`Error::NameConflict`] and is not touched.
    pub async fn apply(&self, children: Children) -> Result<Applied> {
        self.try_to_apply(children, OnFailure::Stop).await?.into_result()
    }

    /// As [`apply`](Self::apply), but goes on with the other children when one fails, and says what is in place.
    ///
    /// Nothing is deleted unless all of them succeed. The error is for children that cannot be tried at all.
    pub async fn try_apply(&self, children: Children) -> Result<Attempt> {
        self.try_to_apply(children, OnFailure::GoOn).await
    }

    async fn try_to_apply(&self, children: Children, on_failure: OnFailure) -> Result<Attempt> {
        let owner = self.owner("apply")?;
        if children.has_detached() {
            self.guard_detached().await?;
        }
        apply::apply(&self.shared, &owner, children, on_failure).await
    }

    /// The reference that makes the reconciled object the controller of a child.
    pub fn controller_reference(&self) -> Result<OwnerReference> {
        Ok(self.owner("make an owner reference")?.reference)
    }

    /// Whether the reconciled object is being deleted, as far as this run knows.
    pub(crate) fn is_of_deleting_object(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.meta().deletion_timestamp.is_some())
    }

    fn owner(&self, operation: &'static str) -> Result<Owner> {
        let object = self.object(operation)?;
        let kind = self.watches.kind().clone();
        let reference = owner::controller_reference_of(&kind, object.meta())
            .ok_or_else(|| Error::NoObject { operation, key: self.key.clone() })?;
        Ok(Owner { kind, key: self.key.clone(), reference })
    }

    /// The reconciled object as it is now, own writes of this run included.
    fn newest(&self, operation: &'static str) -> Result<Arc<R>> {
        let object = self.object(operation)?;
        let cached = self.shared.reader.stores_of::<R>(self.watches.kind())?.get(&self.key);
        Ok(cached.filter(|cached| uid(&**cached) == uid(&**object)).unwrap_or_else(|| object.clone()))
    }

    fn object(&self, operation: &'static str) -> Result<&Arc<R>> {
        self.object.as_ref().ok_or_else(|| Error::NoObject { operation, key: self.key.clone() })
    }
}
