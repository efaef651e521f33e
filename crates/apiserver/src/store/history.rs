//! The recent changes of one table: what watches resume from, and what the past is rebuilt from.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use super::{
    Compacted, Key, Object,
    announced::{Announcer, Listener},
};

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was created.
    Added,
    /// It was replaced by a new version.
    Modified,
    /// It was removed.
    Deleted,
}

/// One change.
#[derive(Debug, Clone)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The object after the change; for a removal, its last state with the revision of the removal.
    pub object: Arc<Object>,
    /// The version that was replaced or removed.
    pub before: Option<Arc<Object>>,
}

/// So many changes keep what watchers have made of them. Watchers that keep up read it within moments; who lags further
/// behind makes its own.
const SHARED: usize = 256;

/// The largest object for which it is kept: [`SHARED`] of them are a few megabytes.
const SHARED_BYTES: usize = 64 * 1024;

/// A change in the history, with what the first watcher has made of it for all of them.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) event: Event,
    shared: OnceLock<Bytes>,
}

impl Entry {
    /// What `make` makes of the change, once for all watchers.
    pub(super) fn shared(&self, make: impl FnOnce(&Event) -> Bytes) -> Bytes {
        let make = || make(&self.event);
        if self.size() > SHARED_BYTES { make() } else { self.shared.get_or_init(make).clone() }
    }

    /// What keeping the change costs.
    fn size(&self) -> usize {
        self.event.object.bytes.len()
    }
}

/// The last changes of a table in order.
#[derive(Debug)]
pub(super) struct History {
    entries: VecDeque<Arc<Entry>>,
    capacity: usize,
    /// How long the objects of all entries are together.
    bytes: usize,
    /// Changes at or before this revision are forgotten.
    forgotten: u64,
    latest: u64,
    changed: Announcer,
}

impl History {
    /// The history of a table that is first seen at `revision`, in a store that knows nothing of the
    /// changes up to `forgotten`.
    pub(super) fn new(revision: u64, capacity: usize, forgotten: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            capacity: capacity.max(1),
            bytes: 0,
            forgotten,
            latest: revision,
            changed: Announcer::default(),
        }
    }

    /// Adds a change. Watchers see it when it is announced.
    pub(super) fn push(&mut self, event: Event) {
        self.latest = event.object.revision;
        if self.entries.len() == self.capacity {
            self.forget_oldest();
        }
        let entry = Entry { event, shared: OnceLock::new() };
        self.bytes += entry.size();
        self.entries.push_back(Arc::new(entry));
        self.drop_shared();
    }

    /// Forgets the oldest change. Who has not read it yet is too late.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(oldest) = self.entries.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.size());
            self.forgotten = oldest.event.object.revision;
        }
    }

    /// How long the objects of all changes are together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same, counted anew.
    pub(super) fn recount(&mut self) -> usize {
        self.bytes = self.entries.iter().map(|entry| entry.size()).sum();
        self.bytes
    }

    /// Gives back what every watcher should have read: it takes as much memory as the objects.
    fn drop_shared(&mut self) {
        let Some(at) = self.entries.len().checked_sub(SHARED + 1) else { return };
        let entry = &mut self.entries[at];
        if entry.shared.get().is_some() {
            *entry = Arc::new(Entry { event: entry.event.clone(), shared: OnceLock::new() });
        }
    }

    /// Forgets the changes after `revision`: they never happened.
    pub(super) fn give_up(&mut self, revision: u64) {
        while let Some(entry) = self.entries.pop_back_if(|entry| entry.event.object.revision > revision) {
            self.bytes = self.bytes.saturating_sub(entry.size());
        }
        // If there were more of them than the history holds, everything before them is forgotten and nothing else.
        self.forgotten = self.forgotten.min(revision);
        self.latest = self.entries.back().map_or(revision, |entry| entry.event.object.revision);
    }

    /// Wakes the watchers.
    pub(super) fn announce(&self) {
        self.changed.announce();
    }

    /// The revision of the last change, or of the table's beginning.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// Tells of every later change.
    pub(super) fn subscribe(&self) -> Listener {
        self.changed.subscribe()
    }

    /// At most `limit` changes after `revision` and up to `visible`, or an error if some are forgotten.
    pub(super) fn after(
        &self,
        revision: u64,
        visible: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, Compacted> {
        self.check(revision)?;
        let start = self.entries.partition_point(|entry| entry.event.object.revision <= revision);
        let seen = self.entries.range(start..).take_while(|entry| entry.event.object.revision <= visible);
        Ok(seen.take(limit).cloned().collect())
    }

    /// The objects as they were at `revision`, by undoing the changes since.
    pub(super) fn rewind(
        &self,
        now: &BTreeMap<Key, Arc<Object>>,
        revision: u64,
    ) -> Result<BTreeMap<Key, Arc<Object>>, Compacted> {
        self.check(revision)?;
        let mut objects = now.clone();
        for entry in self.entries.iter().rev() {
            let event = &entry.event;
            if event.object.revision <= revision {
                break;
            }
            match &event.before {
                Some(before) => objects.insert(before.key.clone(), Arc::clone(before)),
                None => objects.remove(&event.object.key),
            };
        }
        Ok(objects)
    }

    fn check(&self, revision: u64) -> Result<(), Compacted> {
        if revision < self.forgotten {
            return Err(Compacted { requested: revision, oldest: self.forgotten });
        }
        Ok(())
    }
}
