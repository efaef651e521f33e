//! Reads and writes of kinds that are known only when the program runs.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::Value;

use super::Context;
use crate::{
    cache,
    error::Result,
    events::Event,
    object::{AnyObject, Kind, ObjectKey, uid},
    request,
};

/// What [`Context`] offers for a typed kind, for a kind that is known only when the program runs.
///
/// Reads come from the cache: the controller must watch the kind, declared with
/// [`Watch::dynamic`](crate::Watch::dynamic) or added with [`Context::watches`]. Writes need no watch.
#[derive(Debug)]
pub struct Dynamic<'a, R> {
    ctx: &'a Context<R>,
    kind: &'a Kind,
}

impl<'a, R: AnyObject> Dynamic<'a, R> {
    pub(super) fn new(ctx: &'a Context<R>, kind: &'a Kind) -> Self {
        Self { ctx, kind }
    }

    /// As [`Context::get`].
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Result<Option<Arc<DynamicObject>>> {
        self.ctx.shared.reader.get_dynamic(self.kind, namespace, name)
    }

    /// As [`Context::list`].
    pub fn list(&self, namespace: Option<&str>) -> Result<Vec<Arc<DynamicObject>>> {
        self.ctx.shared.reader.list_dynamic(self.kind, namespace)
    }

    /// As [`Context::list_where`].
    pub fn list_where(&self, namespace: Option<&str>, labels: &str) -> Result<Vec<Arc<DynamicObject>>> {
        cache::matching(&self.ctx.shared.reader.stores_of(self.kind)?, namespace, labels)
    }

    /// As [`Context::owned`].
    pub fn owned(&self) -> Result<Vec<Arc<DynamicObject>>> {
        let owner = self.ctx.object("read owned objects")?;
        Ok(self.ctx.shared.family(self.kind)?.owned_by(uid(&**owner)))
    }

    /// As [`Context::indexed`].
    pub fn indexed(&self, index: &str, value: &str) -> Result<Vec<Arc<DynamicObject>>> {
        cache::indexed(&self.ctx.shared.reader.stores_of(self.kind)?, index, None, value)
    }

    /// As [`Context::indexed_in`].
    pub fn indexed_in(&self, namespace: &str, index: &str, value: &str) -> Result<Vec<Arc<DynamicObject>>> {
        cache::indexed(&self.ctx.shared.reader.stores_of(self.kind)?, index, Some(namespace), value)
    }

    /// As [`Context::is_served`].
    pub fn is_served(&self) -> Result<bool> {
        Ok(self.ctx.shared.reader.stores_of::<DynamicObject>(self.kind)?.is_served())
    }

    /// As [`Context::fetch`].
    pub async fn fetch(&self, namespace: Option<&str>, name: &str) -> Result<Option<DynamicObject>> {
        request::get(&self.ctx.shared.client, self.kind, &ObjectKey::new(namespace, name)).await
    }

    /// As [`Context::create`].
    pub async fn create(&self, object: DynamicObject) -> Result<Arc<DynamicObject>> {
        self.ctx.create_as(self.kind, object).await
    }

    /// As [`Context::create_child`].
    pub async fn create_child(&self, object: DynamicObject) -> Result<Arc<DynamicObject>> {
        self.ctx.create_child_as(self.kind, object).await
    }

    /// As [`Context::modify`]. Also takes metadata alone.
    pub async fn modify<K: AnyObject>(&self, object: &K, change: impl FnOnce(&mut K)) -> Result<Arc<K>> {
        self.ctx.modify_as(self.kind, object, change).await
    }

    /// As [`Context::patch`]. Also takes metadata alone.
    pub async fn patch<K: AnyObject>(&self, object: &K, patch: &Value) -> Result<Arc<K>> {
        self.ctx.patch_as(self.kind, object, patch).await
    }

    /// As [`Context::patch_status`].
    pub async fn patch_status(
        &self,
        object: &DynamicObject,
        status: &impl Serialize,
    ) -> Result<Arc<DynamicObject>> {
        self.ctx.patch_status_as(self.kind, object, status).await
    }

    /// As [`Context::delete`]. Also takes metadata alone.
    pub async fn delete<K: AnyObject>(&self, object: &K) -> Result<()> {
        self.ctx.delete_as(self.kind, object).await
    }

    /// As [`Context::event_about`]. Also takes metadata alone.
    pub fn event_about<K: AnyObject>(&self, object: &K, event: Event) {
        self.ctx.shared.recorder.publish(self.kind.reference(object.meta()), event);
    }
}
