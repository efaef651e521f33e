//! Which stores there are: shared by kind and scope, counted by use, and fed by one task each.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{Health, Scope, Store, kept::Kept, store::Transform, watching};
use crate::{
    object::{AnyObject, Kind},
    wire::FieldManager,
};

/// A watch that is not running yet, or whose health is asked for, whatever its kind.
pub(crate) trait Watched: Send + Sync {
    fn kind(&self) -> &Kind;
    /// Whether whole objects of all namespaces are cached, without a selector.
    fn is_unscoped(&self) -> bool;
    fn health(&self) -> watch::Receiver<Health>;
    /// How many objects are cached.
    fn len(&self) -> usize;
    /// How many objects exist that this program cannot read.
    fn unreadable(&self) -> usize;
    /// About how much memory the objects take.
    fn bytes(&self) -> usize;
    /// Runs the watch until dropped.
    fn run(&self, link: Link) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl<K: AnyObject> Watched for Arc<Store<K>> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn is_unscoped(&self) -> bool {
        self.scope == Scope::default() && !K::metadata_api()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    fn len(&self) -> usize {
        self.read().len()
    }

    fn unreadable(&self) -> usize {
        self.read().unreadable()
    }

    fn bytes(&self) -> usize {
        // Measured outside the lock: writers do not wait for a scrape.
        let (sample, count) = self.read().sample();
        let measured: usize = sample.iter().map(Kept::bytes).sum();
        measured.checked_mul(count).map_or(0, |total| total / sample.len().max(1))
    }

    fn run(&self, link: Link) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(watching::run(self.clone(), link))
    }
}

/// How the watches reach the API server.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) client: Client,
    /// The server is in this process: a watch that is silent has nothing to tell.
    pub(crate) in_process: bool,
    /// Silence is not looked for: it may be this process that was stopped, to be looked at.
    pub(crate) debugging: bool,
}

/// One watch as the operator sees it.
#[derive(Clone)]
pub(crate) struct WatchEntry {
    pub(crate) watch: Arc<dyn Watched>,
    /// Whether everybody who uses it can do without.
    pub(crate) optional: bool,
}

struct Slot {
    store: Arc<dyn Any + Send + Sync>,
    seen: WatchEntry,
    /// The order in which the stores were asked for.
    serial: u64,
    users: usize,
    stop: CancellationToken,
}

type SlotKey = (TypeId, Kind, Scope);

struct Inner {
    field_manager: Arc<FieldManager>,
    transforms: Transforms,
    slots: BTreeMap<SlotKey, Slot>,
    serial: u64,
    /// Where watches that are added while the operator runs are started.
    launch: Option<mpsc::UnboundedSender<(Arc<dyn Watched>, CancellationToken)>>,
}

/// What is done to objects of a type before they are cached.
#[derive(Clone, Default)]
pub(crate) struct Transforms(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Transforms {
    pub(crate) fn set<K: AnyObject>(&mut self, transform: Transform<K>) {
        self.0.insert(TypeId::of::<K>(), Arc::new(transform));
    }

    fn of<K: AnyObject>(&self) -> Option<Transform<K>> {
        let any = self.0.get(&TypeId::of::<K>())?;
        any.downcast_ref::<Transform<K>>().cloned()
    }
}

/// All stores of an operator. Clones share them.
#[derive(Clone)]
pub(crate) struct Caches(Arc<Mutex<Inner>>);

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.watches().iter().map(|seen| seen.watch.kind().to_string())).finish()
    }
}

impl Caches {
    pub(crate) fn new(field_manager: Arc<FieldManager>, transforms: Transforms) -> Self {
        let (slots, serial, launch) = (BTreeMap::new(), 0, None);
        Self(Arc::new(Mutex::new(Inner { field_manager, transforms, slots, serial, launch })))
    }

