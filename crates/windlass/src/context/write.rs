//! Writes other than `apply`: creating, modifying and deleting single objects, with the cache kept up.
//!
//! What these return is in the cache before the call ends. A reconciler that creates as many Pods as are missing
//! counts them on its next run even if the watch is late: that is what other frameworks need expectations for.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Context;
use crate::{
    apply::{Onlookers, Trigger, dry_run, encode},
    error::Result,
    events::Event,
    merge,
    object::{AnyObject, Kind, Object, ObjectKey},
    owner, request,
    wire::Fresh,
};

impl<R: AnyObject> Context<R> {
    /// Creates an object. Without a name it needs `generateName`.
    ///
    /// The answer to an existing name is an error whose
    /// [`is_already_exists`](crate::Error::is_already_exists) is true.
    pub async fn create<K: Object>(&self, object: K) -> Result<Arc<K>> {
        self.create_as(&Kind::of::<K>(), object).await
    }

    /// Creates an object that the reconciled object controls, in its namespace unless it has one.
    pub async fn create_child<K: Object>(&self, object: K) -> Result<Arc<K>> {
        self.create_child_as(&Kind::of::<K>(), object).await
    }

    /// Changes an object in place and sends the difference, if there is one.
    ///
    /// The change is made to the copy that was handed in, and is refused with a conflict if the object has
    /// changed since. Status is not written: see [`Context::patch_status`].
    pub async fn modify<K: Object>(&self, object: &K, change: impl FnOnce(&mut K)) -> Result<Arc<K>> {
        self.modify_as(&Kind::of::<K>(), object, change).await
    }

    /// Sends a JSON merge patch.
    pub async fn patch<K: Object>(&self, object: &K, patch: &Value) -> Result<Arc<K>> {
        self.patch_as(&Kind::of::<K>(), object, patch).await
    }

    /// Deletes an object, but never a newer one of the same name. An object that is gone is no error.
    pub async fn delete<K: Object>(&self, object: &K) -> Result<()> {
        self.delete_as(&Kind::of::<K>(), object).await
    }

    /// Reads an object from the API server rather than from the cache; `None` if there is none.
    pub async fn fetch<K: Object>(&self, namespace: Option<&str>, name: &str) -> Result<Option<K>> {
        request::get(&self.shared.client, &Kind::of::<K>(), &ObjectKey::new(namespace, name)).await
    }

    /// Records an event about the reconciled object. Never waits, never fails.
    pub fn event(&self, event: Event) {
        match &self.object {
            Some(object) => self.shared.recorder.publish(self.watches.kind().reference(object.meta()), event),
            None => tracing::debug!(reason = event.reason(), "event about an object that is gone"),
        }
    }

    /// Records an event about another object. Never waits, never fails.
    pub fn event_about<K: Object>(&self, object: &K, event: Event) {
        self.shared.recorder.publish(object.object_ref(&()), event);
    }

    pub(super) async fn create_as<K: AnyObject>(&self, kind: &Kind, object: K) -> Result<Arc<K>> {
        let key = ObjectKey::of(&object);
        let mut body = encode(&object, kind, &key)?;
        body["apiVersion"] = kind.api_version().into();
        body["kind"] = kind.kind.clone().into();
        if self.shared.dry_run {
            return Ok(Arc::new(dry_run::merged("create", kind, &key, None, &body)?));
        }
        let (client, manager) = (&self.shared.client, self.shared.manager());
        let created = request::create::<K>(client, kind, &key, &body, manager).await?;
        Ok(self.enter(kind, created, Trigger::Everyone))
    }

    pub(super) async fn create_child_as<K: AnyObject>(&self, kind: &Kind, mut object: K) -> Result<Arc<K>> {
        let owner = self.owner("create a child")?;
        let meta = object.meta_mut();
        if kind.namespaced && meta.namespace.is_none() {
            meta.namespace = owner.key.namespace().map(ToOwned::to_owned);
        }
        owner::set_controller(meta, owner.reference);
        let onlookers = Onlookers::of(&self.shared, kind, object.meta())?;
        let created = self.create_as(kind, object).await?;
        if !onlookers.are_certain() {
            let value = encode(&*created, kind, &ObjectKey::of(&*created))?;
            onlookers.confirm(&self.shared, kind, &value, &self.key, Trigger::Everyone).await?;
        }
        Ok(created)
    }

    pub(super) async fn modify_as<K: AnyObject>(
        &self,
        kind: &Kind,
        object: &K,
        change: impl FnOnce(&mut K),
    ) -> Result<Arc<K>> {
        let key = ObjectKey::of(object);
        let mut wanted = object.clone();
        change(&mut wanted);
        let (old, new) = (encode(object, kind, &key)?, encode(&wanted, kind, &key)?);
        let Some(mut patch) = merge::diff(&old, &new) else {
            return Ok(Arc::new(wanted));
        };
        patch["metadata"]["resourceVersion"] = json!(object.meta().resource_version);
        self.patch_as(kind, object, &patch).await
    }

    pub(super) async fn patch_as<K: AnyObject>(
        &self,
        kind: &Kind,
        object: &K,
        patch: &Value,
    ) -> Result<Arc<K>> {
        let (key, params) = (ObjectKey::of(object), self.patch_params());
        if self.shared.dry_run {
            return Ok(Arc::new(dry_run::merged("patch", kind, &key, Some(object), patch)?));
        }
        let (client, patch) = (&self.shared.client, Patch::Merge(patch));
        let patched = request::patch::<K>(client, "patch", kind, &key, None, &patch, &params).await?;
        Ok(self.enter(kind, patched, Trigger::Everyone))
    }

    pub(super) async fn delete_as<K: AnyObject>(&self, kind: &Kind, object: &K) -> Result<()> {
        self.shared.delete(kind, object).await
    }

    pub(super) fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.shared.manager().to_owned()), ..PatchParams::default() }
    }

    /// Enters what a write returned into the cache, if the kind is cached.
    pub(super) fn enter<K: AnyObject>(&self, kind: &Kind, written: Fresh<K>, trigger: Trigger) -> Arc<K> {
        match self.shared.reader.find_of::<K>(kind) {
            Some(store) => self.shared.written(&store, written, &self.key, trigger),
            None => Arc::new(written.object),
        }
    }
}
