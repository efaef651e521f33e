//! Ready keys of one priority: first in, first out within a lane, and lanes in turn.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Debug,
    hash::Hash,
    sync::Arc,
};

use crate::object::ObjectKey;

/// What a [`Queue`](super::Queue) holds.
pub trait QueueKey: Ord + Hash + Clone + Debug {
    /// The lane in which the key waits. Lanes take turns, so that a full one does not hold up the others.
    fn lane(&self) -> Arc<str>;
}

impl QueueKey for ObjectKey {
    /// The namespace.
    fn lane(&self) -> Arc<str> {
        self.shared_namespace().unwrap_or_default()
    }
}

/// Ready keys, by lane and by age.
#[derive(Debug)]
pub(super) struct Lanes<K> {
    keys: BTreeMap<Arc<str>, BTreeMap<u64, K>>,
    /// The lanes that have keys, the next one to be served first.
    turns: VecDeque<Arc<str>>,
    len: usize,
}

impl<K> Default for Lanes<K> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<K: QueueKey> Lanes<K> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a key; `sequence` is its place within the lane.
    pub(super) fn insert(&mut self, sequence: u64, key: K) {
        let lane = key.lane();
        let keys = self.keys.entry(lane.clone()).or_default();
        if keys.is_empty() {
            self.turns.push_back(lane);
        }
        keys.insert(sequence, key);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, sequence: u64, key: &K) {
        let lane = key.lane();
        let Some(keys) = self.keys.get_mut(&lane) else { return };
        if keys.remove(&sequence).is_some() {
            self.len -= 1;
        }
        if keys.is_empty() {
            self.keys.remove(&lane);
            self.turns.retain(|turn| *turn != lane);
        }
    }

    /// The oldest key of the lane whose turn it is.
    pub(super) fn pop(&mut self) -> Option<K> {
        let lane = self.turns.pop_front()?;
        let keys = self.keys.get_mut(&lane)?;
        let (_, key) = keys.pop_first()?;
        self.len -= 1;
        if keys.is_empty() {
            self.keys.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        Some(key)
    }
}
