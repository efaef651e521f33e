//! What is in the cluster, kept up while somebody looks: watches of every kind enter, rows and their changes leave.
//!
//! Nothing is watched and nothing is kept while no page is open. Of an object, a row is kept and not the object.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream};
use serde::Serialize;
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;
use windlass::{
    jiff::Timestamp,
    kube::{
        Client,
        api::{DynamicObject, ListParams, VersionMatch},
        runtime::{WatchStreamExt, watcher},
    },
};

use crate::{
    history,
    kinds::{self, Kind},
    row::Row,
};

/// How many changes a browser may lag behind before it is sent everything anew.
const RECENT: usize = 16_384;
/// How many changes the page tells of.
const TOLD: usize = 500;
/// How long everything is kept when the last page is closed: a page that is loaded anew finds it there.
const GRACE: Duration = Duration::from_secs(5);
/// How often new kinds are looked for, beside the changes of definitions.
const DISCOVER: Duration = Duration::from_secs(30);
/// How long changes of definitions are collected.
const SETTLE: Duration = Duration::from_millis(150);

/// Everything that is known of a cluster.
pub(crate) struct Index {
    client: Client,
    state: Mutex<State>,
    sequence: watch::Sender<u64>,
    definitions: Notify,
    viewers: Mutex<Viewers>,
}

#[derive(Default)]
struct Viewers {
    count: usize,
    stop: Option<CancellationToken>,
}

#[derive(Default)]
struct State {
    /// Only ever longer, so that the index of a kind stays.
    kinds: Vec<Kind>,
    rows: BTreeMap<String, Row>,
    sequence: u64,
    recent: VecDeque<(u64, String)>,
    changes: VecDeque<Change>,
    /// Kinds that cannot be read, and why.
    unreadable: BTreeMap<usize, String>,
    /// Kinds whose first list is complete.
    listed: BTreeSet<usize>,
}

/// Something that happened to an object while the page was open.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    pub(crate) id: u64,
    /// In milliseconds.
    pub(crate) time: i64,
    pub(crate) verb: &'static str,
    pub(crate) writer: Option<String>,
    pub(crate) row: Row,
}

/// What has changed since a sequence number.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Update {
    /// Everything that was known before is void.
    pub(crate) reset: bool,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) put: Vec<Row>,
    pub(crate) del: Vec<String>,
    pub(crate) changes: Vec<Change>,
    pub(crate) unreadable: Vec<(usize, String)>,
    /// Whether all kinds are listed.
    pub(crate) whole: bool,
}

/// A place in the sequence of changes, for one browser.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    sequence: Option<u64>,
    kinds: usize,
    changes: u64,
}

/// Somebody looks. Dropped, it is one fewer.
pub(crate) struct View {
    pub(crate) index: Arc<Index>,
    pub(crate) sequence: watch::Receiver<u64>,
}

