//! The shared cache: one watch per kind and scope for all controllers of an operator.
//!
//! [`Caches`] hands out one [`Store`] per kind and [`Scope`]; its watch task feeds it, own writes are entered by
//! [`Store::written`], and every change reaches the subscribers, which put keys into queues.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use kube::Client;
use tokio::sync::watch;

use crate::{
    apply::FieldSet,
    object::{Kind, Object, ObjectKey},
};

mod reader;
mod store;
#[cfg(test)]
mod tests;
mod watching;

pub use reader::Reader;
pub use store::Change;
pub(crate) use store::IndexFn;
use store::{Objects, Written};

/// Which objects of a kind are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

/// Who made an own write: that run already knows about it and need not be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) controller: Arc<str>,
    pub(crate) key: ObjectKey,
}

type Subscriber<K> = Box<dyn Fn(&Change<K>, Option<&Origin>) + Send + Sync>;

/// The objects of one kind and scope, and who wants to hear of them.
pub(crate) struct Store<K> {
    objects: RwLock<Objects<K>>,
    subscribers: RwLock<Vec<Subscriber<K>>>,
    health: watch::Sender<Health>,
    /// Whether a selector keeps objects out.
    partial: bool,
}

/// The state of a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// Whether the first list has been received.
    pub(crate) synced: bool,
    /// The failure since the last success, if there was one.
    pub(crate) failure: Option<Failure>,
}

/// Why a watch does not work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    /// The server answered, and said no: the kind is unknown to it, or we may not read it.
    pub(crate) refused: bool,
}

impl Health {
    pub(crate) fn is_refused(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.refused)
    }
}

impl<K: Object> Store<K> {
    fn new(field_manager: Arc<str>, partial: bool) -> Self {
        Self {
            objects: RwLock::new(Objects::new(field_manager)),
            subscribers: RwLock::default(),
            health: watch::Sender::default(),
            partial,
        }
    }

    /// Whether an object that is not here may exist all the same, because a selector keeps it out.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().get(key).map(|entry| entry.object.clone())
    }

    /// The object and the fields of it that our field manager owns.
    pub(crate) fn get_with_fields(&self, key: &ObjectKey) -> Option<(Arc<K>, Option<Arc<FieldSet>>)> {
        self.read().get(key).map(|entry| (entry.object.clone(), entry.fields.clone()))
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.read().list(namespace)
    }

    pub(crate) fn owned_by(&self, owner_uid: &str) -> Vec<Arc<K>> {
        self.read().owned_by(owner_uid)
    }

    pub(crate) fn indexed(&self, index: &str, value: &str) -> Option<Vec<Arc<K>>> {
        self.read().indexed(index, value)
    }

    pub(crate) fn add_index(&self, name: &str, values: IndexFn<K>) {
        self.write().add_index(name, values);
    }

    pub(crate) fn subscribe(&self, subscriber: Subscriber<K>) {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(subscriber);
    }

    /// Enters what an own write returned, and returns the newest known copy.
    pub(crate) fn written(&self, object: K, origin: Option<&Origin>) -> Arc<K> {
        let written = self.write().written(object);
        match written {
            Written::News(change) => {
                self.notify(&change, origin);
                change.new.expect("a written object must be there")
            }
            Written::Known(newest) => newest,
            Written::Gone(object) => Arc::new(object),
        }
    }

    /// Enters that an own request removed the object.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &str) {
        let change = self.write().deleted(key, uid);
        if let Some(change) = change {
            self.notify(&change, None);
        }
    }

    fn notify(&self, change: &Change<K>, origin: Option<&Origin>) {
        for subscriber in self.subscribers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            subscriber(change, origin);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<K>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch that is not running yet, or whose health is asked for, whatever its kind.
pub(crate) trait Watched: Send + Sync {
    fn kind(&self) -> &Kind;
    fn health(&self) -> watch::Receiver<Health>;
    /// How many objects are cached.
    fn len(&self) -> usize;
    /// Runs the watch; ends only with an error or when dropped.
    fn run(&self, client: Client) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

struct TypedWatch<K> {
    kind: Kind,
    scope: Scope,
    store: Arc<Store<K>>,
}

impl<K: Object> Watched for TypedWatch<K> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.store.health.subscribe()
    }

    fn len(&self) -> usize {
        self.store.read().len()
    }

    fn run(&self, client: Client) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(watching::run(self.store.clone(), client, self.scope.clone()))
    }
}

/// All stores of an operator, in the order in which they were asked for.
pub(crate) struct Caches {
    field_manager: Arc<str>,
    stores: BTreeMap<(TypeId, Scope), Arc<dyn Any + Send + Sync>>,
    watches: Vec<Arc<dyn Watched>>,
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.watches.iter().map(|w| w.kind().to_string())).finish()
    }
}

impl Caches {
    pub(crate) fn new(field_manager: Arc<str>) -> Self {
        Self { field_manager, stores: BTreeMap::new(), watches: Vec::new() }
    }

    /// The store of a kind and scope; the same one for everybody who asks.
    pub(crate) fn store<K: Object>(&mut self, scope: &Scope) -> Arc<Store<K>> {
        let key = (TypeId::of::<K>(), scope.clone());
        if let Some(store) = self.stores.get(&key).and_then(|any| any.clone().downcast().ok()) {
            return store;
        }
        let partial = scope.labels.is_some() || scope.fields.is_some();
        let store = Arc::new(Store::<K>::new(self.field_manager.clone(), partial));
        self.stores.insert(key, store.clone());
        self.watches.push(Arc::new(TypedWatch {
            kind: Kind::of::<K>(),
            scope: scope.clone(),
            store: store.clone(),
        }));
        store
    }

    pub(crate) fn watches(&self) -> &[Arc<dyn Watched>] {
        &self.watches
    }
}
