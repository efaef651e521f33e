//! Status: written through its subresource, only on change, and without conflicts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{api::Patch, core::object::HasStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::Context;
use crate::{
    apply::{Trigger, dry_run, encode, status::StatusPart},
    error::{Error, Result},
    merge,
    object::{AnyObject, Kind, Object, ObjectKey, uid},
    request,
};

impl<R: AnyObject> Context<R> {
    /// Sets the status of the reconciled object, and returns the object as it is then.
    ///
    /// Nothing is sent if the cached object has this status already. The difference to the object that the run began
    /// with, and to what it has written since, is sent as a merge patch of the status subresource, which cannot conflict
    /// with a change of the spec. What others have written since the run began stays; elements of lists are told apart by
    /// their `type`, as conditions are, or by their `name`.
    pub async fn update_status(&self, status: R::Status) -> Result<Arc<R>>
    where
        R: HasStatus,
        R::Status: Serialize,
    {
        let object = self.object("update the status")?;
        self.patch_status_as(self.watches.kind(), &**object, &status).await
    }

    /// Applies this controller's part of the status of the reconciled object, for a status that several controllers or
    /// programs write. Returns the object as it is then.
    ///
    /// Sent by server-side apply under a field manager of the controller's own, and only if that changes anything: the
    /// fields that are set become this controller's, those that it set before and no longer sets go away, and those of
    /// others stay. So that two writers can each have a condition, the list must be keyed by `type`
    /// (`x-kubernetes-list-type: map`), in Rust:
    ///
    /// ```text
    /// #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    /// pub conditions: Vec<Condition>,
    /// ```
    ///
    /// One controller should use either this or [`update_status`](Self::update_status) for an object, which sets all
    /// of its status.
    pub async fn apply_status(&self, status: &impl Serialize) -> Result<Arc<R>> {
        let object = self.object("apply the status")?;
        let kind = self.watches.kind();
        let part = StatusPart::new(&self.shared, kind, &**object, status)?;
        let cached = self.shared.reader.stores_of::<R>(kind)?.get_with_ownership(part.key());
        let cached = cached.filter(|(cached, _)| uid(&**cached) == uid(&**object));
        let (old, owned) =
            cached.map_or_else(|| (object.clone(), None), |(cached, ownership)| (cached, ownership.status));
        if part.is_in_force(&encode(&*old, kind, part.key())?, owned.as_deref()) {
            return Ok(old);
        }
        if self.shared.dry_run {
            let operation = "update the status of";
            return Ok(Arc::new(dry_run::merged(operation, kind, part.key(), Some(&*old), &part.body())?));
        }
        match part.send::<R>().await {
            Ok(new) => {
                let silent = same_but_status(old.meta(), new.object.meta());
                Ok(self.enter(kind, new, if silent { Trigger::Others } else { Trigger::Everyone }))
            }
            Err(error) if error.is_not_found() => self.status_not_found(kind, part.key(), old).await,
            Err(error) => Err(error),
        }
    }

    /// Sets the status of any object: for kinds without [`HasStatus`], such as the built-in ones, and for
    /// objects other than the reconciled one.
    ///
    /// What differs from the status of `object` is sent, and from what this run has written since;
    /// see [`Context::update_status`].
    pub async fn patch_status<K: Object>(&self, object: &K, status: &impl Serialize) -> Result<Arc<K>> {
        self.patch_status_as(&Kind::of::<K>(), object, status).await
    }

    pub(super) async fn patch_status_as<K: AnyObject>(
        &self,
        kind: &Kind,
        object: &K,
        status: &impl Serialize,
    ) -> Result<Arc<K>> {
        let key = ObjectKey::of(object);
        let cached = self.shared.reader.find_of::<K>(kind).and_then(|store| store.get(&key));
        let newest = cached.filter(|cached| uid(&**cached) == uid(object));
        let newest = newest.unwrap_or_else(|| Arc::new(object.clone()));
        let new = serde_json::to_value(status).map_err(|source| Error::Encode {
            kind: Box::new(kind.clone()),
            key: key.clone(),
            source,
        })?;
        let current = status_of(&*newest, kind, &key)?;
        let base = if newest.meta().resource_version == object.meta().resource_version {
            current.clone()
        } else {
            // The status was made from an older copy: what others have written since is not to be taken away.
            self.written.since(kind, &key, status_of(object, kind, &key)?)
        };
        let Some(change) = merge::diff(&base, &new) else { return Ok(newest) };
        let wanted = merge::rebase(&base, &new, &current);
        let written = match merge::diff(&current, &wanted) {
            Some(difference) => self.send_status(kind, &key, newest, difference).await?,
            None => newest,
        };
        self.written.add(kind, &key, change);
        Ok(written)
    }

    async fn send_status<K: AnyObject>(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        old: Arc<K>,
        status: Value,
    ) -> Result<Arc<K>> {
        let operation = "update the status of";
        if self.shared.dry_run {
            let patch = json!({ "status": status });
            return Ok(Arc::new(dry_run::merged(operation, kind, key, Some(&*old), &patch)?));
        }
        let patch = json!({ "metadata": { "uid": old.meta().uid }, "status": status });
        let (client, params, patch) = (&self.shared.client, self.patch_params(), Patch::Merge(&patch));
        match request::patch::<K>(client, operation, kind, key, Some("status"), &patch, &params).await {
            Ok(new) => {
                // The answer may carry a change of the spec that the watch has yet to deliver, and will then be
                // ignored as old: only an answer without one may pass silently.
                let silent = same_but_status(old.meta(), new.object.meta());
                Ok(self.enter(kind, new, if silent { Trigger::Others } else { Trigger::Everyone }))
            }
            Err(error) if error.is_not_found() => self.status_not_found(kind, key, old).await,
            Err(error) => Err(error),
        }
    }

    /// A status that is not found: either its object is gone, and nobody is left to report to, or the kind has none.
    async fn status_not_found<K: AnyObject>(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        old: Arc<K>,
    ) -> Result<Arc<K>> {
        if request::metadata(&self.shared.client, kind, key).await?.is_some() {
            return Err(Error::NoStatus { kind: Box::new(kind.clone()), key: key.clone() });
        }
        Ok(old)
    }
}

/// The changes of statuses that one run has made, as patches: its author derives the next one from them.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<Vec<(Kind, ObjectKey, Value)>>);

impl Written {
    fn add(&self, kind: &Kind, key: &ObjectKey, change: Value) {
        self.lock().push((kind.clone(), key.clone(), change));
    }

    /// An older status with these changes.
    fn since(&self, kind: &Kind, key: &ObjectKey, mut status: Value) -> Value {
        for (_, _, change) in self.lock().iter().filter(|(of, name, _)| of == kind && name == key) {
            merge::apply(&mut status, change);
        }
        status
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Kind, ObjectKey, Value)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The status of an object, empty if it has none.
fn status_of<K: AnyObject>(object: &K, kind: &Kind, key: &ObjectKey) -> Result<Value> {
    let mut object = encode(object, kind, key)?;
    let status = object.get_mut("status").map(Value::take).filter(|status| !status.is_null());
    Ok(status.unwrap_or_else(|| json!({})))
}

/// Whether two copies of an object differ at most in their status.
fn same_but_status(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let comparable =
        |meta: &ObjectMeta| ObjectMeta { managed_fields: None, resource_version: None, ..meta.clone() };
    // Without a generation there is no telling whether the spec is the same.
    old.generation.is_some() && comparable(old) == comparable(new)
}
