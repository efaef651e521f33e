//! Lists: what a complete one says of the objects that are here.
//!
//! A list is the newest state that the server has, so it is believed. Two things may be newer than it: an own write that
//! was made while it arrived, which stays, and what was known before the server's data was restored from a backup,
//! which does not.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{AnyChange, Arrived, Entry, Listing, Objects, Prepared, Sight, hash};
use crate::object::{ObjectKey, version_of};

/// What a complete list has changed.
#[derive(Debug)]
pub(in crate::cache) struct Listed {
    pub(in crate::cache) changes: Vec<AnyChange>,
    /// Own writes newer than the list, with their versions. It alone cannot tell whether those are younger, gone, or
    /// from before a restore.
    pub(in crate::cache) doubtful: Vec<(ObjectKey, u64)>,
    /// Whether the server has gone back in time.
    pub(in crate::cache) restored: bool,
}

impl Objects {
    /// A list begins: what it does not hold will be gone when it ends.
    pub(in crate::cache) fn list_started(&mut self, part: usize) {
        let part = &mut self.parts[part];
        part.lists += 1;
        part.listing = Some(Listing::default());
    }

    /// The list holds an object. What is not kept of it is dropped now, not when the list ends.
    pub(in crate::cache) fn listed(&mut self, part: usize, object: impl Into<Arrived>) {
        let (prepared, _) = self.prepare(object.into());
        self.parts[part].listing.get_or_insert_default().objects.push(prepared);
    }

    /// The list holds an object that cannot be read. Returns whether that is news.
    pub(in crate::cache) fn listed_unreadable(&mut self, part: usize, object: &ObjectMeta) -> bool {
        let key = ObjectKey::of_meta(object);
        self.parts[part].listing.get_or_insert_default().unreadable.insert(key.clone());
        self.mark_unreadable(key, object)
    }

    /// The list of version `at` is complete.
    pub(in crate::cache) fn list_finished(&mut self, part: usize, initial: bool, at: u64) -> Listed {
        let Listing { objects: listed, unreadable } = self.parts[part].listing.take().unwrap_or_default();
        let newest = listed.iter().map(|one| one.version).max().unwrap_or(0).max(at);
        let keys: BTreeSet<ObjectKey> = listed.iter().map(|one| one.key.clone()).collect();
        let restored = at != 0 && self.is_ahead_of(part, newest, &listed);
        self.begin_anew(part, newest, restored);
        let mut outcome = Listed { changes: Vec::new(), doubtful: Vec::new(), restored };
        for one in listed {
            self.enter_listed(one, initial, &mut outcome);
        }
        let mut gone = Vec::new();
        for (key, entry) in &self.entries {
            if self.part(key) == part && !keys.contains(key) && !unreadable.contains(key) {
                // Where only the server can tell what is in the scope, its watch goes on from this list and brings
                // back what is.
                if entry.unconfirmed && entry.version > newest && !restored && !self.lens.unknown {
                    outcome.doubtful.push((key.clone(), entry.version));
                } else {
                    gone.push(key.clone());
                }
            }
        }
        outcome.changes.extend(gone.iter().filter_map(|key| self.remove(key)));
        self.forget_unreadable(part, |key| unreadable.contains(key));
        outcome
    }

    /// Whether something is known that the list ought to have and has not. Own writes of a later version are not
    /// part of it.
    fn is_ahead_of(&self, part: usize, newest: u64, listed: &[Prepared]) -> bool {
        let younger = |entry: &Entry| entry.unconfirmed && entry.version > newest;
        let ahead = |key: &ObjectKey, entry: &Entry| {
            entry.version > newest && !younger(entry) && self.part(key) == part
        };
        let outdated = |one: &Prepared| {
            let entry = self.entries.get(&one.key);
            entry.is_some_and(|entry| entry.version > one.version && !younger(entry))
        };
        self.parts[part].watched > newest
            || listed.iter().any(outdated)
            || self.entries.iter().any(|(key, entry)| ahead(key, entry))
    }

    /// From here on the watch tells what happens after the list.
    fn begin_anew(&mut self, part: usize, newest: u64, restored: bool) {
        let current = self.parts[part].lists;
        let watched = &mut self.parts[part].watched;
        *watched = if restored { newest } else { newest.max(*watched) };
        // What was deleted before this list began is not in it, and no event will speak of it again; if it is in it,
        // it exists again.
        self.tombstones.retain(|_, (of, list)| *of != part || (*list >= current && !restored));
        let mut left = std::mem::take(&mut self.left);
        left.retain(|key, at| self.part(key) != part || (*at > newest && !restored));
        self.left = left;
    }

    fn enter_listed(&mut self, one: Prepared, initial: bool, outcome: &mut Listed) {
        let here = self.entries.get(&one.key).map(|entry| entry.version);
        if let Some(known) = here.max(self.left.get(&one.key).copied())
            && !outcome.restored
            && one.version != 0
            && one.version < known
        {
            // An own write that is younger than the list: everything else shows that the server was restored.
            outcome.doubtful.push((one.key, known));
            return;
        }
        let kept = one.kept.clone();
        let replaced = self.entries.get(&one.key).is_some_and(|entry| entry.uid != one.uid_hash);
        let change = if outcome.restored || replaced {
            (!self.tombstones.contains_key(&one.uid)).then(|| self.replace(one, kept, initial))
        } else {
            self.put(one, kept, initial)
        };
        outcome.changes.extend(change);
    }

    /// What the server has of a doubtful own write: its metadata, or nothing. Returns what changed by that, and
    /// whether the server has gone back in time.
    pub(in crate::cache) fn resolve(
        &mut self,
        key: &ObjectKey,
        seen: u64,
        found: Option<&ObjectMeta>,
    ) -> (Option<AnyChange>, bool) {
        let found = found.filter(|meta| self.lens.sight(meta) != Sight::Unseen);
        if found.is_none() && self.left.get(key) == Some(&seen) {
            self.left.remove(key);
        }
        let same = |entry: &Entry| {
            found.is_some_and(|meta| hash(meta.uid.as_deref().unwrap_or_default()) == entry.uid)
        };
        match self.entries.get(key) {
            // Another write has been entered since.
            Some(entry) if entry.version != seen => (None, false),
            _ if found.is_some_and(|meta| version_of(meta) < seen) => (None, true),
            Some(entry) if !same(entry) => (self.remove(key), false),
            _ => (None, false),
        }
    }

    /// A doubtful own write proved to be from before a restore: the next list is to be believed in everything.
    pub(in crate::cache) fn distrust(&mut self, part: usize) {
        let mut left = std::mem::take(&mut self.left);
        left.retain(|key, _| self.part(key) != part);
        self.left = left;
        let keys: Vec<ObjectKey> =
            self.entries.keys().filter(|key| self.part(key) == part).cloned().collect();
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.unconfirmed = false;
            }
        }
    }
}
