//! The objects of one kind and scope: the rules by which watch events and own writes meet.
//!
//! Enters: objects from the watch (one list, then events) and objects that our own writes returned. Leaves: a
//! [`Change`] for whatever became news. Nothing here waits or sends.
//!
//! # Guarantees
//!
//! - An object is never replaced by an older one, whichever way that one arrives.
//! - An own write that the watch has already passed is not put back: what the watch said since then stands.
//! - A deletion of one uid never removes a newer object of the same name.
//! - An object that cannot be read changes nothing: the last readable copy stays until there is another one, or
//!   until the object is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Fresh;
use crate::{
    apply::FieldSet,
    object::{AnyObject, ObjectKey, uid, version, version_of},
    owner,
};

/// What happened to one object, as far as this process can know.
#[derive(Clone, Debug)]
pub struct Change<K> {
    /// The object's key.
    pub key: ObjectKey,
    /// What was known before; `None` if the object is new.
    pub old: Option<Arc<K>>,
    /// What is known now; `None` if the object is gone.
    pub new: Option<Arc<K>>,
    /// Whether this is part of the list at startup rather than a live event.
    pub initial: bool,
}

#[derive(Debug)]
pub(crate) struct Entry<K> {
    pub(crate) object: Arc<K>,
    /// The fields that our field manager owns; `None` if it owns none.
    pub(crate) fields: Option<Arc<FieldSet>>,
    version: u64,
    /// Put here by an own write that the watch has not delivered yet.
    unconfirmed: bool,
}

/// What became of an object that an own write returned.
#[derive(Debug)]
pub(crate) enum Written<K> {
    /// It is the newest copy now.
    News(Change<K>),
    /// A copy at least as new was known.
    Known(Arc<K>),
    /// The watch has shown since that the object is gone.
    Gone(K),
}

/// Derives index values from an object.
pub(crate) type IndexFn<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// Changes an object before it is cached.
pub(crate) type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

pub(crate) struct Objects<K> {
    field_manager: Arc<str>,
    transform: Option<Transform<K>>,
    entries: BTreeMap<ObjectKey, Entry<K>>,
    by_owner: BTreeMap<String, BTreeSet<ObjectKey>>,
    indexes: BTreeMap<String, Index<K>>,
    /// Field sets are few and alike: one allocation serves all children of one shape.
    field_sets: BTreeSet<Arc<FieldSet>>,
    /// Objects that exist and cannot be read, by uid, so that each is reported once.
    unreadable: BTreeMap<ObjectKey, String>,
    /// Uids that we deleted and the watch may still show, with the part and the list during which that happened.
    tombstones: BTreeMap<String, (usize, u64)>,
    parts: Vec<Part<K>>,
}

/// What one of the watches that feed the store has delivered.
struct Part<K> {
    namespace: Option<String>,
    /// Everything up to this version has been delivered.
    watched: u64,
    /// Set while a list is under way.
    listing: Option<Listing<K>>,
    lists: u64,
}

struct Listing<K> {
    objects: Vec<Prepared<K>>,
    unreadable: BTreeSet<ObjectKey>,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self { objects: Vec::new(), unreadable: BTreeSet::new() }
    }
}

/// An object in the form in which it is kept.
struct Prepared<K> {
    object: K,
    fields: Option<Arc<FieldSet>>,
}

struct Index<K> {
    values: IndexFn<K>,
    keys: BTreeMap<String, BTreeSet<ObjectKey>>,
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("keys", &self.entries.keys()).finish_non_exhaustive()
    }
}

impl<K: AnyObject> Objects<K> {
    pub(crate) fn new(
        field_manager: Arc<str>,
        parts: &[Option<String>],
        transform: Option<Transform<K>>,
    ) -> Self {
        let part = |namespace: &Option<String>| Part {
            namespace: namespace.clone(),
            watched: 0,
            listing: None,
            lists: 0,
        };
        Self {
            field_manager,
            transform,
            entries: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            indexes: BTreeMap::new(),
            field_sets: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            parts: parts.iter().map(part).collect(),
        }
    }

