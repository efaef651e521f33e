//! The shared cache: one watch per kind and scope for all controllers of an operator.
//!
//! [`Caches`] hands out one [`Store`] per kind and [`Scope`]; its watch task feeds it, own writes are entered by
//! [`Store::written`], and every change reaches the subscribers, which put keys into queues. Stores come and go
//! while the operator runs: a store lives as long as somebody uses it.

use std::{
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

use crate::{
    object::{AnyObject, Kind, ObjectKey},
    wire::{FieldManager, Fresh, Ownership},
};

mod arrived;
mod health;
mod interned;
mod kept;
mod links;
mod listing;
mod reader;
mod registry;
mod scope;
mod sink;
mod splitter;
mod store;
mod stores;
#[cfg(test)]
mod tests;
mod watching;

pub(crate) use health::{Failure, Health};
pub(crate) use kept::Held;
use kept::Kept;
pub(crate) use links::Index;
pub use reader::Reader;
pub(crate) use reader::{indexed, matching};
pub(crate) use registry::{Caches, Link, Transforms, WatchEntry, Watched, WeakCaches};
pub(crate) use scope::{Scope, Sight};
pub use store::Change;
pub(crate) use store::Transform;
use store::{AnyChange, Objects, Written};
pub(crate) use stores::Stores;

/// How long a first list that fails is waited for by whoever adds a watch to a running controller.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Children of one owner and kind that are read from their texts every time; more are kept typed.
const FAMILY: usize = 16;

/// Who made an own write: that run already knows about it and need not be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) controller: Arc<str>,
    pub(crate) key: ObjectKey,
}

type Subscriber<K> = Box<dyn Fn(&Change<K>, Option<&Origin>) + Send + Sync>;
type OnServed = Box<dyn Fn(bool) + Send + Sync>;

/// What a subscription hears.
struct Subscribers<K> {
    changes: Vec<(u64, Subscriber<K>)>,
    served: Vec<(u64, OnServed)>,
}

/// The objects of one kind and scope, and who wants to hear of them.
pub(crate) struct Store<K> {
    kind: Kind,
    objects: RwLock<Objects>,
    transform: Option<Transform<K>>,
    subscribers: RwLock<Subscribers<K>>,
    subscriptions: AtomicU64,
    health: watch::Sender<Health>,
    scope: Scope,
}