    /// The store of a kind and scope; the same one for everybody who asks. [`Caches::release`] gives it back.
    /// `children`: whoever asks looks at the children of one object at a time, and at nothing else.
    pub(crate) fn store<K: AnyObject>(
        &self,
        kind: &Kind,
        scope: &Scope,
        optional: bool,
        children: bool,
    ) -> Arc<Store<K>> {
        let mut inner = self.lock();
        let key = (TypeId::of::<K>(), kind.clone(), scope.clone());
        if let Some(slot) = inner.slots.get_mut(&key)
            && let Ok(store) = slot.store.clone().downcast::<Store<K>>()
        {
            if !children {
                store.keep_typed();
            }
            slot.users += 1;
            slot.seen.optional &= optional;
            return store;
        }
        let (live, transform) = (inner.launch.is_some(), inner.transforms.of::<K>());
        let manager = inner.field_manager.clone();
        let store =
            Arc::new(Store::<K>::new(kind.clone(), manager, scope.clone(), live, transform, children));
        let (watch, stop): (Arc<dyn Watched>, _) = (Arc::new(store.clone()), CancellationToken::new());
        if let Some(launch) = &inner.launch {
            // Without a receiver the operator has ended, and nothing needs to be watched.
            let _ = launch.send((watch.clone(), stop.clone()));
        }
        inner.serial += 1;
        let (serial, seen) = (inner.serial, WatchEntry { watch, optional });
        inner.slots.insert(key, Slot { store: store.clone(), seen, serial, users: 1, stop });
        store
    }

    /// Gives a store back. The last one to do so ends its watch.
    pub(crate) fn release<K: AnyObject>(&self, store: &Store<K>) {
        let mut inner = self.lock();
        let key = (TypeId::of::<K>(), store.kind.clone(), store.scope.clone());
        if let Some(slot) = inner.slots.get_mut(&key) {
            slot.users -= 1;
            if slot.users == 0 {
                slot.stop.cancel();
                inner.slots.remove(&key);
            }
        }
    }

    /// The watches, in the order in which they were asked for.
    pub(crate) fn watches(&self) -> Vec<WatchEntry> {
        let inner = self.lock();
        let mut slots: Vec<&Slot> = inner.slots.values().collect();
        slots.sort_by_key(|slot| slot.serial);
        slots.into_iter().map(|slot| slot.seen.clone()).collect()
    }

    /// Runs every watch, and those that are added later. Ends only if a watch dies.
    pub(crate) fn run(&self, link: Link) -> impl Future<Output = ()> + Send + use<> {
        let (sender, mut added) = mpsc::unbounded_channel();
        let mut inner = self.lock();
        let mut slots: Vec<&Slot> = inner.slots.values().collect();
        slots.sort_by_key(|slot| slot.serial);
        for slot in slots {
            let _ = sender.send((slot.seen.watch.clone(), slot.stop.clone()));
        }
        inner.launch = Some(sender);
        async move {
            let mut running = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    launched = added.recv() => {
                        let Some((watch, stop)) = launched else { return };
                        let task = watch.run(link.clone());
                        running.spawn(async move { stop.run_until_cancelled_owned(task).await });
                    }
                    Some(ended) = running.join_next() => match ended {
                        // Nobody uses it any more.
                        Ok(None) => {}
                        Ok(Some(())) => return,
                        Err(error) => {
                            tracing::error!(%error, "a watch died");
                            return;
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn downgrade(&self) -> WeakCaches {
        WeakCaches(Arc::downgrade(&self.0))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stores of an operator that may have ended.
#[derive(Clone)]
pub(crate) struct WeakCaches(Weak<Mutex<Inner>>);

impl fmt::Debug for WeakCaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakCaches")
    }
}

impl WeakCaches {
    /// The watches; none once the operator has ended.
    pub(crate) fn watches(&self) -> Vec<WatchEntry> {
        self.0.upgrade().map(|inner| Caches(inner).watches()).unwrap_or_default()
    }
}