    pub(crate) fn add_index(&mut self, name: &str, values: IndexFn<K>) {
        let mut keys: BTreeMap<String, BTreeSet<ObjectKey>> = BTreeMap::new();
        for (key, entry) in &self.entries {
            for value in values(&entry.object) {
                keys.entry(value).or_default().insert(key.clone());
            }
        }
        self.indexes.insert(name.to_owned(), Index { values, keys });
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Entry<K>> {
        self.entries.get(key)
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.entries
            .iter()
            .filter(|(key, _)| namespace.is_none() || key.namespace() == namespace)
            .map(|(_, entry)| entry.object.clone())
            .collect()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.entries.keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn unreadable(&self) -> usize {
        self.unreadable.len()
    }

    /// Some objects, evenly spread, and how many there are.
    pub(crate) fn sample(&self) -> (Vec<Arc<K>>, usize) {
        const SAMPLE: usize = 64;
        let every = self.entries.len().div_ceil(SAMPLE).max(1);
        (self.entries.values().step_by(every).map(|entry| entry.object.clone()).collect(), self.entries.len())
    }

    /// The objects whose controller owner has this uid.
    pub(crate) fn owned_by(&self, owner_uid: &str) -> Vec<Arc<K>> {
        self.objects(self.by_owner.get(owner_uid))
    }

    /// The objects with this index value; `None` if there is no such index.
    pub(crate) fn indexed(&self, index: &str, value: &str) -> Option<Vec<Arc<K>>> {
        Some(self.objects(self.indexes.get(index)?.keys.get(value)))
    }

    fn objects(&self, keys: Option<&BTreeSet<ObjectKey>>) -> Vec<Arc<K>> {
        keys.into_iter()
            .flatten()
            .filter_map(|key| self.entries.get(key))
            .map(|entry| entry.object.clone())
            .collect()
    }

    /// The part of the store that an object belongs to; the first one, should none watch its namespace.
    fn part(&self, key: &ObjectKey) -> usize {
        let of = |part: &Part<K>| part.namespace.is_none() || part.namespace.as_deref() == key.namespace();
        self.parts.iter().position(of).unwrap_or(0)
    }

    fn delivered(&mut self, key: &ObjectKey, version: u64) {
        let part = self.part(key);
        let watched = &mut self.parts[part].watched;
        *watched = version.max(*watched);
    }

    /// The watch has come this far.
    pub(crate) fn watched(&mut self, part: usize, version: u64) {
        let watched = &mut self.parts[part].watched;
        *watched = version.max(*watched);
    }

    /// The watch delivered an addition or a modification.
    pub(crate) fn watch_applied(&mut self, object: impl Into<Fresh<K>>) -> Option<Change<K>> {
        let fresh = object.into();
        let key = ObjectKey::of(&fresh.object);
        self.delivered(&key, version(&fresh.object));
        self.unreadable.remove(&key);
        let prepared = self.prepare(fresh);
        self.put(prepared, false)
    }

    /// The watch delivered an addition or a modification of which nothing but this has been read yet. Returns
    /// whether that is all there is to know: the object is here in this version or a later one.
    pub(crate) fn watch_known(&mut self, key: &ObjectKey, version: u64) -> bool {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| version != 0 && entry.version >= version)
        else {
            return false;
        };
        if entry.version == version {
            entry.unconfirmed = false;
        }
        self.delivered(key, version);
        self.unreadable.remove(key);
        true
    }

    /// The watch delivered a deletion.
    pub(crate) fn watch_deleted(&mut self, object: &ObjectMeta) -> Option<Change<K>> {
        let key = ObjectKey::of_meta(object);
        let deleted_at = version_of(object);
        let deleted = object.uid.as_deref().unwrap_or_default();
        self.delivered(&key, deleted_at);
        self.tombstones.remove(deleted);
        self.unreadable.remove(&key);
        let entry = self.entries.get(&key)?;
        // A newer object of the same name, which an own write put here.
        if entry.version > deleted_at && uid(&*entry.object) != deleted {
            return None;
        }
        self.remove(&key)
    }

    /// The watch delivered an object that cannot be read. Returns whether that is news.
    pub(crate) fn watch_unreadable(&mut self, object: &ObjectMeta) -> bool {
        let key = ObjectKey::of_meta(object);
        self.delivered(&key, version_of(object));
        self.mark_unreadable(key, object)
    }

    fn mark_unreadable(&mut self, key: ObjectKey, object: &ObjectMeta) -> bool {
        let uid = object.uid.clone().unwrap_or_default();
        self.unreadable.insert(key, uid.clone()).is_none_or(|known| known != uid)
    }

    /// A list begins: what it does not hold will be gone when it ends.
    pub(crate) fn list_started(&mut self, part: usize) {
        let part = &mut self.parts[part];
        part.lists += 1;
        part.listing = Some(Listing::default());
    }

    /// The list holds an object. What is not kept of it is dropped now, not when the list ends.
    pub(crate) fn listed(&mut self, part: usize, object: impl Into<Fresh<K>>) {
        let prepared = self.prepare(object.into());
        self.parts[part].listing.get_or_insert_default().objects.push(prepared);
    }

    /// The list holds an object that cannot be read. Returns whether that is news.
    pub(crate) fn listed_unreadable(&mut self, part: usize, object: &ObjectMeta) -> bool {
        let key = ObjectKey::of_meta(object);
        self.parts[part].listing.get_or_insert_default().unreadable.insert(key.clone());
        self.mark_unreadable(key, object)
    }

    /// The list of version `at` is complete. Returns what changed, and the own writes newer than the list: it
    /// alone cannot tell whether those are gone or younger.
    pub(crate) fn list_finished(
        &mut self,
        part: usize,
        initial: bool,
        at: u64,
    ) -> (Vec<Change<K>>, Vec<(ObjectKey, u64)>) {
        let Listing { objects: listed, unreadable } = self.parts[part].listing.take().unwrap_or_default();
        let newest = listed.iter().map(|one| version(&one.object)).max().unwrap_or(0).max(at);
        let keys: BTreeSet<ObjectKey> = listed.iter().map(|one| ObjectKey::of(&one.object)).collect();
        self.watched(part, newest);
        let mut changes: Vec<_> = listed.into_iter().filter_map(|one| self.put(one, initial)).collect();
        let mut doubtful = Vec::new();
        let mut gone = Vec::new();
        for (key, entry) in &self.entries {
            if self.part(key) == part && !keys.contains(key) && !unreadable.contains(key) {
                if entry.unconfirmed && entry.version > newest {
                    doubtful.push((key.clone(), entry.version));
                } else {
                    gone.push(key.clone());
                }
            }
        }
        changes.extend(gone.iter().filter_map(|key| self.remove(key)));
        self.forget_unreadable(part, |key| unreadable.contains(key));
        // What was deleted before this list began is not in it, and no event will speak of it again.
        let current = self.parts[part].lists;
        self.tombstones.retain(|_, (of, list)| *of != part || *list >= current);
        (changes, doubtful)
    }

    fn forget_unreadable(&mut self, part: usize, keep: impl Fn(&ObjectKey) -> bool) {
        let forgotten: Vec<ObjectKey> =
            self.unreadable.keys().filter(|key| self.part(key) == part && !keep(key)).cloned().collect();
        for key in forgotten {
            self.unreadable.remove(&key);
        }
    }

    /// The kind is not served any more, and none of its objects exists.
    pub(crate) fn vanished(&mut self, part: usize) -> Vec<Change<K>> {
        let gone: Vec<ObjectKey> =
            self.entries.keys().filter(|key| self.part(key) == part).cloned().collect();
        self.forget_unreadable(part, |_| false);
        self.tombstones.retain(|_, (of, _)| *of != part);
        gone.iter().filter_map(|key| self.remove(key)).collect()
    }

    /// An own write returned `object`.
    pub(crate) fn written(&mut self, object: impl Into<Fresh<K>>) -> Written<K> {
        let fresh = object.into();
        let (key, at) = (ObjectKey::of(&fresh.object), version(&fresh.object));
        if let Some(entry) = self.entries.get(&key).filter(|entry| entry.version >= at) {
            return Written::Known(entry.object.clone());
        }
        // The watch has passed this version: what it delivered is at least as new, even if that was a deletion.
        if at > self.parts[self.part(&key)].watched && !self.tombstones.contains_key(uid(&fresh.object)) {
            let prepared = self.prepare(fresh);
            let change = self.replace(prepared, false);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.unconfirmed = true;
            }
            return Written::News(change);
        }
        Written::Gone(fresh.object)
    }