impl Index {
    pub(crate) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            state: Mutex::default(),
            sequence: watch::Sender::new(0),
            definitions: Notify::new(),
            viewers: Mutex::default(),
        })
    }

    /// Begins to look; the first to do so starts the watches.
    pub(crate) fn view(self: &Arc<Self>) -> View {
        let mut viewers = self.viewers.lock().unwrap_or_else(PoisonError::into_inner);
        viewers.count += 1;
        if viewers.stop.is_none() {
            let stop = CancellationToken::new();
            viewers.stop = Some(stop.clone());
            let index = self.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = index.clone().follow() => {}
                    () = stop.cancelled() => {}
                }
            });
        }
        View { index: self.clone(), sequence: self.sequence.subscribe() }
    }

    /// Whether somebody looks.
    pub(crate) fn is_viewed(&self) -> bool {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner).count > 0
    }

    fn close(&self) {
        let mut viewers = self.viewers.lock().unwrap_or_else(PoisonError::into_inner);
        if viewers.count > 0 {
            return;
        }
        if let Some(stop) = viewers.stop.take() {
            stop.cancel();
            let sequence = self.lock().sequence;
            // Browsers that come back know nothing of what follows.
            *self.lock() = State { sequence: sequence + RECENT as u64, ..State::default() };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches every kind that there is, for as long as it is there.
    async fn follow(self: Arc<Self>) {
        let mut tasks = JoinSet::new();
        let mut watched: BTreeMap<(String, String), (usize, AbortHandle)> = BTreeMap::new();
        loop {
            match kinds::kinds(&self.client).await {
                Ok(found) => {
                    let names: BTreeSet<_> =
                        found.iter().map(|kind| (kind.group.clone(), kind.plural.clone())).collect();
                    watched.retain(|name, (index, task)| {
                        let stays = names.contains(name);
                        if !stays {
                            task.abort();
                            self.replace(*index, &BTreeSet::new());
                        }
                        stays
                    });
                    // All are known before the first is listed: otherwise one that is listed at once would be all.
                    let new: Vec<(Kind, usize)> = found
                        .into_iter()
                        .filter(|kind| !watched.contains_key(&(kind.group.clone(), kind.plural.clone())))
                        .map(|kind| {
                            let index = self.add_kind(&kind);
                            (kind, index)
                        })
                        .collect();
                    for (kind, index) in new {
                        let name = (kind.group.clone(), kind.plural.clone());
                        watched.insert(name, (index, tasks.spawn(self.clone().watch(kind, index))));
                    }
                }
                Err(error) => tracing::debug!(%error, "failed to discover kinds"),
            }
            tokio::select! {
                () = self.definitions.notified() => tokio::time::sleep(SETTLE).await,
                () = tokio::time::sleep(DISCOVER) => {}
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    fn add_kind(&self, kind: &Kind) -> usize {
        let mut state = self.lock();
        let same = |known: &Kind| known.group == kind.group && known.plural == kind.plural;
        if let Some(index) = state.kinds.iter().position(same) {
            state.kinds[index] = kind.clone();
            return index;
        }
        state.kinds.push(kind.clone());
        state.kinds.len() - 1
    }

    async fn watch(self: Arc<Self>, kind: Kind, index: usize) {
        let defines = kind.kind == "CustomResourceDefinition" || kind.kind == "APIService";
        let events = watcher::watcher(kind.api(&self.client, None), watcher::Config::default());
        let mut events = std::pin::pin!(events.default_backoff());
        let mut listed: Option<BTreeSet<String>> = None;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed = Some(BTreeSet::new()),
                Ok(watcher::Event::InitApply(object)) => {
                    let (row, _) = Row::of(object, &kind, index);
                    listed.get_or_insert_default().insert(row.uid.clone());
                    self.put(row, None, false);
                }
                Ok(watcher::Event::InitDone) => {
                    let listed = listed.take().unwrap_or_default();
                    self.replace(index, &listed);
                    self.readable(index, None);
                }
                Ok(watcher::Event::Apply(object)) => {
                    let (row, writer) = Row::of(object, &kind, index);
                    self.put(row, writer, true);
                }
                Ok(watcher::Event::Delete(object)) => self.remove(Row::of(object, &kind, index)),
                Err(error) => self.readable(index, Some(error.to_string())),
            }
            if defines && listed.is_none() {
                self.definitions.notify_one();
            }
        }
    }

    fn put(&self, row: Row, writer: Option<String>, live: bool) {
        let mut state = self.lock();
        let known = state.rows.get(&row.uid);
        if known == Some(&row) {
            return;
        }
        if live {
            let verb = if known.is_some() { "changed" } else { "created" };
            state.tell(verb, writer, row.clone());
        }
        state.touch(row.uid.clone());
        state.rows.insert(row.uid.clone(), row);
        self.sequence.send_replace(state.sequence);
    }

    fn remove(&self, (row, writer): (Row, Option<String>)) {
        let mut state = self.lock();
        if state.rows.remove(&row.uid).is_some() {
            state.touch(row.uid.clone());
            state.tell("deleted", writer, row);
            self.sequence.send_replace(state.sequence);
        }
    }

    /// The rows of a kind are these and no others.
    fn replace(&self, kind: usize, listed: &BTreeSet<String>) {
        let mut state = self.lock();
        let gone = |row: &&Row| row.kind == kind && !listed.contains(&row.uid);
        let gone: Vec<String> = state.rows.values().filter(gone).map(|row| row.uid.clone()).collect();
        for uid in gone {
            state.rows.remove(&uid);
            state.touch(uid);
        }
        self.sequence.send_replace(state.sequence);
    }

    fn readable(&self, kind: usize, why_not: Option<String>) {
        let mut state = self.lock();
        state.listed.insert(kind);
        match why_not {
            Some(why) => state.unreadable.insert(kind, why),
            None => state.unreadable.remove(&kind),
        };
        state.sequence += 1;
        self.sequence.send_replace(state.sequence);
    }

    /// What a browser does not know yet; moves its cursor.
    pub(crate) fn update(&self, cursor: &mut Cursor) -> Update {
        let state = self.lock();
        let oldest = state.recent.front().map_or(state.sequence, |(sequence, _)| *sequence - 1);
        let since = cursor.sequence.filter(|since| *since >= oldest && *since <= state.sequence);
        let reset = since.is_none();
        if reset {
            cursor.kinds = 0;
        }
        let mut update = Update {
            reset,
            unreadable: state.unreadable.iter().map(|(kind, why)| (*kind, why.clone())).collect(),
            whole: !state.kinds.is_empty() && state.listed.len() >= state.kinds.len(),
            changes: state.changes.iter().filter(|change| change.id > cursor.changes).cloned().collect(),
            ..Update::default()
        };
        if cursor.kinds < state.kinds.len() {
            update.kinds.clone_from(&state.kinds);
        }
        match since {
            None => update.put = state.rows.values().cloned().collect(),
            Some(since) => {
                let begin = state.recent.partition_point(|(sequence, _)| *sequence <= since);
                let uids: BTreeSet<&String> = state.recent.range(begin..).map(|(_, uid)| uid).collect();
                for uid in uids {
                    match state.rows.get(uid) {
                        Some(row) => update.put.push(row.clone()),
                        None => update.del.push(uid.clone()),
                    }
                }
            }
        }
        cursor.sequence = Some(state.sequence);
        cursor.kinds = state.kinds.len();
        cursor.changes = state.changes.back().map_or(cursor.changes, |change| change.id);
        update
    }

    /// What happened before anybody looked, as far as the cluster still knows, oldest first.
    pub(crate) async fn earlier(&self) -> Vec<Change> {
        let kinds: Vec<(usize, Kind)> = self.lock().kinds.iter().cloned().enumerate().collect();
        let told = |(_, kind): &(usize, Kind)| is_told(kind);
        let known = kinds.clone();
        let changes = history::earlier(&self.client, kinds.into_iter().filter(told).collect(), TOLD).await;
        let change = |(at, earlier): (usize, history::Earlier)| {
            let object = serde_json::from_value(earlier.object).ok()?;
            let (row, _) = Row::of(object, &known.get(earlier.kind)?.1, earlier.kind);
            Some(Change {
                // The others are numbered from one; a script counts exactly up to 53 bits.
                id: (1 << 50) + at as u64,
                time: earlier.time.map_or(0, Timestamp::as_millisecond),
                verb: earlier.happened.word(),
                writer: earlier.writer,
                row,
            })
        };
        changes.into_iter().enumerate().filter_map(change).collect()
    }

    /// The cluster as it was at a revision, as far as its history still says, and the kinds of which it does not.
    pub(crate) async fn at(&self, revision: &str) -> (Vec<Row>, Vec<usize>) {
        let kinds: Vec<(usize, Kind)> = self.lock().kinds.iter().cloned().enumerate().collect();
        let params = ListParams {
            resource_version: Some(revision.to_owned()),
            version_match: Some(VersionMatch::Exact),
            ..ListParams::default()
        };
        let lists = stream::iter(kinds.into_iter().map(|(index, kind)| {
            let (api, params) = (kind.api(&self.client, None), params.clone());
            async move {
                let list = api.list(&params).await;
                let rows = |list: windlass::kube::api::ObjectList<DynamicObject>| {
                    list.items.into_iter().map(|object| Row::of(object, &kind, index).0).collect::<Vec<_>>()
                };
                (index, list.map(rows))
            }
        }));
        let mut lists = lists.buffer_unordered(8);
        let (mut rows, mut unknown) = (Vec::new(), Vec::new());
        while let Some((index, list)) = lists.next().await {
            match list {
                Ok(list) => rows.extend(list),
                Err(_) => unknown.push(index),
            }
        }
        unknown.sort_unstable();
        (rows, unknown)
    }
}

/// A node's heartbeat is no news, and comes every few seconds.
fn is_told(kind: &Kind) -> bool {
    kind.kind != "Lease"
}

impl State {
    fn touch(&mut self, uid: String) {
        self.sequence += 1;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((self.sequence, uid));
    }

    fn tell(&mut self, verb: &'static str, writer: Option<String>, row: Row) {
        if self.kinds.get(row.kind).is_some_and(|kind| !is_told(kind)) {
            return;
        }
        if self.changes.len() == TOLD {
            self.changes.pop_front();
        }
        let id = self.changes.back().map_or(1, |change| change.id + 1);
        let time = Timestamp::now().as_millisecond();
        self.changes.push_back(Change { id, time, verb, writer, row });
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut viewers = self.index.viewers.lock().unwrap_or_else(PoisonError::into_inner);
        viewers.count -= 1;
        if viewers.count == 0
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let index = self.index.clone();
            runtime.spawn(async move {
                tokio::time::sleep(GRACE).await;
                index.close();
            });
        }
    }
}
