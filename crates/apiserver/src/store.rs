//! The store: every object once, as encoded bytes, under one global revision.
//!
//! What enters is a [`Draft`] (an encoded object with a hole where its revision goes) and the revision
//! that the writer read; what leaves are [`Object`]s, consistent [`Snapshot`]s and [`Watch`] cursors.
//! The store knows keys, labels and bytes, and nothing of kinds, schemas or HTTP.
//!
//! # Guarantees
//!
//! - Revisions are global, start at 1 and only grow; every committed write has a revision of its own.
//! - GET, LIST and every watcher share the same bytes: an object is encoded once.
//! - A watcher is a cursor into the history of its table. It holds no queue of its own, so a slow one
//!   never blocks a writer and never costs memory: when the history has moved past it, it is told that
//!   its revision is gone.
//! - A history is bounded by the number of its changes and by the length of their objects.
//! - With a data directory every write is on the disk before a watcher or, through [`Store::durable`], an
//!   answer tells of it.

mod announced;
mod disk;
mod draft;
mod history;
mod state;
mod watch;

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bytes::Bytes;
use serde::de::IgnoredAny;

pub use self::{
    disk::{
        BackupError, Copied, DiskError, DiskFailed, DiskOptions, Encryption, EncryptionError, backup, restore,
    },
    draft::{Draft, Fields, Labels},
    history::{Change, Event},
    watch::{Start, Watch, WatchError, WatchEvent},
};
use self::{
    disk::{Files, Log, Pending, Record, Seal},
    state::{State, Table, select},
};
use crate::data_directory::DataDirectory;

/// How many changes of one table can be resumed from. A watch or a paged list older than that starts anew.
const HISTORY: usize = 4096;

/// Names one table: the group and the plural name of a resource; all versions of it share the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The API group, empty for the core group.
    pub group: Arc<str>,
    /// The plural resource name.
    pub plural: Arc<str>,
}

/// The place of an object inside its table. Cluster-scoped objects have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace, or empty.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// One stored version of an object.
#[derive(Debug)]
pub struct Object {
    /// Where it lives.
    pub key: Key,
    /// The revision that this version was written at.
    pub revision: u64,
    /// Its labels, parsed, for selectors.
    pub labels: Labels,
    /// The fields of its kind that field selectors may name, parsed.
    pub fields: Fields,
    /// The whole object as JSON, its revision included.
    pub bytes: Bytes,
    untyped: usize,
}

impl Object {
    /// The object's JSON after its opening brace, kind and version: with a brace before it, an item of a
    /// typed list.
    pub fn untyped(&self) -> Bytes {
        self.bytes.slice(self.untyped..)
    }

    /// The JSON of the object's metadata, which a [`Draft`] writes right after kind and version.
    pub fn metadata(&self) -> Bytes {
        let begin = self.untyped + draft::METADATA.len();
        let mut values = serde_json::Deserializer::from_slice(&self.bytes[begin..]).into_iter::<IgnoredAny>();
        values.next();
        self.bytes.slice(begin..begin + values.byte_offset())
    }
}

/// All objects of a table, or of one namespace in it, as they were at one revision.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The revision.
    pub revision: u64,
    /// The objects in key order.
    pub objects: Vec<Arc<Object>>,
}

/// A new version of an object that is committed together with another write, or not at all.
#[derive(Debug, Clone)]
pub struct Other {
    /// Its table.
    pub table: TableName,
    /// Its place.
    pub key: Key,
    /// The revision at which it was read.
    pub read: u64,
    /// What it becomes.
    pub draft: Draft,
}

/// Why a write did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A create met an object of the same name.
    #[error("the object exists already")]
    Exists,
    /// The object that the write was based on is gone.
    #[error("the object does not exist")]
    Missing,
    /// The object is longer than the writer may make it.
    #[error("the object is too large")]
    TooLarge,
    /// Somebody else wrote since the object was read.
    #[error("the object is at revision {0} now")]
    Moved(u64),
    /// The disk does not take it.
    #[error(transparent)]
    Disk(#[from] DiskFailed),
}

/// Why a snapshot of the past could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("revision {requested} is no longer in the history, which begins at {oldest}")]
pub struct Compacted {
    /// What was asked for.
    pub requested: u64,
    /// The oldest revision that can still be had.
    pub oldest: u64,
}

