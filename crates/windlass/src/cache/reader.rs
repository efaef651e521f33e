//! Typed reads of what a controller watches. No request is ever made.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use kube::core::DynamicObject;
use windlass_apimachinery::labels::Selector;

use super::{Store, Stores};
use crate::{
    error::{Error, Result},
    object::{AnyObject, Kind, Object, ObjectKey},
};

/// The stores of each kind in the order in which they were declared, with the number of declarations.
type Slots = BTreeMap<(TypeId, Kind), Vec<(Arc<dyn Any + Send + Sync>, usize)>>;

/// The cached objects of every kind that a controller watches.
///
/// A mapping function gets one to find the objects that depend on the one that changed; a reconciler reads
/// through its [`Context`](crate::Context), which offers the same calls. Clones share the view.
#[derive(Clone)]
pub struct Reader {
    controller: Arc<str>,
    slots: Arc<RwLock<Slots>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("controller", &self.controller).finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(controller: Arc<str>) -> Self {
        Self { controller, slots: Arc::default() }
    }

    /// Makes a store readable, beside others of that kind. [`Reader::remove`] takes it back.
    pub(crate) fn add<K: AnyObject>(&self, store: Arc<Store<K>>) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let place = slots.entry((TypeId::of::<K>(), store.kind().clone())).or_default();
        match place.iter_mut().find(|(known, _)| is_same(known, &store)) {
            Some((_, uses)) => *uses += 1,
            None => place.push((store, 1)),
        }
    }

    pub(crate) fn remove<K: AnyObject>(&self, store: &Arc<Store<K>>) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let key = (TypeId::of::<K>(), store.kind().clone());
        let Some(place) = slots.get_mut(&key) else { return };
        for (_, uses) in place.iter_mut().filter(|(known, _)| is_same(known, store)) {
            *uses -= 1;
        }
        place.retain(|(_, uses)| *uses > 0);
        if place.is_empty() {
            slots.remove(&key);
        }
    }

    /// The object of that name, or `None` if there is none.
    pub fn get<K: Object>(&self, namespace: Option<&str>, name: &str) -> Result<Option<Arc<K>>> {
        Ok(self.stores::<K>()?.get(&ObjectKey::new(namespace, name)))
    }

    /// The objects of a namespace, or of all with `None`, ordered by key.
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Result<Vec<Arc<K>>> {
        Ok(self.stores::<K>()?.list(namespace))
    }

    /// The objects of a namespace, or of all with `None`, whose labels match a selector, ordered by key.
    ///
    /// The selector is written as for `kubectl get -l`: `app=web,tier notin (db, cache),!canary`.
    pub fn list_where<K: Object>(&self, namespace: Option<&str>, labels: &str) -> Result<Vec<Arc<K>>> {
        matching(&self.stores::<K>()?, namespace, labels)
    }

    /// The objects whose controller owner has this uid, ordered by key.
    pub fn owned_by<K: Object>(&self, owner_uid: &str) -> Result<Vec<Arc<K>>> {
        Ok(self.stores::<K>()?.owned_by(owner_uid))
    }

    /// The objects with this value in an index declared with
    /// [`Controller::index`](crate::Controller::index), ordered by key.
    pub fn indexed<K: Object>(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>> {
        indexed(&self.stores::<K>()?, index, None, value)
    }

    /// As [`indexed`](Self::indexed), of one namespace.
    pub fn indexed_in<K: Object>(&self, namespace: &str, index: &str, value: &str) -> Result<Vec<Arc<K>>> {
        indexed(&self.stores::<K>()?, index, Some(namespace), value)
    }

    /// Whether the API server serves the kind, as far as is known.
    pub fn is_served<K: Object>(&self) -> Result<bool> {
        Ok(self.stores::<K>()?.is_served())
    }

    /// As [`get`](Self::get), of a kind that is known only when the program runs.
    pub fn get_dynamic(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<DynamicObject>>> {
        Ok(self.stores_of(kind)?.get(&ObjectKey::new(namespace, name)))
    }

    /// As [`list`](Self::list), of a kind that is known only when the program runs.
    pub fn list_dynamic(&self, kind: &Kind, namespace: Option<&str>) -> Result<Vec<Arc<DynamicObject>>> {
        Ok(self.stores_of(kind)?.list(namespace))
    }

    fn stores<K: Object>(&self) -> Result<Stores<K>> {
        self.stores_of(&Kind::of::<K>())
    }

    pub(crate) fn stores_of<K: AnyObject>(&self, kind: &Kind) -> Result<Stores<K>> {
        self.find_of(kind).ok_or_else(|| Error::NotWatched {
            kind: Box::new(kind.clone()),
            controller: self.controller.to_string(),
        })
    }

    pub(crate) fn find_of<K: AnyObject>(&self, kind: &Kind) -> Option<Stores<K>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let place = slots.get(&(TypeId::of::<K>(), kind.clone()))?;
        Stores::new(place.iter().filter_map(|(store, _)| store.clone().downcast().ok()).collect())
    }
}

fn is_same<K: AnyObject>(known: &Arc<dyn Any + Send + Sync>, store: &Arc<Store<K>>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(store))
}

pub(crate) fn indexed<K: AnyObject>(
    stores: &Stores<K>,
    index: &str,
    namespace: Option<&str>,
    value: &str,
) -> Result<Vec<Arc<K>>> {
    stores
        .indexed(index, namespace, value)
        .ok_or_else(|| Error::NoIndex { kind: Box::new(stores.kind().clone()), index: index.to_owned() })
}

pub(crate) fn matching<K: AnyObject>(
    stores: &Stores<K>,
    namespace: Option<&str>,
    labels: &str,
) -> Result<Vec<Arc<K>>> {
    let selector = Selector::parse(labels).map_err(|reason| Error::InvalidSelector {
        kind: Box::new(stores.kind().clone()),
        selector: labels.to_owned(),
        reason: reason.to_string(),
    })?;
    let mut objects = stores.list(namespace);
    objects.retain(|object| selector.matches_map(object.meta().labels.as_ref()));
    Ok(objects)
}
