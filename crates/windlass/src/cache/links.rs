//! Which objects belong together: those of one controlling owner, and those with one value of an index.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, BTreeSet},
    marker::PhantomData,
    sync::Arc,
};

use super::kept::Held;
use crate::{isolation::isolated, object::ObjectKey};

/// Derives index values from an object.
type IndexFn = Arc<dyn Fn(&dyn Any) -> Vec<String> + Send + Sync>;

/// A named function by whose values objects are found.
pub(crate) struct Index<K> {
    pub(super) of_any: AnyIndex,
    kind: PhantomData<fn(&K)>,
}

/// An index of whichever kind.
#[derive(Clone)]
pub(super) struct AnyIndex {
    name: String,
    values: IndexFn,
    /// Which function it is, if that can be told: of one that holds values, there may be several.
    function: Option<TypeId>,
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { of_any: self.of_any.clone(), kind: PhantomData }
    }
}

impl<K: 'static> Index<K> {
    pub(crate) fn new<F: Fn(&K) -> Vec<String> + Send + Sync + 'static>(name: String, values: F) -> Self {
        let function = (size_of::<F>() == 0).then(TypeId::of::<F>);
        let values: IndexFn =
            Arc::new(move |object| object.downcast_ref::<K>().map_or_else(Vec::new, &values));
        Self { of_any: AnyIndex { name, values, function }, kind: PhantomData }
    }

    pub(crate) fn name(&self) -> &str {
        &self.of_any.name
    }
}

impl AnyIndex {
    /// The values of an object, none after a panic: an index must not end the watch that feeds it.
    fn values_of(&self, object: &dyn Held) -> Vec<String> {
        isolated("an index", &self.name, || (self.values)(object.as_any())).unwrap_or_default()
    }

    fn is(&self, other: &Self) -> bool {
        self.function.is_some() && self.function == other.function
    }
}

#[derive(Default)]
pub(super) struct Links {
    by_owner: BTreeMap<Arc<str>, Keys>,
    indexes: BTreeMap<String, Entered>,
}

/// An index and what it holds.
struct Entered {
    index: AnyIndex,
    keys: BTreeMap<String, Keys>,
}

/// Some keys. Most owners have one child of a kind, and a set of one takes ten times the memory of the one.
enum Keys {
    One(ObjectKey),
    Many(BTreeSet<ObjectKey>),
}

impl Links {
    /// Returns whether the name was free, or is that of the very same index: several controllers may share one.
    pub(super) fn add_index<'a>(
        &mut self,
        index: &AnyIndex,
        objects: impl Iterator<Item = (&'a ObjectKey, Arc<dyn Held>)>,
    ) -> bool {
        if let Some(known) = self.indexes.get(&index.name) {
            return known.index.is(index);
        }
        let mut keys = BTreeMap::new();
        for (key, object) in objects {
            for value in index.values_of(&*object) {
                enter(&mut keys, value, key);
            }
        }
        self.indexes.insert(index.name.clone(), Entered { index: index.clone(), keys });
        true
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
        object: impl FnOnce() -> Arc<dyn Held>,
    ) {
        if let Some(owner) = owner {
            enter(&mut self.by_owner, owner.clone(), key);
        }
        if self.has_indexes() {
            let object = object();
            for Entered { index, keys } in self.indexes.values_mut() {
                for value in index.values_of(&*object) {
                    enter(keys, value, key);
                }
            }
        }
    }

    /// Takes an object out again.
    pub(super) fn unlink(
        &mut self,
        key: &ObjectKey,
        owner: Option<&str>,
        object: impl FnOnce() -> Arc<dyn Held>,
    ) {
        if let Some(owner) = owner {
            drop_from(&mut self.by_owner, owner, key);
        }
        if self.has_indexes() {
            let object = object();
            for Entered { index, keys } in self.indexes.values_mut() {
                for value in index.values_of(&*object) {
                    drop_from(keys, &*value, key);
                }
            }
        }
    }
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
