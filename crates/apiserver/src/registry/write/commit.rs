//! The commit: a made object enters the store, together with what it is charged to, and what follows from it.

use std::sync::Arc;

use serde_json::Value;

use super::{Attempt, CONTENDED, Target, Unwritten};
use crate::{
    error::{Error, Result},
    registry::{Registry, Resource, bounds, decode, metadata::is_deleting, resource::text},
    store::{Draft, Key, Object, Other, WriteError},
};

impl Registry {
    /// Commits an object that was made; nothing comes back from a dry run.
    pub(super) fn commit_made(
        &self,
        target: Target<'_>,
        object: &Value,
        stored: &Value,
        dry_run: bool,
        charge: &(dyn Fn() -> Result<Vec<Other>> + Sync),
    ) -> Attempt<Option<Arc<Object>>> {
        let resource = target.resource;
        let name = text(object, "/metadata/name").to_owned();
        let key = Key::new(target.namespace, &name);
        if dry_run {
            charge()?;
            return match self.store().get(&resource.table, &key) {
                Some(_) => Err(Unwritten::Taken(Error::already_exists(resource.named(), &name))),
                None => Ok(None),
            };
        }
        self.commit_new(resource, &key, stored, charge).map(Some)
    }

    /// Commits a new object together with what it is charged to; charges again when that has moved.
    fn commit_new(
        &self,
        resource: &Resource,
        key: &Key,
        stored: &Value,
        charge: &(dyn Fn() -> Result<Vec<Other>> + Sync),
    ) -> Attempt<Arc<Object>> {
        let draft = Draft::encode(stored, resource.fields_of(stored));
        if draft.size() > bounds::OBJECT {
            return Err(Error::too_large().into());
        }
        let mut attempts = CONTENDED;
        let committed = loop {
            let others = charge()?;
            if others.is_empty() {
                break self.store().create(&resource.table, key.clone(), draft);
            }
            match self.store().create_with(others, &resource.table, key.clone(), draft.clone()) {
                // Somebody else was charged first: nobody waits for nothing.
                Err(WriteError::Moved(_)) if attempts > 1 => attempts -= 1,
                outcome => break outcome,
            }
        };
        match committed {
            Ok(committed) => {
                (resource.strategy.after_write)(self, &committed);
                Ok(committed)
            }
            Err(WriteError::Moved(_)) => Err(Error::stale(resource.named(), &key.name).into()),
            Err(WriteError::TooLarge) => Err(Error::too_large().into()),
            Err(WriteError::Disk(why)) => Err(Error::from(why).into()),
            Err(WriteError::Exists | WriteError::Missing) => {
                Err(Unwritten::Taken(self.taken(resource, stored, &key.name)))
            }
        }
    }

    /// The name is taken, perhaps by an object on its way out.
    fn taken(&self, resource: &Resource, object: &Value, name: &str) -> Error {
        let mut error = Error::already_exists(resource.named(), name);
        let there = self.get(resource, text(object, "/metadata/namespace"), name);
        if there.is_ok_and(|there| is_deleting(&decode::stored(&there))) {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    /// Commits a new version in its stored form, or the removal that the last finalizer was holding back.
    pub(in crate::registry) fn commit_change(
        &self,
        resource: &Resource,
        current: &Arc<Object>,
        stored: &Value,
    ) -> Result<Arc<Object>, WriteError> {
        self.commit_draft(resource, current, stored, Vec::new(), None)
    }

    /// The same of a writer, together with what the change is charged to. What is too large may only become smaller.
    pub(super) fn commit_charged(
        &self,
        resource: &Resource,
        current: &Arc<Object>,
        stored: &Value,
        others: Vec<Other>,
    ) -> Result<Arc<Object>, WriteError> {
        let most = bounds::OBJECT.max(current.bytes.len());
        self.commit_draft(resource, current, stored, others, Some(most))
    }

    fn commit_draft(
        &self,
        resource: &Resource,
        current: &Arc<Object>,
        stored: &Value,
        others: Vec<Other>,
        most: Option<usize>,
    ) -> Result<Arc<Object>, WriteError> {
        let draft = Draft::encode(stored, resource.fields_of(stored));
        let store = self.store();
        if is_deleting(stored) && resource.may_vanish(stored) {
            let last = store.delete(&resource.table, &current.key, current.revision, draft)?;
            (resource.strategy.after_removal)(self, resource, &last);
            return Ok(last);
        }
        if most.is_some_and(|most| draft.size() > most) {
            return Err(WriteError::TooLarge);
        }
        let committed = store.update_with(others, &resource.table, &current.key, current.revision, draft)?;
        (resource.strategy.after_write)(self, &committed);
        Ok(committed)
    }
}