/// The tables and the one revision that orders all their changes.
#[derive(Debug)]
pub struct Store {
    state: Arc<RwLock<State>>,
    log: Option<Log>,
}

impl Default for Store {
    fn default() -> Self {
        Self::with_history(HISTORY)
    }
}

impl Store {
    /// An empty store that keeps the last `history` changes of each table.
    pub fn with_history(history: usize) -> Self {
        Self { state: Arc::new(RwLock::new(State::new(history))), log: None }
    }

    /// An empty store whose histories hold at most so many bytes of objects.
    #[cfg(test)]
    fn with_history_bytes(bytes: usize) -> Self {
        let state = State { history_bytes: bytes, ..State::new(HISTORY) };
        Self { state: Arc::new(RwLock::new(state)), log: None }
    }

    /// The store of a data directory: everything that was ever acknowledged there, and nothing else lost.
    pub fn open(directory: &DataDirectory, options: DiskOptions) -> Result<Self, DiskError> {
        Self::open_encrypted(directory, options, None)
    }

    /// The same, where the disk has objects as an encryption configuration says.
    pub fn open_encrypted(
        directory: &DataDirectory,
        options: DiskOptions,
        encryption: Option<Arc<Encryption>>,
    ) -> Result<Self, DiskError> {
        let folder = directory.subdirectory("store")?;
        if let Some(keys) = directory.keys()?
            && disk::System.list(&folder).is_ok_and(|files| !files.iter().any(|file| disk::is_kept(file)))
        {
            return Err(DiskError::NoLog { store: folder, keys });
        }
        let seal = encryption.map_or(Seal::Never, Seal::With);
        Self::open_sealed(Arc::new(disk::System), folder, Some(directory.clone()), options, seal)
    }

    /// The store of a folder of any file system.
    #[cfg(test)]
    fn open_on(
        files: Arc<dyn Files>,
        folder: PathBuf,
        directory: Option<DataDirectory>,
        options: DiskOptions,
    ) -> Result<Self, DiskError> {
        Self::open_sealed(files, folder, directory, options, Seal::Never)
    }

    fn open_sealed(
        files: Arc<dyn Files>,
        folder: PathBuf,
        directory: Option<DataDirectory>,
        options: DiskOptions,
        seal: Seal,
    ) -> Result<Self, DiskError> {
        let mut state = State { seal, ..State::new(options.history) };
        let tail = disk::recover(&*files, &folder, &mut state)?;
        let state = Arc::new(RwLock::new(state));
        let log = Log::start(directory, files, folder, tail, Arc::clone(&state), options)?;
        Ok(Self { state, log: Some(log) })
    }

    /// Waits until every write up to `revision` is on the disk. At once for a store in memory.
    ///
    /// On a failure the write of that revision is undone: nobody sees it from then on. Only a restart before the next
    /// write that succeeds may bring it back.
    pub async fn durable(&self, revision: u64) -> Result<(), DiskFailed> {
        match &self.log {
            Some(log) => log.wait(revision).await,
            None => Ok(()),
        }
    }

    /// Whether writes go to a disk.
    pub fn is_durable(&self) -> bool {
        self.log.is_some()
    }

    /// How often the disk failed so that writes had to be undone which a reader may have seen.
    pub fn losses(&self) -> u64 {
        self.log.as_ref().map_or(0, Log::losses)
    }

    /// What is wrong with the disk, if it does not take every write.
    pub fn check_disk(&self) -> Result<(), DiskFailed> {
        self.log.as_ref().and_then(Log::failure).map_or(Ok(()), Err)
    }

