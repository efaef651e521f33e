//! Watches that are added and removed while a controller runs.

use std::{
    any::TypeId,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Watch, setup::Wiring};
use crate::{
    cache::{Reader, Scope, Store},
    object::{AnyObject, Kind, ObjectKey},
};

/// The watches that a controller adds and removes while it runs; see [`Context::watches`](crate::Context::watches).
///
/// Adding what is there already does nothing, so that a reconciler may add what it needs on every run. Clones
/// share the watches. Permissions for kinds that the builder does not name go into
/// [`Controller::permits`](crate::Controller::permits).
///
/// ```no_run
/// # use std::sync::Arc;
/// # use windlass::{Action, Context, Kind, Reconciler, Watch, k8s_openapi::api::core::v1::ConfigMap};
/// # use windlass::kube::core::{DynamicObject, GroupVersionKind};
/// # async fn example(ctx: &Context<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
/// let wanted = GroupVersionKind::gvk("example.com", "v1", "Plan");
/// if let Some(kind) = Kind::discover(ctx.client(), &wanted).await? {
///     ctx.watches().owns(Watch::dynamic(kind.clone()).optional()).await;
///     let plans = ctx.dynamic(&kind).list(None)?;
/// }
/// # Ok(()) }
/// ```
pub struct Watches<R> {
    wiring: Arc<Wiring<R>>,
    added: Arc<Mutex<Vec<Added<R>>>>,
}

type Release<R> = Box<dyn FnOnce(&Wiring<R>) + Send>;

struct Added<R> {
    id: (TypeId, Kind, Scope, Role),
    release: Release<R>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Owned,
    Watched,
    Read,
}

impl<R> Clone for Watches<R> {
    fn clone(&self) -> Self {
        Self { wiring: self.wiring.clone(), added: self.added.clone() }
    }
}

impl<R> fmt::Debug for Watches<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watches")
    }
}

impl<R: AnyObject> Watches<R> {
    pub(super) fn new(wiring: Arc<Wiring<R>>) -> Self {
        Self { wiring, added: Arc::default() }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.wiring.kind
    }

    /// As [`Controller::owns`](crate::Controller::owns). Returns when the first list is in the cache, or the
    /// kind is known not to be served.
    pub async fn owns<K: AnyObject>(&self, watch: Watch<K>) {
        self.add(Role::Owned, watch, |wiring, store, filter| {
            wiring.own(store.clone());
            wiring.subscribe_owned(store, filter).to_vec()
        })
        .await;
    }

    /// As [`Controller::watches`](crate::Controller::watches). Returns when the first list is in the cache, or
    /// the kind is known not to be served.
    pub async fn watches<K, F>(&self, watch: Watch<K>, map: F)
    where
        K: AnyObject,
        F: Fn(&K, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.add(Role::Watched, watch, |wiring, store, filter| {
            wiring.subscribe_secondary(store, filter, map).to_vec()
        })
        .await;
    }

    /// As [`Controller::reads`](crate::Controller::reads). Returns when the first list is in the cache, or the
    /// kind is known not to be served.
    pub async fn reads<K: AnyObject>(&self, watch: Watch<K>) {
        self.add(Role::Read, watch, |_, _, _| Vec::new()).await;
    }

    /// Ends every watch of a kind that was added here. Returns whether there was one.
    pub fn remove(&self, kind: &Kind) -> bool {
        let removed: Vec<Added<R>> = {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            added.extract_if(.., |added| added.id.1 == *kind).collect()
        };
        let any = !removed.is_empty();
        for added in removed {
            (added.release)(&self.wiring);
        }
        any
    }

    /// The kinds that were added and not removed.
    pub fn kinds(&self) -> Vec<Kind> {
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kinds: Vec<Kind> = added.iter().map(|added| added.id.1.clone()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    async fn add<K: AnyObject>(
        &self,
        role: Role,
        watch: Watch<K>,
        connect: impl FnOnce(&Wiring<R>, &Arc<Store<K>>, Option<crate::Predicate<K>>) -> Vec<u64>,
    ) {
        let id = (TypeId::of::<K>(), watch.kind.clone(), self.wiring.scope(&watch), role);
        let store = {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            if added.iter().any(|added| added.id == id) {
                self.wiring.reader.find_of::<K>(&watch.kind)
            } else {
                let known = self.wiring.reader.find_of::<K>(&watch.kind).is_some();
                let owned = self.wiring.owned.find(&watch.kind).is_some();
                let store = self.wiring.store_for(&watch, role == Role::Owned);
                let subscriptions = connect(&self.wiring, &store, watch.filter);
                let kept = store.clone();
                let release = Box::new(move |wiring: &Wiring<R>| {
                    for id in subscriptions {
                        kept.unsubscribe(id);
                    }
                    // What the builder declared stays.
                    if !owned && role == Role::Owned {
                        wiring.owned.remove(kept.kind());
                    }
                    if !known {
                        wiring.reader.remove(&*kept);
                    }
                    wiring.caches.release(&*kept);
                });
                added.push(Added { id, release });
                Some(store)
            }
        };
        if let Some(store) = store {
            store.settled().await;
        }
    }
}