impl<K: AnyObject> Store<K> {
    /// `live`: the operator runs already, so that whatever the first list finds is news. `as_text`: the objects
    /// are seldom looked at.
    fn new(
        kind: Kind,
        field_manager: Arc<FieldManager>,
        scope: Scope,
        live: bool,
        transform: Option<Transform<K>>,
        as_text: bool,
    ) -> Self {
        Self {
            kind,
            health: watch::Sender::new(Health::new(scope.parts().len(), live)),
            objects: RwLock::new(Objects::new(field_manager, &scope, transform.clone(), as_text)),
            transform,
            subscribers: RwLock::new(Subscribers { changes: Vec::new(), served: Vec::new() }),
            subscriptions: AtomicU64::new(0),
            scope,
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whether the watch delivers an object with this metadata.
    pub(crate) fn sight(&self, meta: &ObjectMeta) -> Sight {
        self.read().sight(meta)
    }

    /// Whether an object that is not here may exist all the same, because a selector or the choice of
    /// namespaces keeps it out.
    pub(crate) fn may_miss(&self, key: &ObjectKey) -> bool {
        let elsewhere = !self.scope.namespaces.is_empty()
            && key.namespace().is_none_or(|of| !self.scope.namespaces.iter().any(|ns| ns == of));
        self.scope.selects() || elsewhere
    }

    /// Whether the API server serves the kind, as far as is known.
    pub(crate) fn is_served(&self) -> bool {
        !self.health.borrow().is_absent()
    }

    /// Waits until the first list is here, or the kind is known to be absent.
    ///
    /// A server that says no is not asked for longer; of any other failure a few retries are waited for. A list that
    /// is not answered is a failure too, so this ends.
    pub(crate) async fn settled(&self) -> Result<(), Failure> {
        let settled = |health: &Health| health.is_synced() || health.is_absent();
        let mut health = self.health.subscribe();
        // The sender lives in this store.
        let _ = health.wait_for(|health| settled(health) || health.failure().is_some()).await;
        let hopeful = |health: &Health| !settled(health) && !health.is_refused();
        let _ = tokio::time::timeout(FIRST_LIST_TIMEOUT, health.wait_for(|health| !hopeful(health))).await;
        let health = health.borrow();
        match health.failure() {
            Some(failure) if !settled(&health) => Err(failure.clone()),
            _ if settled(&health) => Ok(()),
            _ => Err(Failure { text: format!("no list within {FIRST_LIST_TIMEOUT:?}"), refused: false }),
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let kept = self.read().get(key)?.kept.clone();
        Some(self.open(&kept))
    }

    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.read().get(key).is_some()
    }

    /// The object, and what of it is ours.
    pub(crate) fn get_with_ownership(&self, key: &ObjectKey) -> Option<(Arc<K>, Ownership)> {
        let (kept, ownership) =
            self.read().get(key).map(|entry| (entry.kept.clone(), entry.ownership.clone()))?;
        Some((self.open(&kept), ownership))
    }

    /// Whether we applied the object with this key.
    pub(crate) fn is_applied(&self, key: &ObjectKey) -> bool {
        self.read().get(key).is_some_and(|entry| entry.ownership.fields.is_some())
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        // Whoever lists once lists again.
        if self.read().is_kept_as_text() {
            self.keep_typed();
        }
        let listed = self.read().list(namespace);
        self.open_all(&listed)
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.read().keys()
    }

    pub(crate) fn owned_by(&self, owner_uid: &str) -> Vec<Arc<K>> {
        let owned = self.read().owned_by(owner_uid);
        // Every change of one of so many has all of them looked at.
        if owned.len() > FAMILY && self.read().is_kept_as_text() {
            self.keep_typed();
        }
        self.open_all(&owned)
    }

    pub(crate) fn keys_owned_by(&self, owner_uid: &str) -> Vec<ObjectKey> {
        self.read().keys_owned_by(owner_uid)
    }

    /// Whether the object is controlled by the one with this uid; `None` if there is no such object.
    pub(crate) fn is_controlled_by(&self, key: &ObjectKey, owner_uid: &str) -> Option<bool> {
        Some(self.read().get(key)?.owner.as_deref() == Some(owner_uid))
    }

    fn indexed(&self, index: &str, namespace: Option<&str>, value: &str) -> Option<Vec<Arc<K>>> {
        let indexed = self.read().indexed(index, namespace, value)?;
        Some(self.open_all(&indexed))
    }

    /// From now on all objects are kept as typed values.
    fn keep_typed(&self) {
        self.write().keep_typed();
    }

    /// Texts are read here, outside the lock.
    fn open(&self, kept: &Kept) -> Arc<K> {
        kept.open(self.transform.as_ref())
    }

    fn open_all(&self, kept: &[Kept]) -> Vec<Arc<K>> {
        kept.iter().map(|one| self.open(one)).collect()
    }

    fn opened(&self, news: &AnyChange) -> Change<K> {
        news.open(self.transform.as_ref())
    }

    fn add_index(&self, index: &Index<K>) -> bool {
        self.write().add_index(index)
    }

    /// Calls the subscriber for every change from now on. Returns what [`Store::unsubscribe`] takes.
    pub(crate) fn subscribe(&self, subscriber: Subscriber<K>) -> u64 {
        let id = self.subscriptions.fetch_add(1, Ordering::Relaxed);
        self.subscribers_mut().changes.push((id, subscriber));
        id
    }

    /// Calls the subscriber when the kind appears on the API server (`true`) or vanishes (`false`).
    pub(crate) fn subscribe_served(&self, subscriber: OnServed) -> u64 {
        let id = self.subscriptions.fetch_add(1, Ordering::Relaxed);
        self.subscribers_mut().served.push((id, subscriber));
        id
    }

    pub(crate) fn unsubscribe(&self, id: u64) {
        let mut subscribers = self.subscribers_mut();
        subscribers.changes.retain(|(of, _)| *of != id);
        subscribers.served.retain(|(of, _)| *of != id);
    }

    /// Enters what an own write returned, and returns the newest known copy.
    fn written(&self, object: impl Into<Fresh<K>>, origin: Option<&Origin>) -> Arc<K> {
        let fresh: Fresh<K> = object.into();
        let written = self.write().written(fresh, false);
        self.tell_written(written, origin)
    }

    /// As `written`, of an object that the watch will deliver, as the server has said.
    pub(crate) fn written_in_sight(&self, object: impl Into<Fresh<K>>, origin: Option<&Origin>) -> Arc<K> {
        let fresh: Fresh<K> = object.into();
        let written = self.write().written(fresh, true);
        self.tell_written(written, origin)
    }

    fn tell_written(&self, written: Written, origin: Option<&Origin>) -> Arc<K> {
        match written {
            Written::Changed(news) => {
                let change = self.opened(&news);
                self.notify(&change, origin);
                change.new.expect("a written object must be there")
            }
            Written::Known(newest) => self.open(&newest),
            Written::NotKept(object) => Arc::new(kept::unboxed(object)),
            Written::Left(news, object) => {
                self.notify(&self.opened(&news), origin);
                Arc::new(kept::unboxed(object))
            }
        }
    }

    /// Enters that an own request removed the object.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &str) {
        let change = self.write().deleted(key, uid);
        if let Some(news) = change {
            self.notify(&self.opened(&news), None);
        }
    }

    fn notify(&self, change: &Change<K>, origin: Option<&Origin>) {
        let subscribers = self.subscribers.read().unwrap_or_else(PoisonError::into_inner);
        for (_, subscriber) in &subscribers.changes {
            subscriber(change, origin);
        }
    }

    fn notify_served(&self, served: bool) {
        let subscribers = self.subscribers.read().unwrap_or_else(PoisonError::into_inner);
        for (_, subscriber) in &subscribers.served {
            subscriber(served);
        }
    }

    fn subscribers_mut(&self) -> RwLockWriteGuard<'_, Subscribers<K>> {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}
