//! Connecting a controller's declarations to the shared caches and to its queue, at the start and later.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use super::Watch;
use crate::{
    apply::{Owned, OwnedKind, OwnedStore},
    cache::{Caches, Change, Origin, Reader, Scope, Store, WatchEntry},
    error::{Error, Result},
    handle::Load,
    isolation::isolated,
    metrics::ControllerMetrics,
    object::{AnyObject, Kind, ObjectKey},
    owner,
    predicate::Predicate,
    queue::{Priority, Queue},
    runs::{Queued, Runs},
};

/// One declaration of the builder, carried out when the operator starts.
pub(crate) type Source<R> = Box<dyn FnOnce(&mut Setup<R>) -> Result<()> + Send>;
type Late<T> = Box<dyn FnOnce(&Reader) -> T + Send>;

/// A controller being put together.
pub(crate) struct Setup<R> {
    pub(crate) wiring: Arc<Wiring<R>>,
    pub(crate) indexes: Vec<Late<Result<()>>>,
    pub(crate) tasks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<R: AnyObject> Load for Wiring<R> {
    fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    fn requeue_all(&self) -> (Arc<str>, Vec<ObjectKey>) {
        let keys: Vec<ObjectKey> = self.reconciled.get().iter().flat_map(|store| store.keys()).collect();
        for key in &keys {
            if self.queue.add(key.clone(), Priority::NORMAL) {
                self.metrics.added();
            }
        }
        (self.controller.clone(), keys)
    }

    fn queued(&self) -> Vec<Queued> {
        let queued = |(key, place, time, failures): (ObjectKey, &str, Duration, u32)| Queued {
            controller: self.controller.to_string(),
            namespace: key.namespace().unwrap_or_default().to_owned(),
            name: key.name().to_owned(),
            place: place.to_owned(),
            millis: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            failures,
        };
        self.queue.keys().into_iter().map(queued).collect()
    }
}

/// What leads from a watch to the queue of a controller.
pub(crate) struct Wiring<R> {
    pub(crate) caches: Caches,
    pub(crate) controller: Arc<str>,
    /// The kind that is reconciled.
    pub(crate) kind: Kind,
    pub(crate) namespaces: Vec<String>,
    pub(crate) queue: Arc<Queue<ObjectKey>>,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) runs: Runs,
    pub(crate) reader: Reader,
    pub(crate) owned: Owned,
    /// The store of the reconciled kind, once it is there.
    pub(crate) reconciled: OnceLock<Arc<Store<R>>>,
    /// The watches that were declared, until they are taken. Those that are added later hold nothing up.
    pub(crate) needs: Mutex<Option<Vec<WatchEntry>>>,
}

impl<R: AnyObject> Wiring<R> {
    pub(crate) fn scope<K: AnyObject>(&self, watch: &Watch<K>) -> Scope {
        Scope {
            namespaces: if watch.kind.namespaced { self.namespaces.clone() } else { Vec::new() },
            labels: watch.labels.clone(),
            fields: watch.fields.clone(),
        }
    }

    /// The shared store of a kind, which the controller may read from now on. [`Wiring::release`] gives it back.
    pub(crate) fn store<K: AnyObject>(&self, watch: &Watch<K>) -> Result<Arc<Store<K>>> {
        self.store_for(watch, false)
    }

