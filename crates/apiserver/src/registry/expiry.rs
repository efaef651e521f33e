//! Events expire: an hour after its last write an event is gone, as with the real server's `--event-ttl`.
//!
//! Every write of an event enters with its revision. What has not been written again when its time is over is removed
//! from the store, and watchers see it go. The clock is the server's, so on a paused one an hour passes at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{catalog::table_of, decode, metadata::meta, resource::text};
use crate::{
    environment::Environment,
    store::{Draft, Key, Object, Store, TableName},
};

/// How long an event lives after its last write.
pub(super) const EVENT_TTL: Duration = Duration::from_hours(1);

/// So many are removed before others have their turn.
const TURN: usize = 64;

/// The events that will expire, in the order in which they do.
#[derive(Debug)]
pub(super) struct Expiry {
    store: Weak<Store>,
    environment: Environment,
    table: TableName,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ttl: SignedDuration,
    due: VecDeque<Due>,
    /// Whether somebody waits for the next one.
    waiting: bool,
}

/// A version of an event, and when it is over.
#[derive(Debug)]
struct Due {
    at: Timestamp,
    key: Key,
    revision: u64,
}

impl Expiry {
    /// For the events of a store, also those that it holds already.
    pub(super) fn new(store: &Arc<Store>, environment: &Environment) -> Arc<Self> {
        let ttl = SignedDuration::try_from(EVENT_TTL).unwrap_or(SignedDuration::MAX);
        let expiry = Arc::new(Self {
            store: Arc::downgrade(store),
            environment: environment.clone(),
            table: table_of("", "events"),
            state: Mutex::new(State { ttl, due: VecDeque::new(), waiting: false }),
        });
        let known = store.snapshot(&expiry.table, None).objects;
        let mut due: Vec<Due> = known.iter().map(|event| due(event, written(event), ttl)).collect();
        due.sort_by_key(|due| (due.at, due.revision));
        expiry.state().due = due.into();
        expiry.wait();
        expiry
    }

    /// An event was written.
    pub(super) fn add(self: &Arc<Self>, event: &Object) {
        let now = self.environment.now();
        let mut state = self.state();
        let ttl = state.ttl;
        state.due.push_back(due(event, now, ttl));
        drop(state);
        self.wait();
    }

    /// Another lifetime for the events that are written from now on.
    pub(super) fn set_ttl(&self, ttl: Duration) {
        self.state().ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
    }

    /// Lets a task wait for the next event to expire, if there is any and nobody waits yet.
    fn wait(self: &Arc<Self>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut state = self.state();
        if state.waiting || state.due.is_empty() {
            return;
        }
        state.waiting = true;
        drop(state);
        // The task holds nothing while it sleeps, so that a server that is dropped is gone.
        let this = Arc::downgrade(self);
        runtime.spawn(async move {
            loop {
                let Some(pause) = this.upgrade().and_then(|this| this.next()) else { return };
                match pause {
                    Duration::ZERO => tokio::task::yield_now().await,
                    pause => tokio::time::sleep(pause).await,
                }
            }
        });
    }

    /// Removes what is over, some of it, and tells how long to wait; nothing when there is nothing to wait for.
    fn next(&self) -> Option<Duration> {
        let store = self.store.upgrade()?;
        for _ in 0..TURN {
            let mut state = self.state();
            let now = self.environment.now();
            let Some(first) = state.due.front() else {
                state.waiting = false;
                return None;
            };
            if first.at > now {
                // Rounded up: never again before it is time.
                let pause = Duration::try_from(first.at.duration_since(now)).unwrap_or(Duration::ZERO);
                return Some(pause.max(Duration::from_millis(1)));
            }
            let over = state.due.pop_front();
            drop(state);
            if let Some(over) = over {
                self.remove(&store, &over);
            }
        }
        Some(Duration::ZERO)
    }

    fn remove(&self, store: &Store, over: &Due) {
        let Some(event) = store.get(&self.table, &over.key).filter(|event| event.revision == over.revision)
        else {
            return;
        };
        let last = Draft::encode(&decode::stored(&event), Arc::clone(&event.fields));
        // Whoever was faster has written it again, and it lives on.
        let _ = store.delete(&self.table, &over.key, over.revision, last);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn due(event: &Object, written: Timestamp, ttl: SignedDuration) -> Due {
    let at = written.saturating_add(ttl).unwrap_or(Timestamp::MAX);
    Due { at, key: event.key.clone(), revision: event.revision }
}

/// When an event of an earlier life of the server was written, by what it tells itself.
fn written(event: &Object) -> Timestamp {
    let event = decode::stored(event);
    let managers = meta(&event, "managedFields").as_array().into_iter().flatten();
    let times =
        managers.map(|manager| text(manager, "/time")).chain([text(&event, "/metadata/creationTimestamp")]);
    times.filter_map(|time| time.parse().ok()).max().unwrap_or(Timestamp::UNIX_EPOCH)
}
