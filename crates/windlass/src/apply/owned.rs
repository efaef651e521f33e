//! The kinds that a controller owns, and who wants which of their names.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use super::OwnedKind;
use crate::{
    cache::Stores,
    object::{AnyObject, Kind, ObjectKey},
};

/// The kinds that a controller owns, and which of their names are wanted by whom. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Owned {
    kinds: Arc<RwLock<Vec<Arc<dyn OwnedKind>>>>,
    wanted: Arc<Mutex<BTreeSet<(Kind, ObjectKey, ObjectKey)>>>,
}

impl Owned {
    /// Every scope in which a kind is owned, in the order of the declarations.
    pub(crate) fn of(&self, kind: &Kind) -> Vec<Arc<dyn OwnedKind>> {
        self.all().into_iter().filter(|owned| owned.kind() == kind).collect()
    }

    /// The stores in which objects of a kind are owned as `K`; `None` if there are none.
    pub(crate) fn stores<K: AnyObject>(&self, kind: &Kind) -> Option<Stores<K>> {
        let owned = self.of(kind);
        Stores::new(owned.iter().filter_map(|owned| owned.store().downcast().ok()).collect())
    }

    pub(crate) fn all(&self) -> Vec<Arc<dyn OwnedKind>> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that an object wants these children: whatever has one of their names is looked at for its sake.
    pub(crate) fn want(&self, children: &[(Kind, ObjectKey)], owner: &ObjectKey) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.extend(children.iter().map(|(kind, key)| (kind.clone(), key.clone(), owner.clone())));
    }

    /// The child is there: its own references tell whose it is.
    pub(crate) fn has(&self, kind: &Kind, key: &ObjectKey, owner: &ObjectKey) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.remove(&(kind.clone(), key.clone(), owner.clone()));
    }

    /// Who wants to have an object of this name and has not got it.
    pub(crate) fn wanting(&self, kind: &Kind, key: &ObjectKey) -> Vec<ObjectKey> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let first = (kind.clone(), key.clone(), ObjectKey::cluster(""));
        let same = |(of, name, _): &&(Kind, ObjectKey, ObjectKey)| of == kind && name == key;
        wanted.range(first..).take_while(same).map(|(_, _, owner)| owner.clone()).collect()
    }

    pub(crate) fn push(&self, kind: Arc<dyn OwnedKind>) {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).push(kind);
    }

    pub(crate) fn remove(&self, kind: &Arc<dyn OwnedKind>) {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).retain(|owned| !Arc::ptr_eq(owned, kind));
    }
}
