//! The objects of one kind and scope: the rules by which watch events and own writes meet.
//!
//! Enters: objects from the watch (one list, then events) and objects that our own writes returned. Leaves:
//! [`AnyChange`], which become a [`Change`] each when they are told. Nothing here waits or sends.
//!
//! # Guarantees
//!
//! - An object is never replaced by an older one, whichever way that one arrives.
//! - An own write that the watch has already passed is not put back: what the watch said since then stands.
//! - A deletion of one uid never removes a newer object of the same name.
//! - An own write that the watch would not deliver is not kept: nothing would ever refresh it.
//! - A complete list is believed, also one that is older than what is here: then the server's data was restored.
//! - An object that cannot be read changes nothing: the last readable copy stays until there is another one, or
//!   until the object is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{
    arrived::Arrived,
    interned::Interned,
    kept::{Held, Kept, Of, Typing},
    links::{AnyIndex, Index, Links},
    scope::{Lens, Scope, Sight},
};
use crate::{
    object::{AnyObject, ObjectKey, version_of},
    owner,
    wire::{FieldManager, Fields, Ownership},
};

mod lists;

pub(super) use lists::Listed;

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
pub(super) struct AnyChange {
    pub(super) key: ObjectKey,
    old: Option<Kept>,
    pub(super) new: Option<Kept>,
    initial: bool,
}

impl AnyChange {
    pub(super) fn open<K: AnyObject>(&self, transform: Option<&Transform<K>>) -> Change<K> {
        let open = |kept: &Option<Kept>| kept.as_ref().map(|kept| kept.open(transform));
        Change { key: self.key.clone(), old: open(&self.old), new: open(&self.new), initial: self.initial }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kept: Kept,
    pub(super) ownership: Ownership,
    version: u64,
    /// The hash of its uid: a kept text need not be read to compare it.
    uid: u64,
    /// The uid of the owner to whom it belongs.
    pub(super) owner: Option<Arc<str>>,
    /// Put here by an own write that the watch has not delivered yet.
    unconfirmed: bool,
}

/// What became of an object that an own write returned.
#[derive(Debug)]
pub(super) enum Written {
    /// It is the newest copy now.
    Changed(AnyChange),
    /// A copy at least as new was known.
    Known(Kept),
    /// The watch has shown since that the object is gone, or would not show the object at all.
    NotKept(Box<dyn Held>),
    /// The watch will show that the object is not part of the scope any more.
    Left(AnyChange, Box<dyn Held>),
}

/// Changes an object before it is cached.
pub(crate) type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

pub(super) struct Objects {
    field_manager: Arc<FieldManager>,
    typing: Arc<dyn Typing>,
    /// Whether objects are kept as text where there is one.
    as_text: bool,
    entries: BTreeMap<ObjectKey, Entry>,
    links: Links,
    field_sets: Interned,
    /// What the watch delivers.
    lens: Lens,
    /// Objects that exist and cannot be read, by uid, so that each is reported once.
    unreadable: BTreeMap<ObjectKey, String>,
    /// Uids that we deleted and the watch may still show, with the part and the list during which that happened.
    tombstones: BTreeMap<String, (usize, u64)>,
    /// Objects that an own write took out of the scope, with its version: the watch may still show older copies.
    left: BTreeMap<ObjectKey, u64>,
    parts: Vec<Part>,
}

/// What one of the watches that feed the store has delivered.
struct Part {
    namespace: Option<String>,
    /// Everything up to this version has been delivered.
    watched: u64,
    /// Set while a list is under way.
    listing: Option<Listing>,
    lists: u64,
}

#[derive(Default)]
struct Listing {
    objects: Vec<Prepared>,
    unreadable: BTreeSet<ObjectKey>,
}

/// An object in the form in which it is kept, and what must be known of it to enter it.
struct Prepared {
    key: ObjectKey,
    uid: String,
    uid_hash: u64,
    version: u64,
    owner: Option<Arc<str>>,
    kept: Kept,
    ownership: Ownership,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("keys", &self.entries.keys()).finish_non_exhaustive()
    }
}

impl Objects {
    pub(super) fn new<K: AnyObject>(
        field_manager: Arc<FieldManager>,
        scope: &Scope,
        transform: Option<Transform<K>>,
        as_text: bool,
    ) -> Self {
        Self::of(field_manager, scope, Arc::new(Of(transform)), as_text)
    }

    fn of(field_manager: Arc<FieldManager>, scope: &Scope, typing: Arc<dyn Typing>, as_text: bool) -> Self {
        let part = |namespace: &Option<String>| Part {
            namespace: namespace.clone(),
            watched: 0,
            listing: None,
            lists: 0,
        };
        Self {
            field_manager,
            typing,
            as_text,
            entries: BTreeMap::new(),
            links: Links::default(),
            field_sets: Interned::default(),
            lens: Lens::new(scope),
            unreadable: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            left: BTreeMap::new(),
            parts: scope.parts().iter().map(part).collect(),
        }
    }

