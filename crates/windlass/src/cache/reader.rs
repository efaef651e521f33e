//! Typed reads of what a controller watches. No request is ever made.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use kube::core::DynamicObject;

use super::Store;
use crate::{
    error::{Error, Result},
    object::{AnyObject, Kind, Object, ObjectKey},
};

type Stores = BTreeMap<(TypeId, Kind), Arc<dyn Any + Send + Sync>>;

/// The cached objects of every kind that a controller watches.
///
/// A mapping function gets one to find the objects that depend on the one that changed; a reconciler reads
/// through its [`Context`](crate::Context), which offers the same calls. Clones share the view.
#[derive(Clone)]
pub struct Reader {
    controller: Arc<str>,
    stores: Arc<RwLock<Stores>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("controller", &self.controller).finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(controller: Arc<str>) -> Self {
        Self { controller, stores: Arc::default() }
    }

    /// Makes a store readable, unless another one of that kind is.
    pub(crate) fn add<K: AnyObject>(&self, store: Arc<Store<K>>) {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        stores.entry((TypeId::of::<K>(), store.kind().clone())).or_insert(store);
    }

    pub(crate) fn remove<K: AnyObject>(&self, store: &Store<K>) {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        stores.remove(&(TypeId::of::<K>(), store.kind().clone()));
    }

    /// The object of that name, or `None` if there is none.
    pub fn get<K: Object>(&self, namespace: Option<&str>, name: &str) -> Result<Option<Arc<K>>> {
        Ok(self.store::<K>()?.get(&ObjectKey::new(namespace, name)))
    }

    /// The objects of a namespace, or of all with `None`, ordered by key.
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Result<Vec<Arc<K>>> {
        Ok(self.store::<K>()?.list(namespace))
    }

    /// The objects whose controller owner has this uid, ordered by key.
    pub fn owned_by<K: Object>(&self, owner_uid: &str) -> Result<Vec<Arc<K>>> {
        Ok(self.store::<K>()?.owned_by(owner_uid))
    }

    /// The objects with this value in an index declared with
    /// [`Controller::index`](crate::Controller::index), ordered by key.
    pub fn indexed<K: Object>(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>> {
        indexed(&*self.store::<K>()?, index, value)
    }

    /// Whether the API server serves the kind, as far as is known.
    pub fn is_served<K: Object>(&self) -> Result<bool> {
        Ok(self.store::<K>()?.is_served())
    }

    /// As [`get`](Self::get), of a kind that is known only when the program runs.
    pub fn get_dynamic(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<DynamicObject>>> {
        Ok(self.store_of(kind)?.get(&ObjectKey::new(namespace, name)))
    }

    /// As [`list`](Self::list), of a kind that is known only when the program runs.
    pub fn list_dynamic(&self, kind: &Kind, namespace: Option<&str>) -> Result<Vec<Arc<DynamicObject>>> {
        Ok(self.store_of(kind)?.list(namespace))
    }

    pub(crate) fn store<K: Object>(&self) -> Result<Arc<Store<K>>> {
        self.store_of(&Kind::of::<K>())
    }

    pub(crate) fn store_of<K: AnyObject>(&self, kind: &Kind) -> Result<Arc<Store<K>>> {
        self.find_of(kind).ok_or_else(|| Error::NotWatched {
            kind: Box::new(kind.clone()),
            controller: self.controller.to_string(),
        })
    }

    pub(crate) fn find_of<K: AnyObject>(&self, kind: &Kind) -> Option<Arc<Store<K>>> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.get(&(TypeId::of::<K>(), kind.clone()))?.clone().downcast().ok()
    }
}

pub(crate) fn indexed<K: AnyObject>(store: &Store<K>, index: &str, value: &str) -> Result<Vec<Arc<K>>> {
    store
        .indexed(index, value)
        .ok_or_else(|| Error::NoIndex { kind: Box::new(store.kind().clone()), index: index.to_owned() })
}