    /// As `store`. `children`: of a kind whose objects are looked at as the children of one owner at a time.
    pub(crate) fn store_for<K: AnyObject>(&self, watch: &Watch<K>, children: bool) -> Result<Arc<Store<K>>> {
        let scope = self.scope(watch);
        scope.check().map_err(|(selector, reason)| Error::InvalidSelector {
            kind: Box::new(watch.kind.clone()),
            selector,
            reason,
        })?;
        let store = self.caches.store::<K>(&watch.kind, &scope, watch.optional, children);
        self.reader.add(store.clone());
        if let Some(needs) = self.needs.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            needs.push(WatchEntry { watch: Arc::new(store.clone()), optional: watch.optional });
        }
        Ok(store)
    }

    /// The watches that were declared.
    pub(crate) fn take_needs(&self) -> Vec<WatchEntry> {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// Gives a store back.
    pub(crate) fn release<K: AnyObject>(&self, store: &Arc<Store<K>>) {
        self.reader.remove(store);
        self.caches.release(&**store);
    }

    /// Lets `apply` write and prune objects of this kind. Returns what takes that back.
    pub(crate) fn own<K: AnyObject>(&self, store: Arc<Store<K>>) -> Arc<dyn OwnedKind> {
        let owned: Arc<dyn OwnedKind> = Arc::new(OwnedStore { store });
        self.owned.push(owned.clone());
        owned
    }

    /// Queues what is reconciled whenever an object of the store changes that it controls, or whose name it wants for
    /// a child of its own.
    pub(crate) fn subscribe_owned<K: AnyObject>(
        &self,
        store: &Arc<Store<K>>,
        filter: Option<Predicate<K>>,
    ) -> [u64; 2] {
        let (kind, of, owned) = (self.kind.clone(), store.kind().clone(), self.owned.clone());
        let reconciled = self.reconciled.get().cloned();
        self.subscribe_secondary(store, filter, move |child: &K, _: &Reader| {
            let mut keys: Vec<ObjectKey> = owner::owner_key_of(&kind, child.meta()).into_iter().collect();
            // Of those that are gone, nobody may have said that they want it no more.
            let exists = |key: &ObjectKey| reconciled.as_ref().is_some_and(|store| store.contains(key));
            keys.extend(owned.wanting(&of, &ObjectKey::of(child)).into_iter().filter(exists));
            keys
        })
    }

    /// Queues the keys that `map` finds whenever an object of the store changes, and every reconciled object
    /// when the kind appears or vanishes.
    ///
    /// The first list counts for the reconciled kind only: it queues every object there is, in order, and what
    /// other kinds could add are the same keys in another order.
    pub(crate) fn subscribe_secondary<K: AnyObject>(
        &self,
        store: &Arc<Store<K>>,
        filter: Option<Predicate<K>>,
        map: impl Fn(&K, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> [u64; 2] {
        let changes = self.subscribe(store, filter, move |change, reader| {
            if change.initial {
                return Vec::new();
            }
            let mut keys: Vec<ObjectKey> =
                [&change.old, &change.new].into_iter().flatten().flat_map(|o| map(o, reader)).collect();
            keys.dedup();
            keys
        });
        [changes, self.subscribe_served(store)]
    }

    pub(crate) fn subscribe_reconciled(&self, store: &Arc<Store<R>>, filter: Option<Predicate<R>>) {
        self.subscribe(store, filter, |change, _| vec![change.key.clone()]);
    }

    fn subscribe<K: AnyObject>(
        &self,
        store: &Arc<Store<K>>,
        filter: Option<Predicate<K>>,
        keys: impl Fn(&Change<K>, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> u64 {
        let (queue, controller) = (self.queue.clone(), self.controller.clone());
        let (metrics, reader) = (self.metrics.clone(), self.reader.clone());
        let (runs, kind) = (self.runs.clone(), store.kind().clone());
        let reconciled = self.reconciled.get().cloned();
        store.subscribe(Box::new(move |change: &Change<K>, origin: Option<&Origin>| {
            // What a filter would have said and what a mapping would have found is not known after a panic: the change
            // counts, and for all objects.
            let rejects = |filter: &Predicate<K>| {
                isolated("a filter", &controller, || !filter.passes(change)).unwrap_or(false)
            };
            if filter.as_ref().is_some_and(rejects) {
                return;
            }
            let priority = if change.initial { Priority::LOW } else { Priority::NORMAL };
            let found = isolated("a mapping to keys", &controller, || keys(change, &reader));
            let all = || reconciled.iter().flat_map(|store| store.keys()).collect();
            for key in found.unwrap_or_else(all) {
                let own = origin.is_some_and(|run| run.controller == controller && run.key == key);
                if own {
                    continue;
                }
                runs.woke(&controller, &key, &kind, &change.key);
                if queue.add(key, priority) {
                    metrics.added();
                }
            }
        }))
    }

    /// What an object becomes may depend on which kinds there are: all of them are looked at again.
    fn subscribe_served<K: AnyObject>(&self, store: &Arc<Store<K>>) -> u64 {
        let (queue, metrics) = (self.queue.clone(), self.metrics.clone());
        let reconciled = self.reconciled.get().cloned();
        store.subscribe_served(Box::new(move |_| {
            for key in reconciled.iter().flat_map(|store| store.keys()) {
                if queue.add(key, Priority::LOW) {
                    metrics.added();
                }
            }
        }))
    }
}
