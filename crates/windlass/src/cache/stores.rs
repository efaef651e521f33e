//! The stores of one kind that a controller has, as one: the same kind may be watched in several scopes.
//!
//! Each store is right by itself, and some may be ahead of others: of two copies of an object the newer one counts.

use std::{collections::BTreeMap, sync::Arc};

use super::{Origin, Store, links::Index};
use crate::{
    object::{AnyObject, Kind, ObjectKey, version},
    wire::{Fresh, Ownership},
};

/// At least one store, all of one kind.
pub(crate) struct Stores<K>(Vec<Arc<Store<K>>>);

impl<K: AnyObject> Stores<K> {
    /// `None` if there are none.
    pub(crate) fn new(stores: Vec<Arc<Store<K>>>) -> Option<Self> {
        (!stores.is_empty()).then_some(Self(stores))
    }

    pub(crate) fn kind(&self) -> &Kind {
        self.0[0].kind()
    }

    /// Whether the API server serves the kind, as far as is known.
    pub(crate) fn is_served(&self) -> bool {
        self.0.iter().all(|store| store.is_served())
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.0.iter().filter_map(|store| store.get(key)).max_by_key(|object| version(&**object))
    }

    /// The newest copy of the object, and what of it is ours.
    pub(crate) fn get_with_ownership(&self, key: &ObjectKey) -> Option<(Arc<K>, Ownership)> {
        let copies = self.0.iter().filter_map(|store| store.get_with_ownership(key));
        copies.max_by_key(|(object, _)| version(&**object))
    }

    /// Whether the object is controlled by the one with this uid; `None` if there is no such object.
    pub(crate) fn is_controlled_by(&self, key: &ObjectKey, owner_uid: &str) -> Option<bool> {
        self.0.iter().find_map(|store| store.is_controlled_by(key, owner_uid))
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.union(|store| store.list(namespace))
    }

    pub(crate) fn owned_by(&self, owner_uid: &str) -> Vec<Arc<K>> {
        self.union(|store| store.owned_by(owner_uid))
    }

    /// From the stores that have the index; `None` if none has.
    pub(crate) fn indexed(&self, index: &str, namespace: Option<&str>, value: &str) -> Option<Vec<Arc<K>>> {
        let mut lists = self.0.iter().filter_map(|store| store.indexed(index, namespace, value));
        let first = lists.next()?;
        Some(lists.fold(first, union))
    }

    /// Returns whether the name was free in every store.
    pub(crate) fn add_index(&self, index: &Index<K>) -> bool {
        self.0.iter().all(|store| store.add_index(index))
    }

    /// Enters what an own write returned into every store whose watch will deliver it, and returns the newest copy.
    pub(crate) fn written(&self, object: impl Into<Fresh<K>>, origin: Option<&Origin>) -> Arc<K> {
        let fresh = object.into();
        let (last, others) = self.0.split_last().expect("there must be a store");
        let copies: Vec<Arc<K>> = others.iter().map(|store| store.written(fresh.clone(), origin)).collect();
        let newest = last.written(fresh, origin);
        copies.into_iter().fold(newest, |a, b| if version(&*b) > version(&*a) { b } else { a })
    }

    /// Enters that an own request removed the object.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &str) {
        for store in &self.0 {
            store.deleted(key, uid);
        }
    }

    fn union(&self, list: impl Fn(&Store<K>) -> Vec<Arc<K>>) -> Vec<Arc<K>> {
        let mut lists = self.0.iter().map(|store| list(store));
        let first = lists.next().unwrap_or_default();
        lists.fold(first, union)
    }
}

/// Both lists as one, ordered by key, with the newer of two copies.
fn union<K: AnyObject>(a: Vec<Arc<K>>, b: Vec<Arc<K>>) -> Vec<Arc<K>> {
    let mut objects: BTreeMap<ObjectKey, Arc<K>> = BTreeMap::new();
    for object in a.into_iter().chain(b) {
        let key = ObjectKey::of(&*object);
        match objects.get(&key) {
            Some(known) if version(&**known) >= version(&*object) => {}
            _ => {
                objects.insert(key, object);
            }
        }
    }
    objects.into_values().collect()
}