    /// An own request removed the object with this uid.
    pub(crate) fn deleted(&mut self, key: &ObjectKey, deleted_uid: &str) -> Option<Change<K>> {
        if uid(&*self.entries.get(key)?.object) != deleted_uid {
            return None;
        }
        let part = self.part(key);
        self.tombstones.insert(deleted_uid.to_owned(), (part, self.parts[part].lists));
        self.remove(key)
    }

    /// A doubtful own write proved to be gone.
    pub(crate) fn absent(&mut self, key: &ObjectKey, seen: u64) -> Option<Change<K>> {
        if self.entries.get(key)?.version != seen {
            return None;
        }
        self.remove(key)
    }

    /// Brings an object into the form in which it is kept.
    fn prepare(&mut self, fresh: Fresh<K>) -> Prepared<K> {
        let fields = self.intern(fresh.fields(&self.field_manager));
        let mut object = fresh.object;
        if let Some(transform) = &self.transform {
            transform(&mut object);
        }
        Prepared { object, fields }
    }

    fn put(&mut self, prepared: Prepared<K>, initial: bool) -> Option<Change<K>> {
        let object = &prepared.object;
        if self.tombstones.contains_key(uid(object)) {
            return None;
        }
        let version = version(object);
        if let Some(entry) = self.entries.get_mut(&ObjectKey::of(object))
            && version != 0
            && version <= entry.version
        {
            if version == entry.version {
                entry.unconfirmed = false;
            }
            return None;
        }
        Some(self.replace(prepared, initial))
    }

