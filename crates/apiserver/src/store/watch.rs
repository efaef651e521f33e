//! Watches: cursors into a table's history.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Compacted, Object, Snapshot, Store, Table, TableName,
    announced::Listener,
    history::{Entry, Event},
    select,
};

/// How many changes one poll of a watch takes out of the history.
const BATCH: usize = 128;

/// How many bytes of objects it takes, but always one change: who is slow to read holds on to them, and they may have
/// left the history by then.
const BATCH_BYTES: usize = 256 * 1024;

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the objects that exist, then every change.
    Snapshot,
    /// With the changes after this revision.
    After(u64),
}

/// Why a watch could not begin or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The history no longer reaches back to the revision.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The revision has not happened yet.
    #[error("revision {requested} is in the future, the present is {current}")]
    Future {
        /// What was asked for.
        requested: u64,
        /// The store's revision.
        current: u64,
    },
}

/// A cursor over the changes of one table.
#[derive(Debug)]
pub struct Watch {
    store: Arc<Store>,
    table: TableName,
    position: u64,
    changed: Listener,
    initial: Option<Snapshot>,
}

/// One change as a watcher gets it.
#[derive(Debug, Clone)]
pub struct WatchEvent(Arc<Entry>);

impl WatchEvent {
    /// The change.
    pub fn event(&self) -> &Event {
        &self.0.event
    }

    /// What `make` makes of the change. Watchers share it: the same must come out, whoever of them is first.
    pub fn shared(&self, make: impl FnOnce(&Event) -> Bytes) -> Bytes {
        self.0.shared(make)
    }
}

pub(super) fn open(store: &Arc<Store>, name: &TableName, start: Start) -> Result<Watch, WatchError> {
    let mut state = store.write();
    let current = state.revision;
    // The table must exist, because its history is what wakes the watcher.
    let table = state.table(name);
    let (position, initial) = match start {
        Start::Snapshot => {
            let objects = select(&table.objects, None);
            (current, Some(Snapshot { revision: current, objects }))
        }
        Start::After(revision) if revision > current => {
            return Err(WatchError::Future { requested: revision, current });
        }
        Start::After(revision) => {
            table.history.after(revision, revision, 0)?;
            (revision, None)
        }
    };
    let changed = table.history.subscribe();
    Ok(Watch { store: Arc::clone(store), table: name.clone(), position, changed, initial })
}

impl Watch {
    /// The objects that existed when the watch began, once.
    pub fn take_initial(&mut self) -> Option<Snapshot> {
        self.initial.take()
    }

    /// Every change up to this revision has been handed out.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Waits for the next changes. Never returns an empty list.
    pub async fn next(&mut self) -> Result<Vec<WatchEvent>, Compacted> {
        loop {
            let changes = self.poll()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            self.changed.changed().await;
        }
    }

    /// The changes that are there already, possibly none. Moves the cursor to the present if it got all.
    pub fn poll(&mut self) -> Result<Vec<WatchEvent>, Compacted> {
        self.changed.see();
        // Before the state: what is visible now is in the history then.
        let visible = self.store.visible();
        let state = self.store.read();
        let Some(table): Option<&Table> = state.tables.get(&self.table) else { return Ok(Vec::new()) };
        let mut entries = table.history.after(self.position, visible, BATCH)?;
        let found = entries.len();
        entries.truncate(within(&entries));
        self.position = match entries.last() {
            Some(last) if found == BATCH || entries.len() < found => last.event.object.revision,
            _ => self.position.max(state.revision.min(visible)),
        };
        Ok(entries.into_iter().map(WatchEvent).collect())
    }
}

/// How many of the entries are taken at once.
fn within(entries: &[Arc<Entry>]) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&Arc<Entry>| {
        bytes += entry.event.object.bytes.len();
        bytes <= BATCH_BYTES
    };
    entries.iter().take_while(fits).count().max(1)
}

impl Watch {
    /// Whether an object that the watch began with is in `namespace` (or any, if `None`).
    pub fn in_namespace(object: &Object, namespace: Option<&str>) -> bool {
        namespace.is_none_or(|namespace| &*object.key.namespace == namespace)
    }
}