    /// The last revision that watchers may hear of.
    fn visible(&self) -> u64 {
        self.log.as_ref().map_or(u64::MAX, Log::durable)
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// The object at `key`, if there is one.
    pub fn get(&self, table: &TableName, key: &Key) -> Option<Arc<Object>> {
        self.read().tables.get(table)?.objects.get(key).cloned()
    }

    /// How many objects the table holds.
    pub fn count(&self, table: &TableName) -> usize {
        self.read().tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// The revision of the table's last change; 0 if it has none.
    pub fn table_revision(&self, table: &TableName) -> u64 {
        self.read().tables.get(table).map_or(0, |table| table.history.latest())
    }

    /// All objects of the table, or of one namespace of it, now.
    pub fn snapshot(&self, table: &TableName, namespace: Option<&str>) -> Snapshot {
        let state = self.read();
        let objects =
            state.tables.get(table).map_or_else(Vec::new, |table| select(&table.objects, namespace));
        Snapshot { revision: state.revision, objects }
    }

    /// The same, as it was at `revision`.
    pub fn snapshot_at(
        &self,
        table: &TableName,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Snapshot, Compacted> {
        let state = self.read();
        let Some(table) = state.tables.get(table) else {
            return Ok(Snapshot { revision, objects: Vec::new() });
        };
        let objects = select(&table.history.rewind(&table.objects, revision)?, namespace);
        Ok(Snapshot { revision, objects })
    }

    /// Creates an object. Its key must be free.
    pub fn create(&self, table: &TableName, key: Key, draft: Draft) -> Result<Arc<Object>, WriteError> {
        self.create_with(Vec::new(), table, key, draft)
    }

    /// Replaces the version that was read at revision `read`.
    pub fn update(
        &self,
        table: &TableName,
        key: &Key,
        read: u64,
        draft: Draft,
    ) -> Result<Arc<Object>, WriteError> {
        self.update_with(Vec::new(), table, key, read, draft)
    }

    /// Creates an object and changes others with it. [`WriteError::Moved`] is about one of the others.
    pub fn create_with(
        &self,
        others: Vec<Other>,
        table: &TableName,
        key: Key,
        draft: Draft,
    ) -> Result<Arc<Object>, WriteError> {
        let mut state = self.write();
        if state.table(table).objects.contains_key(&key) {
            return Err(WriteError::Exists);
        }
        self.admit(draft.is_deleting())?;
        self.commit_others(&mut state, others)?;
        Ok(self.commit(&mut state, table, Change::Added, key, draft))
    }

    /// Replaces the version that was read at revision `read`, and changes others with it.
    pub fn update_with(
        &self,
        others: Vec<Other>,
        table: &TableName,
        key: &Key,
        read: u64,
        draft: Draft,
    ) -> Result<Arc<Object>, WriteError> {
        let mut state = self.write();
        state.table(table).check(key, read)?;
        self.admit(draft.is_deleting())?;
        self.commit_others(&mut state, others)?;
        Ok(self.commit(&mut state, table, Change::Modified, key.clone(), draft))
    }

    /// Changes all of them, or none if one of them has moved.
    fn commit_others(&self, state: &mut State, others: Vec<Other>) -> Result<(), WriteError> {
        for other in &others {
            let moved = state.table(&other.table).check(&other.key, other.read);
            moved.map_err(|_| WriteError::Moved(other.read))?;
        }
        for other in others {
            self.commit(state, &other.table, Change::Modified, other.key, other.draft);
        }
        Ok(())
    }

    /// Removes the version that was read at revision `read`. `last` is the object as watchers will see it
    /// a last time; it carries the revision of its removal.
    pub fn delete(
        &self,
        table: &TableName,
        key: &Key,
        read: u64,
        last: Draft,
    ) -> Result<Arc<Object>, WriteError> {
        let mut state = self.write();
        state.table(table).check(key, read)?;
        self.admit(true)?;
        Ok(self.commit(&mut state, table, Change::Deleted, key.clone(), last))
    }

    /// Refuses what the disk would not take. With the lock held, so that it is still true at the commit.
    ///
    /// On a full disk objects can go, and for that one may have to change: a finalizer is taken off, a Pod reports its end.
    fn admit(&self, frees: bool) -> Result<(), WriteError> {
        match &self.log {
            Some(log) => Ok(log.admit(frees)?),
            None => Ok(()),
        }
    }

    fn commit(
        &self,
        state: &mut State,
        table: &TableName,
        change: Change,
        key: Key,
        draft: Draft,
    ) -> Arc<Object> {
        let object = Arc::new(draft.at(key, state.next));
        let before = state.apply(table, change, Arc::clone(&object));
        match &self.log {
            Some(log) => {
                let record = Record { table: table.clone(), change, object: Arc::clone(&object) };
                log.append(Pending { record, before });
            }
            None => state.announce([table]),
        }
        object
    }

    /// A cursor over the changes of a table.
    pub fn watch(self: &Arc<Self>, table: &TableName, start: Start) -> Result<Watch, WatchError> {
        watch::open(self, table, start)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic while the lock was held can only have happened before the first change of a write
        // (encoding a draft); the state is whole, so poison is no reason to stop serving.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
