//! A part of a status, by server-side apply: several writers of one status lose nothing of each other's.
//!
//! Enters: a status, of which the fields that are set are meant. Leaves: the object as it is then. As for children,
//! nothing is sent if nothing would change.

use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Shared, encode, held, recall::Answer, strip_nulls};
use crate::{
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey, uid},
    request,
    wire::{FieldSet, Fresh, digest::Digest},
};

/// A status that is to be applied, and the object that has it.
pub(crate) struct StatusPart<'a> {
    shared: &'a Shared,
    kind: &'a Kind,
    key: ObjectKey,
    uid: String,
    status: Value,
    digest: Digest,
}

impl<'a> StatusPart<'a> {
    pub(crate) fn new<K: AnyObject>(
        shared: &'a Shared,
        kind: &'a Kind,
        object: &K,
        status: &impl Serialize,
    ) -> Result<Self> {
        let key = ObjectKey::of(object);
        let encode = |source| Error::Encode { kind: Box::new(kind.clone()), key: key.clone(), source };
        let mut status = serde_json::to_value(status).map_err(encode)?;
        strip_nulls(&mut status);
        let digest = Digest::of(&shared.controller, &status);
        Ok(Self { shared, kind, uid: uid(object).to_owned(), status, digest, key })
    }

    /// Whether an apply would change nothing of an object whose status our controllers own in these parts.
    pub(crate) fn is_in_force(&self, live: &Value, owned: Option<&FieldSet>) -> bool {
        let Some(owned) = owned.and_then(|owned| owned.at(&self.shared.controller)) else { return false };
        held::holds_exactly(&self.status, &live["status"], owned)
            || self.shared.status_recall.is_known(self.kind, &self.key, &self.answer(Some(owned)))
    }

    /// Sends the status, and takes note of an answer that does not speak for itself.
    pub(crate) async fn send<K: AnyObject>(&self) -> Result<Fresh<K>> {
        let params = PatchParams {
            field_manager: Some(self.shared.field_manager.of_status(&self.shared.controller)),
            // What this controller reports is its own to decide.
            force: true,
            ..PatchParams::default()
        }
        // As for children: a second parse that could find nothing.
        .validation_ignore();
        let (client, operation, body) = (&self.shared.client, "update the status of", self.body());
        let patch = Patch::Apply(&body);
        let answer =
            request::patch::<K>(client, operation, self.kind, &self.key, Some("status"), &patch, &params)
                .await?;
        let live = encode(&answer.object, self.kind, &self.key)?;
        let owned = answer.fields(&self.shared.field_manager).status;
        let owned = owned.as_ref().and_then(|owned| owned.at(&self.shared.controller));
        let evident = owned.is_some_and(|owned| held::holds_exactly(&self.status, &live["status"], owned));
        self.shared.status_recall.note(self.kind, &self.key, (!evident).then(|| self.answer(owned)));
        Ok(answer)
    }

    pub(crate) fn body(&self) -> Value {
        json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.kind,
            // Of an object that was replaced since, nothing may be overwritten.
            "metadata": {"name": self.key.name(), "namespace": self.key.namespace(), "uid": self.uid},
            "status": self.status,
        })
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn answer(&self, owned: Option<&FieldSet>) -> Answer {
        Answer::of_status(&self.uid, self.digest, owned.cloned())
    }
}
