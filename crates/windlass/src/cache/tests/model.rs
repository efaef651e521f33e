//! A store beside a model of an API server that may be restored from a backup.
//!
//! The store selects by a label that comes and goes. Others write, we write, the watch lags behind and breaks, and the
//! server goes back in time. After a list and a quiet watch the store must have what the server has.

use super::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    uid: u64,
    version: u64,
    labelled: bool,
}

type Objects3 = [Option<State>; 3];

/// One change: which name, and what it was and is.
#[derive(Clone, Copy, Debug)]
struct Step {
    version: u64,
    name: usize,
    before: Option<State>,
    after: Option<State>,
}

#[derive(Clone, Debug)]
enum Act {
    Write {
        name: usize,
        labelled: bool,
        own: bool,
    },
    Delete {
        name: usize,
        own: bool,
    },
    /// The watch delivers some events.
    Deliver(usize),
    /// The watch breaks, and a list follows; while it arrives we write some of the names.
    List(Vec<(usize, bool)>),
    /// The server goes back by some versions.
    Restore(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let write = (0..3_usize, any::<bool>(), any::<bool>());
    let act = prop_oneof![
        5 => write.prop_map(|(name, labelled, own)| Act::Write { name, labelled, own }),
        2 => (0..3_usize, any::<bool>()).prop_map(|(name, own)| Act::Delete { name, own }),
        3 => (1..6_usize).prop_map(Act::Deliver),
        2 => prop::collection::vec((0..3_usize, any::<bool>()), 0..3).prop_map(Act::List),
        1 => (1..9_usize).prop_map(Act::Restore),
    ];
    prop::collection::vec(act, 1..40)
}

/// The server, the store, and how far the watch has come.
struct World {
    store: Objects,
    /// The state after each version, the first one being that of version 1.
    states: Vec<Objects3>,
    log: Vec<Step>,
    uids: u64,
    /// `None` while there is no watch.
    watched: Option<u64>,
}

impl World {
    fn new(as_text: bool) -> Self {
        let scope = Scope { labels: Some("in=yes".into()), ..Scope::default() };
        let store = Objects::new::<ConfigMap>(us(), &scope, None, as_text);
        Self { store, states: vec![[None; 3]], log: Vec::new(), uids: 0, watched: None }
    }

    fn now(&self) -> Objects3 {
        *self.states.last().unwrap()
    }

    fn version(&self) -> u64 {
        self.states.len() as u64
    }

    fn commit(&mut self, name: usize, after: Option<State>) {
        let mut state = self.now();
        let before = std::mem::replace(&mut state[name], after);
        self.states.push(state);
        self.log.push(Step { version: self.version(), name, before, after });
    }

    fn write(&mut self, name: usize, labelled: bool, own: bool) {
        let uid = self.now()[name].map_or_else(
            || {
                self.uids += 1;
                self.uids
            },
            |state| state.uid,
        );
        let state = State { uid, version: self.version() + 1, labelled };
        self.commit(name, Some(state));
        if own {
            self.store.written(object(name, state), false);
        }
    }

    fn delete(&mut self, name: usize, own: bool) {
        let Some(state) = self.now()[name] else { return };
        self.commit(name, None);
        if own {
            self.store.deleted(&key(NAMES[name]), &state.uid.to_string());
        }
    }

    /// What a watch with the selector sends.
    fn deliver(&mut self, count: usize) {
        for _ in 0..count {
            let Some(watched) = self.watched else { return };
            let Some(step) = self.log.iter().find(|step| step.version > watched).copied() else { return };
            let is_in = |state: Option<State>| state.filter(|state| state.labelled);
            match (is_in(step.before), is_in(step.after)) {
                (_, Some(after)) => {
                    self.store.watch_applied(object(step.name, after));
                }
                (Some(before), None) => {
                    let gone = object(step.name, State { version: step.version, ..before });
                    self.store.watch_deleted(&gone.object.metadata);
                }
                (None, None) => self.store.watched(0, step.version),
            }
            self.watched = Some(step.version);
        }
    }

    /// Lists until the list is believed, as a feed does.
    fn list(&mut self, meanwhile: &[(usize, bool)]) {
        let mut meanwhile = meanwhile.to_vec();
        for _ in 0..3 {
            self.store.list_started(0);
            let (snapshot, at) = (self.now(), self.version());
            for (name, state) in snapshot.iter().enumerate() {
                if let Some(state) = state.filter(|state| state.labelled) {
                    self.store.listed(0, object(name, state));
                }
            }
            for (name, labelled) in std::mem::take(&mut meanwhile) {
                self.write(name, labelled, true);
            }
            let doubtful = self.store.list_finished(0, false, at).doubtful;
            let mut restored = false;
            for (key, seen) in doubtful {
                let name = NAMES.iter().position(|name| *name == key.name()).unwrap();
                let found = self.now()[name].map(|state| object(name, state).object.metadata);
                restored |= self.store.resolve(&key, seen, found.as_ref()).1;
            }
            self.watched = Some(at);
            if !restored {
                return;
            }
            self.store.distrust(0);
        }
        panic!("a list must be believed at last");
    }

    fn restore(&mut self, back: usize) {
        let left = self.states.len().saturating_sub(back).max(1);
        self.states.truncate(left);
        let version = self.version();
        self.log.retain(|step| step.version <= version);
        // A watch from a version that is not there any more is refused, or silent.
        self.watched = None;
    }

    fn seen(&self) -> Vec<Option<(String, u64)>> {
        NAMES.iter().map(|name| held(&self.store, name)).collect()
    }

    fn expected(&self) -> Vec<Option<(String, u64)>> {
        let is_in = |state: Option<State>| state.filter(|state| state.labelled);
        self.now().map(|state| is_in(state).map(|state| (state.uid.to_string(), state.version))).to_vec()
    }
}

fn object(name: usize, state: State) -> Fresh<ConfigMap> {
    let mut object = value(NAMES[name], &state.uid.to_string(), state.version);
    object["metadata"]["labels"] = json!({"in": if state.labelled { "yes" } else { "no" }});
    fresh(&object)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn after_a_list_and_a_quiet_watch_the_store_has_what_the_server_has(
        as_text in any::<bool>(),
        acts in acts(),
        meanwhile in prop::collection::vec((0..3_usize, any::<bool>()), 0..3),
    ) {
        let mut world = World::new(as_text);
        world.list(&[]);
        for act in &acts {
            match act {
                Act::Write { name, labelled, own } => world.write(*name, *labelled, *own),
                Act::Delete { name, own } => world.delete(*name, *own),
                Act::Deliver(count) => world.deliver(*count),
                Act::List(meanwhile) => world.list(meanwhile),
                Act::Restore(back) => world.restore(*back),
            }
        }
        world.list(&meanwhile);
        world.deliver(usize::MAX);
        prop_assert_eq!(world.seen(), world.expected());
    }
}
