//! Connecting a controller's declarations to the shared caches and to its queue.

use std::{future::Future, pin::Pin, sync::Arc};

use crate::{
    apply::{OwnedKind, TypedOwnedKind},
    cache::{Caches, Change, Origin, Reader, Scope, Store},
    controller::Watch,
    error::Result,
    metrics::ControllerMetrics,
    object::{Kind, Object, ObjectKey},
    predicate::Predicate,
    queue::{Priority, Queue},
};

/// One declaration of the builder, carried out when the operator starts.
pub(super) type Source<R> = Box<dyn FnOnce(&mut Setup<'_, R>) + Send>;
type Late<T> = Box<dyn FnOnce(&Reader) -> T + Send>;

/// What a watched kind is to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Reconciled,
    Secondary,
}

/// A controller being put together.
pub(super) struct Setup<'a, R> {
    pub(super) caches: &'a mut Caches,
    pub(super) controller: Arc<str>,
    pub(super) namespace: Option<String>,
    pub(super) queue: Arc<Queue<ObjectKey>>,
    pub(super) metrics: ControllerMetrics,
    pub(super) reader: Reader,
    pub(super) owned: Vec<Arc<dyn OwnedKind>>,
    pub(super) indexes: Vec<Late<Result<()>>>,
    pub(super) subscriptions: Vec<Late<()>>,
    pub(super) tasks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(super) resource: std::marker::PhantomData<R>,
}

impl<R: Object> Setup<'_, R> {
    /// The shared store of a kind, which the controller may read from now on.
    pub(super) fn store<K: Object>(&mut self, watch: &Watch<K>) -> Arc<Store<K>> {
        let scope = Scope {
            namespace: self.namespace.clone().filter(|_| Kind::of::<K>().namespaced),
            labels: watch.labels.clone(),
            fields: watch.fields.clone(),
        };
        let store = self.caches.store::<K>(&scope);
        self.reader.add(store.clone());
        store
    }

    /// Lets `apply` write and prune objects of this kind.
    pub(super) fn owned<K: Object>(&mut self, store: Arc<Store<K>>) {
        self.owned.push(Arc::new(TypedOwnedKind { kind: Kind::of::<K>(), store }));
    }

    /// Queues the keys that `map` finds whenever an object of the store changes.
    ///
    /// The first list counts for the reconciled kind only: it queues every object there is, in order, and what
    /// other kinds could add are the same keys in another order.
    pub(super) fn subscribe<K: Object>(
        &mut self,
        store: Arc<Store<K>>,
        role: Role,
        filter: Option<Predicate<K>>,
        map: impl Fn(&K, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        let (queue, controller, metrics) =
            (self.queue.clone(), self.controller.clone(), self.metrics.clone());
        self.subscriptions.push(Box::new(move |reader| {
            let reader = reader.clone();
            store.subscribe(Box::new(move |change: &Change<K>, origin: Option<&Origin>| {
                if change.initial && role == Role::Secondary {
                    return;
                }
                if filter.as_ref().is_some_and(|filter| !filter.admits(change)) {
                    return;
                }
                let priority = if change.initial { Priority::LOW } else { Priority::NORMAL };
                let mut keys: Vec<ObjectKey> =
                    [&change.old, &change.new].into_iter().flatten().flat_map(|o| map(o, &reader)).collect();
                keys.dedup();
                for key in keys {
                    let own = origin.is_some_and(|run| run.controller == controller && run.key == key);
                    if !own && queue.add(key, priority) {
                        metrics.added();
                    }
                }
            }));
        }));
    }
}
