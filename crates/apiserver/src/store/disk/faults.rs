//! A disk that fails, tears and reorders at every call, and what the store makes of it.
//!
//! [`Faulty`] keeps what a system would show and what its disk would have after a power cut apart. Every call can fail,
//! by a plan; a failed write may have written a part; a failed sync may have written anything and forgets the rest, so
//! that the next one succeeds for nothing. A power cut takes any sectors that were not synced, in any order, and any
//! names that were not synced, from the last one backwards.
//!
//! # The property
//!
//! After any failures and a power cut the store opens, and
//! 1. every acknowledged write is there, unless a later one of the same key was acknowledged or attempted;
//! 2. what is there is the state after some prefix of the attempted writes, without those that were reported as failed
//!    before the last acknowledged one: a failed write never comes back once another was acknowledged after it, and
//!    never without those before it;
//! 3. the revision is not less than any that was acknowledged;
//! 4. while it ran, a read answered with the acknowledged state whenever no write was under way.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use proptest::prelude::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::json;

use super::{
    super::{Draft, Key, Store, TableName, WriteError},
    DiskOptions,
    files::{Files, Handle},
};

const SECTOR: usize = 512;

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It fails as a broken disk does.
    Broken,
    /// It fails for lack of room.
    Full,
    /// The power goes: from here on nothing reaches the disk.
    PowerCut,
}

/// A file: what the system shows, what the disk has for certain, and which sectors the system would still write.
#[derive(Debug, Default, Clone)]
struct Content {
    shown: Vec<u8>,
    synced: Vec<u8>,
    dirty: BTreeSet<usize>,
}

impl Content {
    /// Copies a sector to the disk, as far as the file is long.
    fn write_back(&mut self, sector: usize) {
        let at = sector * SECTOR;
        let end = (at + SECTOR).min(self.shown.len());
        if at < end {
            let length = self.synced.len().max(end);
            self.synced.resize(length, 0);
            self.synced[at..end].copy_from_slice(&self.shown[at..end]);
        }
    }
}

#[derive(Debug)]
struct Model {
    random: StdRng,
    /// The calls at which something happens, counted from now.
    plan: BTreeMap<u64, Fault>,
    calls: u64,
    /// Whether the power has gone.
    dead: bool,
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    /// The names as they were after each change since the last sync, that one first.
    past: Vec<BTreeMap<PathBuf, usize>>,
}

/// The disk, shared with those who look at it from outside.
#[derive(Debug, Clone)]
struct Faulty(Arc<Mutex<Model>>);

impl Faulty {
    fn new(seed: u64) -> Self {
        let past = vec![BTreeMap::new()];
        Self(Arc::new(Mutex::new(Model {
            random: StdRng::seed_from_u64(seed),
            plan: BTreeMap::new(),
            calls: 0,
            dead: false,
            contents: Vec::new(),
            names: BTreeMap::new(),
            past,
        })))
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this happens, and nothing that was planned before.
    fn plan(&self, faults: impl IntoIterator<Item = (u64, Fault)>) {
        let mut model = self.model();
        model.plan = faults.into_iter().collect();
        model.calls = 0;
    }

    /// The disk after a power cut.
    fn cut_power(&self) {
        let mut model = self.model();
        let kept = model.past.len() - 1;
        let kept = model.random.random_range(0..=kept);
        let names = model.past[kept].clone();
        model.names = names.clone();
        model.past = vec![names];
        model.dead = false;
        for index in 0..model.contents.len() {
            let torn = model.torn(index);
            model.contents[index] = Content { shown: torn.clone(), synced: torn, dirty: BTreeSet::new() };
        }
    }
}

impl Model {
    /// Whether this call fails.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.dead {
            return Err(io::Error::other("the power is gone"));
        }
        match self.plan.get(&self.calls) {
            Some(Fault::Broken) => Err(io::Error::other("injected")),
            Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::PowerCut) => {
                self.dead = true;
                Err(io::Error::other("the power goes"))
            }
            None => Ok(()),
        }
    }

    /// What a power cut leaves of a file: what was synced, and any of the sectors that were not. A length counts as
    /// one of these.
    fn torn(&mut self, index: usize) -> Vec<u8> {
        let mut content = self.contents[index].clone();
        for sector in content.dirty.clone() {
            if self.random.random_bool(0.5) {
                content.write_back(sector);
            }
        }
        if content.synced.len() > content.shown.len() && self.random.random_bool(0.5) {
            content.synced.truncate(content.shown.len());
        }
        content.synced
    }

    fn index(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn renamed(&mut self) {
        let names = self.names.clone();
        self.past.push(names);
    }
}

#[derive(Debug)]
struct Opened {
    disk: Faulty,
    index: usize,
}

