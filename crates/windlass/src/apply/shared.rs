//! What all runs of a controller share: the client, the cache, and what is known of earlier writes.

use std::sync::Arc;

use kube::{
    Client,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};
use serde_json::Value;

use super::{Owned, Recall, dry_run};
use crate::{
    cache::{Origin, Reader, Stores},
    clock::Clock,
    error::{Error, Result},
    events::Recorder,
    object::{AnyObject, Kind, ObjectKey, uid},
    request,
    wire::{FieldManager, Fresh},
};

/// The part of a context that all runs of a controller share.
pub(crate) struct Shared {
    pub(crate) controller: Arc<str>,
    pub(crate) field_manager: Arc<FieldManager>,
    /// The names of all controllers of the operator.
    pub(crate) controllers: Arc<[String]>,
    pub(crate) recall: Recall,
    pub(crate) status_recall: Recall,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reader: Reader,
    pub(crate) recorder: Recorder,
    /// The field manager of plain writes, where it is not the operator's.
    pub(crate) manager: Option<String>,
    pub(crate) owned: Owned,
    /// Log what would be written instead of writing it.
    pub(crate) dry_run: bool,
}

/// Who is told about an own write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Every controller, the writing run included.
    Everyone,
    /// Every run but the one that wrote.
    Others,
}

impl Shared {
    /// The field manager of what is not applied.
    pub(crate) fn manager(&self) -> &str {
        self.manager.as_deref().unwrap_or_else(|| self.field_manager.name())
    }

    /// Enters what a write returned into the cache.
    pub(crate) fn written<K: AnyObject>(
        &self,
        stores: &Stores<K>,
        object: impl Into<Fresh<K>>,
        run: &ObjectKey,
        trigger: Trigger,
    ) -> Arc<K> {
        stores.written(object, self.origin(run, trigger).as_ref())
    }

    /// Which run need not hear of what it has written.
    pub(crate) fn origin(&self, run: &ObjectKey, trigger: Trigger) -> Option<Origin> {
        let origin = || Origin { controller: self.controller.clone(), key: run.clone() };
        (trigger == Trigger::Others).then(origin)
    }

    /// Where the children of a kind are read: the stores that `owns` declared, or else all of the kind.
    pub(crate) fn family<K: AnyObject>(&self, kind: &Kind) -> Result<Stores<K>> {
        match self.owned.stores::<K>(kind) {
            Some(stores) => Ok(stores),
            None => self.reader.stores_of::<K>(kind),
        }
    }

    /// Deletes an object, and only the one with this uid.
    pub(crate) async fn delete<K: AnyObject>(&self, kind: &Kind, object: &K) -> Result<()> {
        let stores = self.reader.find_of::<K>(kind);
        let key = ObjectKey::of(object);
        if self.dry_run {
            dry_run::deletion(kind, &key);
            return Ok(());
        }
        let gone = || {
            if let Some(stores) = &stores {
                stores.deleted(&key, uid(object));
            }
        };
        match request::delete::<K>(&self.client, kind, &key, &delete_params(object)).await {
            Ok(request::Deleted::Object(left)) => {
                if let Some(stores) = &stores {
                    stores.written(left, None);
                }
            }
            Ok(request::Deleted::Gone) => gone(),
            // Another object has the name now; the one that was meant is gone.
            Err(error) if error.is_conflict() => gone(),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn delete_params<K: AnyObject>(object: &K) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions { uid: object.meta().uid.clone(), resource_version: None }),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    }
}

/// An object as a tree of values.
pub(crate) fn encode<K: AnyObject>(object: &K, kind: &Kind, key: &ObjectKey) -> Result<Value> {
    serde_json::to_value(object).map_err(|source| Error::Encode {
        kind: Box::new(kind.clone()),
        key: key.clone(),
        source,
    })
}
