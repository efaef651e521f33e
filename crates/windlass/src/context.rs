//! What a reconciler works with: cached reads, and writes that enter the cache at once.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Client,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};

use crate::{
    apply::{self, Applied, Attempt, Children, FieldManager, OnFailure, Owner, Recall},
    cache::{Fresh, Origin, Reader, Stores},
    clock::Clock,
    controller::{Owned, Watches},
    error::{Error, Result},
    events::Recorder,
    object::{AnyObject, Kind, Object, ObjectKey, uid},
    owner, request,
};

mod dynamic;
mod finalize;
pub(crate) mod rehearsal;
mod status;
mod write;

pub use dynamic::Dynamic;
pub use finalize::Finalization;
pub(crate) use write::encode;

/// The part of a context that all runs of a controller share.
pub(crate) struct Shared {
    pub(crate) controller: Arc<str>,
    pub(crate) field_manager: Arc<FieldManager>,
    /// The names of all controllers of the operator.
    pub(crate) controllers: Arc<[String]>,
    pub(crate) recall: Recall,
    pub(crate) status_recall: Recall,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reader: Reader,
    pub(crate) recorder: Recorder,
    /// The field manager of plain writes, where it is not the operator's.
    pub(crate) manager: Option<String>,
    pub(crate) owned: Owned,
    /// Log what would be written instead of writing it.
    pub(crate) dry_run: bool,
}

/// Who is told about an own write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Every controller, the writing run included.
    Everyone,
    /// Every run but the one that wrote.
    Others,
}

impl Shared {
    /// The field manager of what is not applied.
    pub(crate) fn manager(&self) -> &str {
        self.manager.as_deref().unwrap_or_else(|| self.field_manager.name())
    }

    /// Enters what a write returned into the cache.
    pub(crate) fn written<K: AnyObject>(
        &self,
        stores: &Stores<K>,
        object: impl Into<Fresh<K>>,
        run: &ObjectKey,
        trigger: Trigger,
    ) -> Arc<K> {
        stores.written(object, self.origin(run, trigger).as_ref())
    }

    /// Which run need not hear of what it has written.
    pub(crate) fn origin(&self, run: &ObjectKey, trigger: Trigger) -> Option<Origin> {
        let origin = || Origin { controller: self.controller.clone(), key: run.clone() };
        (trigger == Trigger::Others).then(origin)
    }

    /// Where the children of a kind are read: the stores that `owns` declared, or else all of the kind.
    pub(crate) fn family<K: AnyObject>(&self, kind: &Kind) -> Result<Stores<K>> {
        match self.owned.stores::<K>(kind) {
            Some(stores) => Ok(stores),
            None => self.reader.stores_of::<K>(kind),
        }
    }

    /// Deletes an object, and only the one with this uid.
    pub(crate) async fn delete<K: AnyObject>(&self, kind: &Kind, object: &K) -> Result<()> {
        let stores = self.reader.find_of::<K>(kind);
        let key = ObjectKey::of(object);
        if self.dry_run {
            rehearsal::deletion(kind, &key);
            return Ok(());
        }
        let gone = || {
            if let Some(stores) = &stores {
                stores.deleted(&key, uid(object));
            }
        };
        match request::delete::<K>(&self.client, kind, &key, &delete_params(object)).await {
            Ok(request::Deleted::Object(left)) => {
                if let Some(stores) = &stores {
                    stores.written(left, None);
                }
            }
            Ok(request::Deleted::Gone) => gone(),
            // Another object has the name now; the one that was meant is gone.
            Err(error) if error.is_conflict() => gone(),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn delete_params<K: AnyObject>(object: &K) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions { uid: object.meta().uid.clone(), resource_version: None }),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    }
}

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