impl Files for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Handle>> {
        let mut model = self.model();
        model.call()?;
        let index = match model.index(path) {
            Ok(index) => {
                model.contents[index].shown.clear();
                index
            }
            Err(_) => {
                model.contents.push(Content::default());
                let index = model.contents.len() - 1;
                model.names.insert(path.into(), index);
                model.renamed();
                index
            }
        };
        Ok(Box::new(Opened { disk: self.clone(), index }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Handle>> {
        let index = self.model().index(path)?;
        Ok(Box::new(Opened { disk: self.clone(), index }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let model = self.model();
        let index = model.index(path)?;
        Ok(model.contents[index].shown.clone())
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(self.read(path)?.len() as u64)
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.model().names.keys().cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut model = self.model();
        model.call()?;
        let index = model.index(from)?;
        model.names.remove(from);
        model.names.insert(to.into(), index);
        model.renamed();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut model = self.model();
        model.index(path)?;
        model.call()?;
        model.names.remove(path);
        model.renamed();
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        let mut model = self.model();
        model.call()?;
        let names = model.names.clone();
        model.past = vec![names];
        Ok(())
    }
}

impl Handle for Opened {
    fn write_at(&mut self, bytes: &[u8], place: u64) -> io::Result<()> {
        let mut model = self.disk.model();
        let dead = model.dead;
        let outcome = model.call();
        if dead {
            return outcome;
        }
        let written = if outcome.is_ok() { bytes.len() } else { model.random.random_range(0..=bytes.len()) };
        let (content, place) = (&mut model.contents[self.index], usize::try_from(place).unwrap());
        if written > 0 {
            let length = content.shown.len().max(place + written);
            content.shown.resize(length, 0);
            content.shown[place..place + written].copy_from_slice(&bytes[..written]);
            content.dirty.extend(place / SECTOR..=(place + written - 1) / SECTOR);
        }
        outcome
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        let mut model = self.disk.model();
        model.call()?;
        model.contents[self.index].shown.resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut model = self.disk.model();
        let outcome = model.call();
        if outcome.is_ok() {
            let content = &mut model.contents[self.index];
            for sector in std::mem::take(&mut content.dirty) {
                content.write_back(sector);
            }
            let length = content.shown.len();
            content.synced.resize(length, 0);
        } else if !model.dead {
            // The system believes that the disk has it now, and will not write it again.
            let torn = model.torn(self.index);
            let content = &mut model.contents[self.index];
            content.synced = torn;
            content.dirty.clear();
        }
        outcome
    }
}

fn options() -> DiskOptions {
    DiskOptions { history: 16, checkpoint_after: 3000, sync: true, reserve: 4096 }
}

fn open(disk: &Faulty) -> Store {
    Store::open_on(Arc::new(disk.clone()), "/store".into(), None, options()).expect("the store must open")
}

fn table() -> TableName {
    TableName { group: "".into(), plural: "things".into() }
}

fn draft(name: &str, turn: usize) -> Draft {
    let padding = "x".repeat(turn * 37 % 900);
    let value = json!({"kind": "Thing", "apiVersion": "v1", "metadata": {"name": name}, "turn": turn, "padding": padding});
    Draft::encode(&value, Arc::from([]))
}

/// What there is: the turn of the last write of every name.
type Things = BTreeMap<String, usize>;

fn things(store: &Store) -> Things {
    let objects = store.snapshot(&table(), None).objects;
    let turn =
        |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap()["turn"].as_u64().unwrap();
    objects
        .iter()
        .map(|object| (object.key.name.to_string(), usize::try_from(turn(&object.bytes)).unwrap()))
        .collect()
}

/// One write: a create, an update, or a delete every fourth time.
fn attempt(store: &Store, name: &str, turn: usize) -> Result<(u64, bool), WriteError> {
    let key = Key::new("", name);
    let (written, gone) = match store.get(&table(), &key) {
        None => (store.create(&table(), key, draft(name, turn)), false),
        Some(at) if turn % 4 == 3 => (store.delete(&table(), &key, at.revision, draft(name, turn)), true),
        Some(at) => (store.update(&table(), &key, at.revision, draft(name, turn)), false),
    };
    Ok((written?.revision, gone))
}

fn apply(things: &mut Things, name: &str, turn: usize, gone: bool) {
    if gone {
        things.remove(name);
    } else {
        things.insert(name.to_owned(), turn);
    }
}

/// What may be there after a power cut.
#[derive(Debug, Default)]
struct Expected {
    /// The state after every acknowledged write.
    acknowledged: Things,
    revision: u64,
    /// The states that writes which failed since then would have led to, one after the other.
    perhaps: Vec<Things>,
}

impl Expected {
    fn check(&mut self, store: &Store) -> Result<(), TestCaseError> {
        let there = things(store);
        let known = there == self.acknowledged || self.perhaps.contains(&there);
        prop_assert!(known, "there is {there:?}, expected {self:?}");
        prop_assert!(store.revision() >= self.revision, "the revision went back to {}", store.revision());
        // What came back is there for good.
        *self = Self { acknowledged: there, revision: store.revision(), perhaps: Vec::new() };
        Ok(())
    }
}

/// A write that was attempted: its revision, and the state that it led to. There are several when the store may have
/// gone back while it was attempted.
struct Attempted {
    revision: u64,
    states: Vec<Things>,
}

/// Attempts a burst of writes without waiting, so that several share a sync.
fn burst(store: &Store, names: &[u8], turn: &mut usize, acknowledged: &Things) -> Vec<Attempted> {
    let mut attempted = Vec::new();
    for name in names {
        let name = format!("thing-{name}");
        *turn += 1;
        let (losses, before) = (store.losses(), things(store));
        let Ok((revision, gone)) = attempt(store, &name, *turn) else { continue };
        let sure = store.losses() == losses;
        let mut states = vec![before];
        if !sure {
            // To what was acknowledged before, or to any write of this burst.
            states.push(acknowledged.clone());
            states.extend(attempted.iter().map(|earlier: &Attempted| earlier.states[0].clone()));
        }
        for state in &mut states {
            apply(state, &name, *turn, gone);
        }
        attempted.push(Attempted { revision, states });
        if !sure {
            break;
        }
    }
    attempted
}

/// Writes in bursts, waits until each write is acknowledged or refused, and reads in between.
async fn live(
    store: &Store,
    steps: &[u8],
    turn: &mut usize,
    expected: &mut Expected,
) -> Result<(), TestCaseError> {
    let mut left = steps;
    while !left.is_empty() {
        let (names, rest) = left.split_at(left.len().min(1 + usize::from(left[0])));
        left = rest;
        for Attempted { revision, states } in burst(store, names, turn, &expected.acknowledged) {
            let durable = tokio::time::timeout(Duration::from_secs(20), store.durable(revision)).await;
            match durable.map_err(|_| TestCaseError::fail("nobody was told"))? {
                Ok(()) => {
                    let there = things(store);
                    let known = states.iter().find(|state| states.len() == 1 || **state == there);
                    let known = known.ok_or_else(|| TestCaseError::fail("a write led to something else"))?;
                    *expected = Expected { acknowledged: known.clone(), revision, perhaps: Vec::new() };
                }
                Err(_) => expected.perhaps.extend(states),
            }
        }
        prop_assert_eq!(&things(store), &expected.acknowledged, "a read shows something else");
        prop_assert_eq!(store.revision(), expected.revision.max(1), "the revision is another");
    }
    Ok(())
}

/// What a process writes, and what goes wrong at which of its calls.
type Life = (Vec<u8>, Vec<(u64, Fault)>);

/// Plays lives with faults and power cuts between them.
fn play(seed: u64, lives: &[Life]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (disk, mut turn) = (Faulty::new(seed), 0);
    let mut expected = Expected { revision: 1, ..Expected::default() };
    for (steps, faults) in lives {
        let store = open(&disk);
        expected.check(&store)?;
        disk.plan(faults.iter().copied());
        runtime.block_on(live(&store, steps, &mut turn, &mut expected))?;
        drop(store);
        disk.cut_power();
        disk.plan([]);
    }
    expected.check(&open(&disk))
}

fn fault() -> impl Strategy<Value = (u64, Fault)> {
    (1..60_u64, prop_oneof![Just(Fault::Broken), Just(Fault::Full), Just(Fault::PowerCut)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_failure_and_no_power_cut_takes_what_was_acknowledged(
        seed in any::<u64>(),
        lives in prop::collection::vec(
            (prop::collection::vec(0..4_u8, 1..20), prop::collection::vec(fault(), 0..6)), 1..5),
    ) {
        play(seed, &lives)?;
    }
}

#[test]
fn every_single_call_may_fail() {
    let steps: Vec<u8> = (0..24).map(|step| step % 4).collect();
    for call in 1..70 {
        for fault in [Fault::Broken, Fault::Full, Fault::PowerCut] {
            let lives = [(steps.clone(), vec![(call, fault)]), (steps.clone(), Vec::new())];
            for seed in 0..4 {
                play(seed, &lives)
                    .unwrap_or_else(|error| panic!("call {call}, {fault:?}, seed {seed}: {error}"));
            }
        }
    }
}

#[tokio::test]
async fn a_failed_sync_is_fatal_for_its_write_and_for_nothing_else() {
    let disk = Faulty::new(7);
    let store = open(&disk);
    let (first, _) = attempt(&store, "kept", 1).unwrap();
    store.durable(first).await.unwrap();
    // The write is the next call, its sync the one after.
    disk.plan([(2, Fault::Broken)]);
    let (second, _) = attempt(&store, "lost", 2).unwrap();
    let why = store.durable(second).await.unwrap_err().to_string();
    assert!(why.contains("failed to write") && why.contains("log-"), "{why}");
    assert_eq!(things(&store), Things::from([("kept".into(), 1)]));
    let (third, _) = loop {
        // The new log is begun a moment after the failure was told.
        match attempt(&store, "later", 4) {
            Ok(written) => break written,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert!(third > second, "a revision is used once");
    store.durable(third).await.unwrap();
    assert!(store.durable(second).await.is_err(), "what was given up stays so");
    assert!(store.check_disk().is_ok());
    drop(store);
    disk.cut_power();
    let expected = Things::from([("kept".into(), 1), ("later".into(), 4)]);
    assert_eq!(things(&open(&disk)), expected, "what failed does not come back");
}
