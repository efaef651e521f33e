//! Which objects belong together: those of one controlling owner, and those with one value of an index.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    isolation::isolated,
    object::{AnyObject, ObjectKey},
};

/// Derives index values from an object.
pub(crate) type IndexFn<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

pub(super) struct Links<K> {
    by_owner: BTreeMap<Arc<str>, Keys>,
    indexes: BTreeMap<String, Index<K>>,
}

struct Index<K> {
    values: IndexFn<K>,
    keys: BTreeMap<String, Keys>,
}

/// Some keys. Most owners have one child of a kind, and a set of one takes ten times the memory of the one.
enum Keys {
    One(ObjectKey),
    Many(BTreeSet<ObjectKey>),
}

impl<K> Default for Links<K> {
    fn default() -> Self {
        Self { by_owner: BTreeMap::new(), indexes: BTreeMap::new() }
    }
}

impl<K: AnyObject> Links<K> {
    pub(super) fn add_index<'a>(
        &mut self,
        name: &str,
        values: IndexFn<K>,
        objects: impl Iterator<Item = (&'a ObjectKey, Arc<K>)>,
    ) {
        let mut keys = BTreeMap::new();
        for (key, object) in objects {
            for value in values_of(&values, name, &object) {
                enter(&mut keys, value, key);
            }
        }
        self.indexes.insert(name.to_owned(), Index { values, keys });
    }

    pub(super) fn has_indexes(&self) -> bool {
        !self.indexes.is_empty()
    }

    pub(super) fn owned_by(&self, owner_uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.by_owner.get(owner_uid).into_iter().flat_map(Keys::iter)
    }

    /// The keys with this value of an index; `None` if there is no such index.
    pub(super) fn indexed(&self, index: &str, value: &str) -> Option<impl Iterator<Item = &ObjectKey>> {
        Some(self.indexes.get(index)?.keys.get(value).into_iter().flat_map(Keys::iter))
    }

    /// Enters an object. It is opened if there is an index.
    pub(super) fn link(
        &mut self,
        key: &ObjectKey,
        owner: Option<&Arc<str>>,
        object: impl FnOnce() -> Arc<K>,
    ) {
        if let Some(owner) = owner {
            enter(&mut self.by_owner, owner.clone(), key);
        }
        if self.has_indexes() {
            let object = object();
            for (name, index) in &mut self.indexes {
                for value in values_of(&index.values, name, &object) {
                    enter(&mut index.keys, value, key);
                }
            }
        }
    }

    /// Takes an object out again.
    pub(super) fn unlink(&mut self, key: &ObjectKey, owner: Option<&str>, object: impl FnOnce() -> Arc<K>) {
        if let Some(owner) = owner {
            drop_from(&mut self.by_owner, owner, key);
        }
        if self.has_indexes() {
            let object = object();
            for (name, index) in &mut self.indexes {
                for value in values_of(&index.values, name, &object) {
                    drop_from(&mut index.keys, &*value, key);
                }
            }
        }
    }
}

/// The values of an object, none after a panic: an index must not end the watch that feeds it.
fn values_of<K>(values: &IndexFn<K>, name: &str, object: &K) -> Vec<String> {
    isolated("an index", name, || values(object)).unwrap_or_default()
}

impl Keys {
    fn iter(&self) -> impl Iterator<Item = &ObjectKey> {
        let (one, many) = match self {
            Self::One(key) => (Some(key), None),
            Self::Many(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn insert(&mut self, key: &ObjectKey) {
        match self {
            Self::One(one) if one == key => {}
            Self::One(one) => *self = Self::Many([one.clone(), key.clone()].into()),
            Self::Many(keys) => {
                keys.insert(key.clone());
            }
        }
    }

    /// Returns whether none is left.
    fn remove(&mut self, key: &ObjectKey) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }
}

fn enter<V: Ord>(keys: &mut BTreeMap<V, Keys>, value: V, key: &ObjectKey) {
    keys.entry(value).and_modify(|keys| keys.insert(key)).or_insert_with(|| Keys::One(key.clone()));
}

fn drop_from<V: Ord + std::borrow::Borrow<Q>, Q: Ord + ?Sized>(
    keys: &mut BTreeMap<V, Keys>,
    value: &Q,
    key: &ObjectKey,
) {
    if keys.get_mut(value).is_some_and(|keys| keys.remove(key)) {
        keys.remove(value);
    }
}
