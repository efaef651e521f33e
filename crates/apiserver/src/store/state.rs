//! The tables of a store and the one revision that orders all their changes, under one lock.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Change, Event, Key, Object, TableName, WriteError,
    disk::{Pending, Record, Seal},
    history::History,
};

/// How long the objects in the histories of all tables may be together. The table that has most of it gives way, so
/// that one large object that changes often does not shorten the histories of the others.
const HISTORY_BYTES: usize = 128 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct State {
    /// That of the last change.
    pub(super) revision: u64,
    /// That of the next change: one more, or further on, where changes were given up. No two changes of a process have
    /// the same revision, also if the disk took neither.
    pub(super) next: u64,
    pub(super) tables: BTreeMap<TableName, Table>,
    /// How many changes each table keeps.
    pub(super) history: usize,
    /// How long the objects of these changes may be, and how long they are.
    pub(super) history_bytes: usize,
    pub(super) kept: usize,
    /// Nothing is known of the changes up to this revision.
    pub(super) forgotten: u64,
    /// How the disk has objects.
    pub(super) seal: Seal,
    /// Whether it has some in another way.
    pub(super) stale: bool,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    pub(super) history: History,
}

impl State {
    pub(super) fn new(history: usize) -> Self {
        let (tables, history_bytes) = (BTreeMap::new(), HISTORY_BYTES);
        Self {
            revision: 1,
            next: 2,
            tables,
            history,
            history_bytes,
            kept: 0,
            forgotten: 0,
            seal: Seal::Never,
            stale: false,
        }
    }

    pub(super) fn table(&mut self, name: &TableName) -> &mut Table {
        let Self { revision, history, forgotten, .. } = *self;
        self.tables.entry(name.clone()).or_insert_with(|| Table {
            objects: BTreeMap::new(),
            history: History::new(revision, history, forgotten),
        })
    }

    /// Makes a change that has been checked, and moves the revision to it. Returns what was there before.
    pub(super) fn apply(
        &mut self,
        name: &TableName,
        change: Change,
        object: Arc<Object>,
    ) -> Option<Arc<Object>> {
        self.revision = object.revision;
        self.next = object.revision + 1;
        let table = self.table(name);
        let before = match change {
            Change::Deleted => table.objects.remove(&object.key),
            Change::Added | Change::Modified => table.objects.insert(object.key.clone(), Arc::clone(&object)),
        };
        let known = table.history.bytes();
        table.history.push(Event { change, object, before: before.clone() });
        let now = table.history.bytes();
        self.kept = self.kept + now - known;
        self.shorten();
        before
    }

    /// Forgets the oldest changes of the largest history until all of them are within bounds.
    fn shorten(&mut self) {
        while self.kept > self.history_bytes
            && let Some(table) = self.tables.values_mut().max_by_key(|table| table.history.bytes())
        {
            let known = table.history.bytes();
            table.history.forget_oldest();
            let forgotten = known - table.history.bytes();
            self.kept = self.kept.saturating_sub(forgotten);
            if forgotten == 0 {
                // There is nothing left to forget: whoever took changes out of a history did not say so.
                self.kept = self.tables.values_mut().map(|table| table.history.recount()).sum();
                break;
            }
        }
    }

    /// Undoes changes that the disk did not take, the last ones, down to `revision`.
    pub(super) fn give_up(&mut self, changes: impl DoubleEndedIterator<Item = Pending>, revision: u64) {
        for Pending { record, before } in changes.rev() {
            let table = self.table(&record.table);
            match before {
                Some(before) => table.objects.insert(before.key.clone(), before),
                None => table.objects.remove(&record.object.key),
            };
            let known = table.history.bytes();
            table.history.give_up(revision);
            let given_up = known - table.history.bytes();
            self.kept = self.kept.saturating_sub(given_up);
        }
        self.revision = revision;
    }

    /// Wakes the watchers of the tables.
    pub(super) fn announce<'a>(&self, tables: impl IntoIterator<Item = &'a TableName>) {
        let mut last = None;
        // Changes come in runs of one table; waking it once a run is enough.
        for name in tables.into_iter().filter(|name| last.replace(*name) != Some(*name)) {
            if let Some(table) = self.tables.get(name) {
                table.history.announce();
            }
        }
    }

    /// Begins with the state of a checkpoint.
    pub(super) fn begin_at(&mut self, revision: u64) {
        self.revision = revision;
        self.next = revision + 1;
        self.forgotten = revision;
    }

    /// Takes in an object of the checkpoint, without history.
    pub(super) fn restore(&mut self, record: Record) {
        let objects = &mut self.table(&record.table).objects;
        objects.insert(record.object.key.clone(), record.object);
    }

    /// Makes a change of the log again.
    pub(super) fn replay(&mut self, record: Record) {
        self.apply(&record.table, record.change, record.object);
    }
}

impl Table {
    pub(super) fn check(&self, key: &Key, read: u64) -> Result<(), WriteError> {
        let object = self.objects.get(key).ok_or(WriteError::Missing)?;
        if object.revision != read {
            return Err(WriteError::Moved(object.revision));
        }
        Ok(())
    }
}

pub(super) fn select(objects: &BTreeMap<Key, Arc<Object>>, namespace: Option<&str>) -> Vec<Arc<Object>> {
    match namespace {
        None => objects.values().cloned().collect(),
        Some(namespace) => objects
            .range(Key::new(namespace, "")..)
            .take_while(|(key, _)| &*key.namespace == namespace)
            .map(|(_, object)| Arc::clone(object))
            .collect(),
    }
}
