//! Tokens whose signatures were checked a moment ago.
//!
//! A token that was verified enters with its claims and with what it rests on; the same token is then known for ten
//! seconds without its signature being checked again. Nothing else is taken for granted: its end, its beginning and its
//! audiences are looked at every time, and so is whether an account, a Pod, a Node or a Secret that it rests on has
//! changed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Identity;
use crate::store::{Key, Store, TableName};

/// How long a signature counts as checked: as long as in the real server.
const KEPT_FOR: SignedDuration = SignedDuration::from_secs(10);

/// How many tokens are kept, and how long one may be to be kept.
const KEPT: usize = 4096;
const LONGEST: usize = 8 * 1024;

/// The tokens of a server.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    kept: Mutex<HashMap<String, Arc<Known>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// An object that a token rests on, and its revision when it was looked at.
pub(crate) type Basis = (TableName, Key, u64);

/// A token that was verified.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) claims: Arc<Value>,
    pub(crate) identity: Identity,
    basis: Vec<Basis>,
    until: Timestamp,
}

impl Known {
    /// Whether everything that the token rests on is as it was.
    pub(crate) fn stands(&self, store: &Store) -> bool {
        let same = |(table, key, revision): &Basis| {
            store.get(table, key).is_some_and(|object| object.revision == *revision)
        };
        self.basis.iter().all(same)
    }
}

impl Verified {
    fn kept(&self) -> MutexGuard<'_, HashMap<String, Arc<Known>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a token.
    pub(crate) fn get(&self, token: &str, now: Timestamp) -> Option<Arc<Known>> {
        let known = self.kept().get(token).filter(|known| now < known.until).cloned();
        let count = if known.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        known
    }

    /// Keeps a token whose signature was checked now.
    pub(crate) fn put(
        &self,
        token: &str,
        claims: Value,
        identity: Identity,
        basis: Vec<Basis>,
        now: Timestamp,
    ) {
        if token.len() > LONGEST {
            return;
        }
        let until = now.saturating_add(KEPT_FOR).unwrap_or(Timestamp::MAX);
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.retain(|_, known| now < known.until);
            if kept.len() >= KEPT {
                kept.clear();
            }
        }
        kept.insert(token.to_owned(), Arc::new(Known { claims: Arc::new(claims), identity, basis, until }));
    }

    /// Notes what a token rests on now. Its signature is no younger for that.
    pub(crate) fn renew(&self, token: &str, known: &Known, identity: Identity, basis: Vec<Basis>) {
        let claims = Arc::clone(&known.claims);
        let known = Known { claims, identity, basis, until: known.until };
        self.kept().insert(token.to_owned(), Arc::new(known));
    }

    /// Forgets a token.
    pub(crate) fn forget(&self, token: &str) {
        self.kept().remove(token);
    }

    /// How often a token was known, and how often not.
    pub(crate) fn seen(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_bounded_in_number_length_and_time() {
        let (verified, now) = (Verified::default(), Timestamp::UNIX_EPOCH);
        let put = |token: &str| verified.put(token, Value::Null, Identity::admin(), Vec::new(), now);
        for number in 0..3 * KEPT {
            put(&number.to_string());
            assert!(verified.kept().len() <= KEPT);
        }
        put("a");
        put(&"b".repeat(LONGEST + 1));
        assert!(verified.get("a", now + SignedDuration::from_secs(9)).is_some());
        assert!(verified.get("a", now + SignedDuration::from_secs(10)).is_none());
        assert!(verified.get(&"b".repeat(LONGEST + 1), now).is_none());
    }
}
