//! Watches that are added and removed while a controller runs.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Watch, Wiring};
use crate::{
    apply::OwnedKind,
    cache::{Reader, Scope, Store},
    error::{Error, Result},
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
///     ctx.watches().owns(Watch::dynamic(kind.clone()).optional()).await?;
///     let plans = ctx.dynamic(&kind).list(None)?;
/// }
/// # Ok(()) }
/// ```
pub struct Watches<R> {
    wiring: Arc<Wiring<R>>,
    added: Arc<Mutex<Vec<Added<R>>>>,
}

type Release<R> = Box<dyn FnOnce(&Wiring<R>) + Send>;

type Id = (TypeId, Kind, Scope, Role);

struct Added<R> {
    id: Id,
    store: Arc<dyn Any + Send + Sync>,
    release: Release<R>,
}

/// What leads from a store to the controller.
struct Connected {
    owned: Option<Arc<dyn OwnedKind>>,
    subscriptions: Vec<u64>,
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
    pub(crate) fn new(wiring: Arc<Wiring<R>>) -> Self {
        Self { wiring, added: Arc::default() }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.wiring.kind
    }

    /// As [`Controller::owns_with`](crate::Controller::owns_with). Returns when the first list is in the cache, or
    /// the kind is known not to be served.
    ///
    /// A list that is refused, or that keeps failing, is an
    /// [`Error::WatchFailed`](crate::Error::WatchFailed), after ten seconds of retries at most; the watch is removed
    /// again, and the next call tries anew.
    pub async fn owns<K: AnyObject>(&self, watch: impl Into<Watch<K>>) -> Result<()> {
        self.add(Role::Owned, watch.into(), |wiring, store, filter| Connected {
            owned: Some(wiring.own(store.clone())),
            subscriptions: wiring.subscribe_owned(store, filter).to_vec(),
        })
        .await
    }

    /// As [`Controller::watches_with`](crate::Controller::watches_with). Returns as [`owns`](Self::owns) does.
    pub async fn watches<K, F>(&self, watch: impl Into<Watch<K>>, map: F) -> Result<()>
    where
        K: AnyObject,
        F: Fn(&K, &Reader) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.add(Role::Watched, watch.into(), |wiring, store, filter| Connected {
            owned: None,
            subscriptions: wiring.subscribe_secondary(store, filter, map).to_vec(),
        })
        .await
    }

    /// As [`Controller::reads_with`](crate::Controller::reads_with). Returns as [`owns`](Self::owns) does.
    pub async fn reads<K: AnyObject>(&self, watch: impl Into<Watch<K>>) -> Result<()> {
        self.add(Role::Read, watch.into(), |_, _, _| Connected { owned: None, subscriptions: Vec::new() })
            .await
    }

    /// Ends every watch of a kind that was added here. Returns whether there was one.
    pub fn remove(&self, kind: &Kind) -> bool {
        self.remove_where(|added| added.id.1 == *kind)
    }

    fn remove_where(&self, mut which: impl FnMut(&Added<R>) -> bool) -> bool {
        let removed: Vec<Added<R>> = {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            added.extract_if(.., |added| which(added)).collect()
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
        connect: impl FnOnce(&Wiring<R>, &Arc<Store<K>>, Option<crate::Predicate<K>>) -> Connected,
    ) -> Result<()> {
        let kind = watch.kind.clone();
        let id = (TypeId::of::<K>(), kind.clone(), self.wiring.scope(&watch), role);
        let store = self.find_or_add(&id, watch, connect)?;
        let Err(failure) = store.settled().await else { return Ok(()) };
        // What has no first list must not be read as if nothing existed. Another run may have begun a new attempt.
        self.remove_where(|added| {
            added.id == id && std::ptr::addr_eq(Arc::as_ptr(&added.store), Arc::as_ptr(&store))
        });
        Err(Error::WatchFailed { kind: Box::new(kind), reason: failure.text })
    }

    fn find_or_add<K: AnyObject>(
        &self,
        id: &Id,
        watch: Watch<K>,
        connect: impl FnOnce(&Wiring<R>, &Arc<Store<K>>, Option<crate::Predicate<K>>) -> Connected,
    ) -> Result<Arc<Store<K>>> {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let known = added.iter().find(|added| added.id == *id);
        if let Some(Ok(store)) = known.map(|added| added.store.clone().downcast::<Store<K>>()) {
            return Ok(store);
        }
        let store = self.wiring.store_for(&watch, id.3 == Role::Owned)?;
        let Connected { owned, subscriptions } = connect(&self.wiring, &store, watch.filter);
        let kept = store.clone();
        let release = Box::new(move |wiring: &Wiring<R>| {
            for id in subscriptions {
                kept.unsubscribe(id);
            }
            if let Some(owned) = owned {
                wiring.owned.remove(&owned);
            }
            wiring.release(&kept);
        });
        added.push(Added { id: id.clone(), store: store.clone(), release });
        Ok(store)
    }
}