    /// Indexes look at all objects, and so does whoever reads by them.
    /// Returns whether the name was free, or is that of the very same index.
    pub(super) fn add_index<K>(&mut self, index: &Index<K>) -> bool {
        self.add_any_index(&index.of_any)
    }

    fn add_any_index(&mut self, index: &AnyIndex) -> bool {
        self.keep_typed();
        let typing = &*self.typing;
        let objects = self.entries.iter().map(|(key, entry)| (key, entry.kept.held(typing)));
        self.links.add_index(index, objects)
    }

    pub(super) fn is_kept_as_text(&self) -> bool {
        self.as_text
    }

    /// From now on all objects are kept as typed values.
    pub(super) fn keep_typed(&mut self) {
        if std::mem::take(&mut self.as_text) {
            for entry in self.entries.values_mut() {
                entry.kept = Kept::Typed(entry.kept.held(&*self.typing));
            }
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(super) fn list(&self, namespace: Option<&str>) -> Vec<Kept> {
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
    pub(super) fn sample(&self) -> (Vec<Kept>, usize) {
        const SAMPLE: usize = 64;
        let every = self.entries.len().div_ceil(SAMPLE).max(1);
        (self.entries.values().step_by(every).map(|entry| entry.kept.clone()).collect(), self.entries.len())
    }

    /// The objects whose controller owner has this uid.
    pub(super) fn owned_by(&self, owner_uid: &str) -> Vec<Kept> {
        self.kept(self.links.owned_by(owner_uid))
    }

    pub(super) fn keys_owned_by(&self, owner_uid: &str) -> Vec<ObjectKey> {
        self.links.owned_by(owner_uid).cloned().collect()
    }

    /// The objects of a namespace, or of all, with this index value; `None` if there is no such index.
    pub(super) fn indexed(&self, index: &str, namespace: Option<&str>, value: &str) -> Option<Vec<Kept>> {
        let keys = self.links.indexed(index, value)?;
        Some(self.kept(keys.filter(|key| namespace.is_none() || key.namespace() == namespace)))
    }

    /// Whether the watch delivers an object with this metadata.
    pub(super) fn sight(&self, meta: &ObjectMeta) -> Sight {
        self.lens.sight(meta)
    }

    fn kept<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) -> Vec<Kept> {
        keys.filter_map(|key| self.entries.get(key)).map(|entry| entry.kept.clone()).collect()
    }

    /// The part of the store that an object belongs to. What no part watches is never entered.
    fn part(&self, key: &ObjectKey) -> usize {
        let of = |part: &Part| part.namespace.is_none() || part.namespace.as_deref() == key.namespace();
        self.parts.iter().position(of).unwrap_or(0)
    }

    fn delivered(&mut self, key: &ObjectKey, version: u64) {
        let part = self.part(key);
        let watched = &mut self.parts[part].watched;
        *watched = version.max(*watched);
        if self.left.get(key).is_some_and(|left| version >= *left) {
            self.left.remove(key);
        }
    }

    /// The watch has come this far.
    pub(super) fn watched(&mut self, part: usize, version: u64) {
        let watched = &mut self.parts[part].watched;
        *watched = version.max(*watched);
    }

    /// The watch delivered an addition or a modification.
    pub(super) fn watch_applied(&mut self, object: impl Into<Arrived>) -> Option<AnyChange> {
        self.applied(object.into())
    }

    fn applied(&mut self, arrived: Arrived) -> Option<AnyChange> {
        let meta = arrived.object.metadata();
        let (key, at) = (ObjectKey::of_meta(meta), version_of(meta));
        self.delivered(&key, at);
        self.unreadable.remove(&key);
        let (prepared, object) = self.prepare(arrived);
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
    pub(super) fn watch_deleted(&mut self, object: &ObjectMeta) -> Option<AnyChange> {
        let key = ObjectKey::of_meta(object);
        let deleted_at = version_of(object);
        let deleted = object.uid.as_deref().unwrap_or_default();
        self.delivered(&key, deleted_at);
        self.tombstones.remove(deleted);
        self.unreadable.remove(&key);
        let entry = self.entries.get(&key)?;
        // A newer object of the same name, which an own write put here.
        if entry.version > deleted_at && entry.uid != hash(deleted) {
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

    fn forget_unreadable(&mut self, part: usize, keep: impl Fn(&ObjectKey) -> bool) {
        let forgotten: Vec<ObjectKey> =
            self.unreadable.keys().filter(|key| self.part(key) == part && !keep(key)).cloned().collect();
        for key in forgotten {
            self.unreadable.remove(&key);
        }
    }

    /// The kind is not served any more, and none of its objects exists.
    pub(super) fn vanished(&mut self, part: usize) -> Vec<AnyChange> {
        let gone: Vec<ObjectKey> =
            self.entries.keys().filter(|key| self.part(key) == part).cloned().collect();
        self.forget_unreadable(part, |_| false);
        self.tombstones.retain(|_, (of, _)| *of != part);
        let mut left = std::mem::take(&mut self.left);
        left.retain(|key, _| self.part(key) != part);
        self.left = left;
        gone.iter().filter_map(|key| self.remove(key)).collect()
    }

    /// An own write returned `object`. `seen`: the server has said that the watch delivers it.
    pub(super) fn written(&mut self, object: impl Into<Arrived>, seen: bool) -> Written {
        self.enter_written(object.into(), seen)
    }

    fn enter_written(&mut self, arrived: Arrived, seen: bool) -> Written {
        let meta = arrived.object.metadata();
        let (key, at) = (ObjectKey::of_meta(meta), version_of(meta));
        if !seen && !self.keeps(&key, meta) {
            return self.move_out_of_scope(&key, at, arrived.object);
        }
        if let Some(entry) = self.entries.get(&key).filter(|entry| entry.version >= at) {
            return Written::Known(entry.kept.clone());
        }
        // The watch has passed this version: what it delivered is at least as new, even if that was a deletion.
        if at > self.parts[self.part(&key)].watched && !self.tombstones.contains_key(uid_of(meta)) {
            self.left.remove(&key);
            let (prepared, object) = self.prepare(arrived);
            let change = self.replace(prepared, Kept::Typed(object), false);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.unconfirmed = true;
            }
            return Written::Changed(change);
        }
        Written::NotKept(arrived.object)
    }

    /// Whether the watch will deliver what an own write returned. Of an object that it has delivered before, it tells
    /// in any case what becomes of it.
    fn keeps(&self, key: &ObjectKey, written: &ObjectMeta) -> bool {
        match self.lens.sight(written) {
            Sight::Seen => true,
            Sight::Unseen => false,
            Sight::Unknown => self.entries.get(key).is_some_and(|entry| entry.uid == hash(uid_of(written))),
        }
    }

    /// An own write returned an object that the watch does not deliver, or not any more.
    fn move_out_of_scope(&mut self, key: &ObjectKey, at: u64, written: Box<dyn Held>) -> Written {
        if self.entries.get(key).is_some_and(|entry| entry.version <= at)
            && let Some(news) = self.remove(key)
        {
            self.left.insert(key.clone(), at);
            return Written::Left(news, written);
        }
        Written::NotKept(written)
    }

    /// An own request removed the object with this uid.
    pub(super) fn deleted(&mut self, key: &ObjectKey, deleted_uid: &str) -> Option<AnyChange> {
        if self.entries.get(key)?.uid != hash(deleted_uid) {
            return None;
        }
        let part = self.part(key);
        self.tombstones.insert(deleted_uid.to_owned(), (part, self.parts[part].lists));
        self.remove(key)
    }

    /// Brings an object into the form in which it is kept. Returns the typed value beside it.
    fn prepare(&mut self, arrived: Arrived) -> (Prepared, Arc<dyn Held>) {
        let Fields { main, status, inherits } = arrived.fields(&self.field_manager);
        // Before the transform, which may leave it out.
        let digest = self.field_manager.digest_of(arrived.object.metadata());
        let mut intern = |set: Option<_>| set.map(|set| self.field_sets.intern(set));
        let ownership = Ownership { fields: intern(main), status: intern(status), digest, inherits };
        let Arrived { object, text, .. } = arrived;
        let object = self.typing.finish(object);
        let kept = match text {
            Some(text) if self.as_text => Kept::Text(text.into()),
            _ => Kept::Typed(object.clone()),
        };
        let meta = object.metadata();
        let prepared = Prepared {
            key: ObjectKey::of_meta(meta),
            uid: uid_of(meta).to_owned(),
            uid_hash: hash(uid_of(meta)),
            version: version_of(meta),
            owner: owner::owner_uid(meta).map(Into::into),
            kept,
            ownership,
        };
        (prepared, object)
    }

    fn put(&mut self, prepared: Prepared, shown: Kept, initial: bool) -> Option<AnyChange> {
        let version = prepared.version;
        let has_left = self.left.get(&prepared.key).is_some_and(|left| version < *left);
        if has_left || self.tombstones.contains_key(&prepared.uid) {
            return None;
        }
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
    fn replace(&mut self, prepared: Prepared, shown: Kept, initial: bool) -> AnyChange {
        let Prepared { key, uid_hash, version, owner, kept, ownership, .. } = prepared;
        let old = self.unlink(&key);
        let typing = &*self.typing;
        self.links.link(&key, owner.as_ref(), || shown.held(typing));
        let entry = Entry { kept, ownership, version, uid: uid_hash, owner, unconfirmed: false };
        self.entries.insert(key.clone(), entry);
        AnyChange { key, old, new: Some(shown), initial }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<AnyChange> {
        let old = self.unlink(key)?;
        Some(AnyChange { key: key.clone(), old: Some(old), new: None, initial: false })
    }

    /// Takes an entry out of the store and the indexes.
    fn unlink(&mut self, key: &ObjectKey) -> Option<Kept> {
        let entry = self.entries.remove(key)?;
        let typing = &*self.typing;
        self.links.unlink(key, entry.owner.as_deref(), || entry.kept.held(typing));
        Some(entry.kept)
    }
}

fn uid_of(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

fn hash(uid: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}
