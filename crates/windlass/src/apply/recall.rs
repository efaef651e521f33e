//! What this process knows of its own applies and the cluster does not show.
//!
//! An object normally shows by itself that an intent is in force: it bears the mark, and we own the intent's fields. A
//! mutating webhook may take the mark away or put a list into another order, and the server may leave out an empty
//! map without a word. Then the answer to the apply is remembered: as long as nothing that we own has changed since,
//! another apply would be answered in the same way. Most children need no entry here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    object::{Kind, ObjectKey},
    wire::{FieldSet, Ownership, digest::Digest},
};

/// What an apply of an intent was answered, as far as others can change it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    uid: String,
    digest: Digest,
    /// The digest that the object bears.
    mark: Option<Digest>,
    fields: Option<Arc<FieldSet>>,
}

impl Answer {
    pub(super) fn new(uid: &str, digest: Digest, ownership: &Ownership) -> Self {
        Self { uid: uid.to_owned(), digest, mark: ownership.digest, fields: ownership.fields.clone() }
    }

    /// The answer to an apply of a part of the status.
    pub(super) fn of_status(uid: &str, digest: Digest, fields: Option<FieldSet>) -> Self {
        Self { uid: uid.to_owned(), digest, mark: None, fields: fields.map(Arc::new) }
    }
}

/// The answers that do not speak for themselves, of one controller.
#[derive(Debug, Default)]
pub(crate) struct Recall(Mutex<BTreeMap<(Kind, ObjectKey), Answer>>);

impl Recall {
    /// Whether an apply was answered just so.
    pub(super) fn is_known(&self, kind: &Kind, key: &ObjectKey, answer: &Answer) -> bool {
        let answers = self.lock();
        !answers.is_empty() && answers.get(&(kind.clone(), key.clone())) == Some(answer)
    }

    /// Takes note of an answer; of none if the object speaks for itself.
    pub(super) fn note(&self, kind: &Kind, key: &ObjectKey, answer: Option<Answer>) {
        let mut answers = self.lock();
        match answer {
            Some(answer) => _ = answers.insert((kind.clone(), key.clone()), answer),
            None if answers.is_empty() => {}
            None => _ = answers.remove(&(kind.clone(), key.clone())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Kind, ObjectKey), Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
