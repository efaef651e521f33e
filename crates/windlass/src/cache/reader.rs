//! Typed reads of what a controller watches. No request is ever made.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

use super::Store;
use crate::{
    error::{Error, Result},
    object::{Kind, Object, ObjectKey},
};

/// The cached objects of every kind that a controller watches.
///
/// A mapping function gets one to find the objects that depend on the one that changed; a reconciler reads
/// through its [`Context`](crate::Context), which offers the same calls.
#[derive(Clone)]
pub struct Reader {
    controller: Arc<str>,
    stores: BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("controller", &self.controller).finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(controller: Arc<str>) -> Self {
        Self { controller, stores: BTreeMap::new() }
    }

    pub(crate) fn add<K: Object>(&mut self, store: Arc<Store<K>>) {
        self.stores.entry(TypeId::of::<K>()).or_insert(store);
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
        self.store::<K>()?
            .indexed(index, value)
            .ok_or_else(|| Error::NoIndex { kind: Box::new(Kind::of::<K>()), index: index.to_owned() })
    }

    pub(crate) fn store<K: Object>(&self) -> Result<Arc<Store<K>>> {
        self.find::<K>().ok_or_else(|| Error::NotWatched {
            kind: Box::new(Kind::of::<K>()),
            controller: self.controller.to_string(),
        })
    }

    pub(crate) fn find<K: Object>(&self) -> Option<Arc<Store<K>>> {
        self.stores.get(&TypeId::of::<K>())?.clone().downcast().ok()
    }
}
