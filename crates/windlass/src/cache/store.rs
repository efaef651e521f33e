//! The objects of one kind and scope: the rules by which watch events and own writes meet.
//!
//! Enters: objects from the watch (one list, then events) and objects that our own writes returned. Leaves:
//! [`News`], which become a [`Change`] each when they are told. Nothing here waits or sends.
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

use super::{
    Fresh,
    kept::Kept,
    links::{IndexFn, Links},
};
use crate::{
    apply::{FieldManager, FieldSet, Fields, Ownership},
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

/// A change that nobody has been told of yet: a long list of them takes no more memory than the store.
#[derive(Debug)]
pub(super) struct News<K> {
    pub(super) key: ObjectKey,
    old: Option<Kept<K>>,
    pub(super) new: Option<Kept<K>>,
    initial: bool,
}

impl<K: AnyObject> News<K> {
    pub(super) fn open(&self, transform: Option<&Transform<K>>) -> Change<K> {
        let open = |kept: &Option<Kept<K>>| kept.as_ref().map(|kept| kept.open(transform));
        Change { key: self.key.clone(), old: open(&self.old), new: open(&self.new), initial: self.initial }
    }
}

#[derive(Debug)]
pub(super) struct Entry<K> {
    pub(super) kept: Kept<K>,
    pub(super) ownership: Ownership,
    version: u64,
    /// The uid of the owner to whom it belongs.
    pub(super) owner: Option<Arc<str>>,
    /// Put here by an own write that the watch has not delivered yet.
    unconfirmed: bool,
}

/// What became of an object that an own write returned.
#[derive(Debug)]
pub(super) enum Written<K> {
    /// It is the newest copy now.
    News(News<K>),
    /// A copy at least as new was known.
    Known(Kept<K>),
    /// The watch has shown since that the object is gone.
    Gone(K),
}

/// Changes an object before it is cached.
pub(crate) type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

pub(super) struct Objects<K> {
    field_manager: Arc<FieldManager>,
    transform: Option<Transform<K>>,
    /// Whether objects are kept as text where there is one.
    as_text: bool,
    entries: BTreeMap<ObjectKey, Entry<K>>,
    links: Links<K>,
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

/// An object in the form in which it is kept, and what must be known of it to enter it.
struct Prepared<K> {
    key: ObjectKey,
    uid: String,
    version: u64,
    owner: Option<Arc<str>>,
    kept: Kept<K>,
    ownership: Ownership,
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("keys", &self.entries.keys()).finish_non_exhaustive()
    }
}

impl<K: AnyObject> Objects<K> {
    pub(super) fn new(
        field_manager: Arc<FieldManager>,
        parts: &[Option<String>],
        transform: Option<Transform<K>>,
        as_text: bool,
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
            as_text,
            entries: BTreeMap::new(),
            links: Links::default(),
            field_sets: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            parts: parts.iter().map(part).collect(),
        }
    }

    /// Indexes look at all objects, and so does whoever reads by them.
    pub(super) fn add_index(&mut self, name: &str, values: IndexFn<K>) {
        self.keep_typed();
        let transform = self.transform.as_ref();
        let objects = self.entries.iter().map(|(key, entry)| (key, entry.kept.open(transform)));
        self.links.add_index(name, values, objects);
    }

    pub(super) fn is_kept_as_text(&self) -> bool {
        self.as_text
    }

    /// From now on all objects are kept as typed values.
    pub(super) fn keep_typed(&mut self) {
        if std::mem::take(&mut self.as_text) {
            for entry in self.entries.values_mut() {
                entry.kept = Kept::Typed(entry.kept.open(self.transform.as_ref()));
            }
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Entry<K>> {
        self.entries.get(key)
    }

    pub(super) fn list(&self, namespace: Option<&str>) -> Vec<Kept<K>> {
        self.entries
            .iter()
            .filter(|(key, _)| namespace.is_none() || key.namespace() == namespace)
            .map(|(_, entry)| entry.kept.clone())
            .collect()
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.entries.keys().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn unreadable(&self) -> usize {
        self.unreadable.len()
    }

    /// Some objects, evenly spread, and how many there are.
    pub(super) fn sample(&self) -> (Vec<Kept<K>>, usize) {
        const SAMPLE: usize = 64;
        let every = self.entries.len().div_ceil(SAMPLE).max(1);
        (self.entries.values().step_by(every).map(|entry| entry.kept.clone()).collect(), self.entries.len())
    }

    /// The objects whose controller owner has this uid.
    pub(super) fn owned_by(&self, owner_uid: &str) -> Vec<Kept<K>> {
        self.kept(self.links.owned_by(owner_uid))
    }

    pub(super) fn keys_owned_by(&self, owner_uid: &str) -> Vec<ObjectKey> {
        self.links.owned_by(owner_uid).cloned().collect()
    }

    /// The objects with this index value; `None` if there is no such index.
    pub(super) fn indexed(&self, index: &str, value: &str) -> Option<Vec<Kept<K>>> {
        Some(self.kept(self.links.indexed(index, value)?))
    }

    fn kept<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) -> Vec<Kept<K>> {
        keys.filter_map(|key| self.entries.get(key)).map(|entry| entry.kept.clone()).collect()
    }

    fn open(&self, entry: &Entry<K>) -> Arc<K> {
        entry.kept.open(self.transform.as_ref())
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
    pub(super) fn watched(&mut self, part: usize, version: u64) {
        let watched = &mut self.parts[part].watched;
        *watched = version.max(*watched);
    }

    /// The watch delivered an addition or a modification.
    pub(super) fn watch_applied(&mut self, object: impl Into<Fresh<K>>) -> Option<News<K>> {
        let fresh = object.into();
        let key = ObjectKey::of(&fresh.object);
        self.delivered(&key, version(&fresh.object));
        self.unreadable.remove(&key);
        let (prepared, object) = self.prepare(fresh);
        self.put(prepared, Kept::Typed(object), false)
    }

    /// The watch delivered an addition or a modification of which nothing but this has been read yet. Returns
    /// whether that is all there is to know: the object is here in this version or a later one.
    pub(super) fn watch_known(&mut self, key: &ObjectKey, version: u64) -> bool {
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
    pub(super) fn watch_deleted(&mut self, object: &ObjectMeta) -> Option<News<K>> {
        let key = ObjectKey::of_meta(object);
        let deleted_at = version_of(object);
        let deleted = object.uid.as_deref().unwrap_or_default();
        self.delivered(&key, deleted_at);
        self.tombstones.remove(deleted);
        self.unreadable.remove(&key);
        let entry = self.entries.get(&key)?;
        // A newer object of the same name, which an own write put here.
        if entry.version > deleted_at && uid(&*self.open(entry)) != deleted {
            return None;
        }
        self.remove(&key)
    }

    /// The watch delivered an object that cannot be read. Returns whether that is news.
    pub(super) fn watch_unreadable(&mut self, object: &ObjectMeta) -> bool {
        let key = ObjectKey::of_meta(object);
        self.delivered(&key, version_of(object));
        self.mark_unreadable(key, object)
    }

    fn mark_unreadable(&mut self, key: ObjectKey, object: &ObjectMeta) -> bool {
        let uid = object.uid.clone().unwrap_or_default();
        self.unreadable.insert(key, uid.clone()).is_none_or(|known| known != uid)
    }

    /// A list begins: what it does not hold will be gone when it ends.
    pub(super) fn list_started(&mut self, part: usize) {
        let part = &mut self.parts[part];
        part.lists += 1;
        part.listing = Some(Listing::default());
    }

    /// The list holds an object. What is not kept of it is dropped now, not when the list ends.
    pub(super) fn listed(&mut self, part: usize, object: impl Into<Fresh<K>>) {
        let (prepared, _) = self.prepare(object.into());
        self.parts[part].listing.get_or_insert_default().objects.push(prepared);
    }

    /// The list holds an object that cannot be read. Returns whether that is news.
    pub(super) fn listed_unreadable(&mut self, part: usize, object: &ObjectMeta) -> bool {
        let key = ObjectKey::of_meta(object);
        self.parts[part].listing.get_or_insert_default().unreadable.insert(key.clone());
        self.mark_unreadable(key, object)
    }

    /// The list of version `at` is complete. Returns what changed, and the own writes newer than the list: it
    /// alone cannot tell whether those are gone or younger.
    pub(super) fn list_finished(
        &mut self,
        part: usize,
        initial: bool,
        at: u64,
    ) -> (Vec<News<K>>, Vec<(ObjectKey, u64)>) {
        let Listing { objects: listed, unreadable } = self.parts[part].listing.take().unwrap_or_default();
        let newest = listed.iter().map(|one| one.version).max().unwrap_or(0).max(at);
        let keys: BTreeSet<ObjectKey> = listed.iter().map(|one| one.key.clone()).collect();
        self.watched(part, newest);
        let put = |one: Prepared<K>| {
            let kept = one.kept.clone();
            self.put(one, kept, initial)
        };
        let mut changes: Vec<_> = listed.into_iter().filter_map(put).collect();
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
    pub(super) fn vanished(&mut self, part: usize) -> Vec<News<K>> {
        let gone: Vec<ObjectKey> =
            self.entries.keys().filter(|key| self.part(key) == part).cloned().collect();
        self.forget_unreadable(part, |_| false);
        self.tombstones.retain(|_, (of, _)| *of != part);
        gone.iter().filter_map(|key| self.remove(key)).collect()
    }

    /// An own write returned `object`.
    pub(super) fn written(&mut self, object: impl Into<Fresh<K>>) -> Written<K> {
        let fresh = object.into();
        let (key, at) = (ObjectKey::of(&fresh.object), version(&fresh.object));
        if let Some(entry) = self.entries.get(&key).filter(|entry| entry.version >= at) {
            return Written::Known(entry.kept.clone());
        }
        // The watch has passed this version: what it delivered is at least as new, even if that was a deletion.
        if at > self.parts[self.part(&key)].watched && !self.tombstones.contains_key(uid(&fresh.object)) {
            let (prepared, object) = self.prepare(fresh);
            let change = self.replace(prepared, Kept::Typed(object), false);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.unconfirmed = true;
            }
            return Written::News(change);
        }
        Written::Gone(fresh.object)
    }

    /// An own request removed the object with this uid.
    pub(super) fn deleted(&mut self, key: &ObjectKey, deleted_uid: &str) -> Option<News<K>> {
        if uid(&*self.open(self.entries.get(key)?)) != deleted_uid {
            return None;
        }
        let part = self.part(key);
        self.tombstones.insert(deleted_uid.to_owned(), (part, self.parts[part].lists));
        self.remove(key)
    }

    /// A doubtful own write proved to be gone.
    pub(super) fn absent(&mut self, key: &ObjectKey, seen: u64) -> Option<News<K>> {
        if self.entries.get(key)?.version != seen {
            return None;
        }
        self.remove(key)
    }

    /// Brings an object into the form in which it is kept. Returns the typed value beside it.
    fn prepare(&mut self, fresh: Fresh<K>) -> (Prepared<K>, Arc<K>) {
        let Fields { main, status, inherits } = fresh.fields(&self.field_manager);
        // Before the transform, which may leave it out.
        let digest = self.field_manager.digest_of(fresh.object.meta());
        let ownership =
            Ownership { fields: self.intern(main), status: self.intern(status), digest, inherits };
        let Fresh { mut object, text, .. } = fresh;
        if let Some(transform) = &self.transform {
            transform(&mut object);
        }
        let object = Arc::new(object);
        let kept = match text {
            Some(text) if self.as_text => Kept::Text(text.into()),
            _ => Kept::Typed(object.clone()),
        };
        let prepared = Prepared {
            key: ObjectKey::of(&*object),
            uid: uid(&*object).to_owned(),
            version: version(&*object),
            owner: owner::owner_uid(object.meta()).map(Into::into),
            kept,
            ownership,
        };
        (prepared, object)
    }

    fn put(&mut self, prepared: Prepared<K>, shown: Kept<K>, initial: bool) -> Option<News<K>> {
        if self.tombstones.contains_key(&prepared.uid) {
            return None;
        }
        let version = prepared.version;
        if let Some(entry) = self.entries.get_mut(&prepared.key)
            && version != 0
            && version <= entry.version
        {
            if version == entry.version {
                entry.unconfirmed = false;
            }
            return None;
        }
        Some(self.replace(prepared, shown, initial))
    }

    /// Enters an object, which is told of in the form `shown`.
    fn replace(&mut self, prepared: Prepared<K>, shown: Kept<K>, initial: bool) -> News<K> {
        let Prepared { key, version, owner, kept, ownership, .. } = prepared;
        let old = self.unlink(&key);
        let transform = self.transform.as_ref();
        self.links.link(&key, owner.as_ref(), || shown.open(transform));
        self.entries.insert(key.clone(), Entry { kept, ownership, version, owner, unconfirmed: false });
        News { key, old, new: Some(shown), initial }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<News<K>> {
        let old = self.unlink(key)?;
        Some(News { key: key.clone(), old: Some(old), new: None, initial: false })
    }

    /// Takes an entry out of the store and the indexes.
    fn unlink(&mut self, key: &ObjectKey) -> Option<Kept<K>> {
        let entry = self.entries.remove(key)?;
        let transform = self.transform.as_ref();
        self.links.unlink(key, entry.owner.as_deref(), || entry.kept.open(transform));
        Some(entry.kept)
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