    fn replace(&mut self, prepared: Prepared<K>, initial: bool) -> Change<K> {
        let Prepared { object, fields } = prepared;
        let (key, version) = (ObjectKey::of(&object), version(&object));
        let object = Arc::new(object);
        let old = self.unlink(&key);
        self.link(&key, &object);
        self.entries
            .insert(key.clone(), Entry { object: object.clone(), fields, version, unconfirmed: false });
        Change { key, old, new: Some(object), initial }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Change<K>> {
        let old = self.unlink(key)?;
        Some(Change { key: key.clone(), old: Some(old), new: None, initial: false })
    }

    /// Enters `object` into the indexes.
    fn link(&mut self, key: &ObjectKey, object: &K) {
        if let Some(owner) = owner::controller_of(object.meta()) {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        for index in self.indexes.values_mut() {
            for value in (index.values)(object) {
                index.keys.entry(value).or_default().insert(key.clone());
            }
        }
    }

    /// Takes an entry out of the store and the indexes.
    fn unlink(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let entry = self.entries.remove(key)?;
        if let Some(owner) = owner::controller_of(entry.object.meta()) {
            drop_from(&mut self.by_owner, &owner.uid, key);
        }
        for index in self.indexes.values_mut() {
            for value in (index.values)(&entry.object) {
                drop_from(&mut index.keys, &value, key);
            }
        }
        Some(entry.object)
    }

    fn intern(&mut self, fields: Option<FieldSet>) -> Option<Arc<FieldSet>> {
        let fields = fields?;
        if let Some(known) = self.field_sets.get(&fields) {
            return Some(known.clone());
        }
        // Sets that no object uses any more are forgotten when new ones come.
        if self.field_sets.len() >= 1024 {
            self.field_sets.retain(|set| Arc::strong_count(set) > 1);
        }
        let fields = Arc::new(fields);
        self.field_sets.insert(fields.clone());
        Some(fields)
    }
}

fn drop_from(index: &mut BTreeMap<String, BTreeSet<ObjectKey>>, value: &str, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(value) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(value);
        }
    }
}
