//! What this process knows of its own applies and the cluster does not show.
//!
//! An object normally shows by itself that an intent is in force: it bears the mark, and we own the intent's fields. A
//! mutating webhook may take the mark away or put a list into another order, and the server may leave out an empty
//! map without a word. Then the answer to the apply is remembered: as long as nothing that we own has changed since,
//! another apply would be answered in the same way. Most children need no entry here.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use super::{Ownership, held, ownership::Digest};
use crate::object::{Kind, ObjectKey};

/// What an apply was answered.
#[derive(Debug)]
struct Answer {
    uid: String,
    digest: Digest,
    ownership: Ownership,
}

/// The answers that do not speak for themselves, of one controller.
#[derive(Debug, Default)]
pub(crate) struct Recall(Mutex<BTreeMap<(Kind, ObjectKey), Answer>>);

/// A child, as far as it matters here.
pub(super) struct Subject<'a> {
    pub(super) kind: &'a Kind,
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a str,
    pub(super) intent: &'a Value,
    pub(super) digest: Digest,
}

impl Recall {
    /// Whether an apply of the intent would change nothing.
    pub(super) fn is_in_force(&self, of: &Subject<'_>, live: &Value, ownership: &Ownership) -> bool {
        // Without a set the server has not kept the books.
        ownership.fields.is_some() && (is_evident(of, live, ownership) || self.is_remembered(of, ownership))
    }

    /// Takes note of the answer to an apply of the intent, should it not speak for itself.
    pub(super) fn answered(&self, of: &Subject<'_>, live: &Value, ownership: &Ownership) {
        let place = (of.kind.clone(), of.key.clone());
        if is_evident(of, live, ownership) {
            self.lock().remove(&place);
            return;
        }
        let answer = Answer { uid: of.uid.to_owned(), digest: of.digest, ownership: ownership.clone() };
        self.lock().insert(place, answer);
    }

    pub(super) fn forget(&self, kind: &Kind, key: &ObjectKey) {
        let mut answers = self.lock();
        if !answers.is_empty() {
            answers.remove(&(kind.clone(), key.clone()));
        }
    }

    fn is_remembered(&self, of: &Subject<'_>, now: &Ownership) -> bool {
        let answers = self.lock();
        if answers.is_empty() {
            return false;
        }
        answers.get(&(of.kind.clone(), of.key.clone())).is_some_and(|then| {
            then.uid == of.uid
                && then.digest == of.digest
                && then.ownership.digest == now.digest
                && then.ownership.fields == now.fields
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Kind, ObjectKey), Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_evident(of: &Subject<'_>, live: &Value, ownership: &Ownership) -> bool {
    ownership.digest == Some(of.digest)
        && ownership.fields.as_deref().is_some_and(|fields| held::holds(of.intent, live, fields))
}
