//! One child of a known type: deciding whether a request is needed, sending it, and pruning its kind.

use std::{any::Any, sync::Arc};

use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::{AnyChild, AnyObject, BoxFuture, FieldSet, Owner, held, intent};
use crate::{
    cache::Store,
    context::{Shared, Trigger},
    error::{Error, Result},
    object::{Kind, Object, ObjectKey, uid},
    owner, request,
};

pub(super) struct Child<K> {
    object: K,
    kind: Kind,
    key: ObjectKey,
}

impl<K: Object> Child<K> {
    pub(super) fn new(object: K) -> Self {
        Self { kind: Kind::of::<K>(), key: ObjectKey::of(&object), object }
    }

    fn invalid(&self, reason: &'static str) -> Error {
        Error::InvalidChild { kind: Box::new(self.kind.clone()), key: self.key.clone(), reason }
    }
}

impl<K: Object> AnyChild for Child<K> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn object(&self) -> &dyn Any {
        &self.object
    }

    fn key_under(&self, owner: &Owner) -> Result<ObjectKey> {
        if self.key.name().is_empty() {
            return Err(self.invalid("a child needs a name; use ctx.create for generated names"));
        }
        let (own, theirs) = (self.key.namespace(), owner.key.namespace());
        match (self.kind.namespaced, own, theirs) {
            (false, _, Some(_)) => Err(self.invalid("a namespaced object cannot own a cluster-scoped one")),
            (false, _, None) => Ok(ObjectKey::cluster(self.key.name())),
            (true, None, None) => {
                Err(self.invalid("a namespaced child of a cluster-scoped owner needs a namespace"))
            }
            (true, Some(own), Some(theirs)) if own != theirs => {
                Err(self.invalid("an owner can only own objects in its own namespace"))
            }
            (true, own, theirs) => Ok(ObjectKey::new(own.or(theirs), self.key.name())),
        }
    }

    fn apply<'a>(&'a self, shared: &'a Shared, owner: &'a Owner) -> BoxFuture<'a, Result<(AnyObject, bool)>> {
        Box::pin(async move {
            let store = shared.reader.find::<K>().filter(|_| shared.owns(&self.kind)).ok_or_else(|| {
                Error::NotOwned {
                    kind: Box::new(self.kind.clone()),
                    controller: shared.controller.to_string(),
                }
            })?;
            let key = self.key_under(owner)?;
            let body = intent::body(&self.object, &self.kind, &key, owner)?;
            let (object, written) = apply_one::<K>(shared, &store, owner, &key, body).await?;
            Ok((object as AnyObject, written))
        })
    }
}

async fn apply_one<K: Object>(
    shared: &Shared,
    store: &Store<K>,
    owner: &Owner,
    key: &ObjectKey,
    mut body: Value,
) -> Result<(Arc<K>, bool)> {
    let live = match store.get_with_fields(key) {
        None if store.is_partial() => fetch::<K>(shared, key).await?,
        cached => cached,
    };
    if let Some((live, fields)) = &live {
        if !owner::is_controlled_by(live.meta(), &owner.reference.uid) {
            return Err(name_conflict::<K>(key, owner));
        }
        if is_held(&body, &**live, fields.as_deref(), key)? {
            return Ok((live.clone(), false));
        }
        // Of an object that was replaced since, nothing may be overwritten.
        body["metadata"]["uid"] = uid(&**live).into();
    }
    let params = PatchParams {
        field_manager: Some(shared.field_manager.to_string()),
        // What we control is ours to decide; of what we have not seen, nothing may be taken by force.
        force: live.is_some(),
        ..PatchParams::default()
    };
    let existed = live.is_some();
    match request::patch::<K>(&shared.client, "apply", key, None, &Patch::Apply(&body), &params).await {
        Ok(object) => {
            // The run that creates a child sees it in `Applied`; only others need to hear of it.
            let trigger = if existed { Trigger::Everyone } else { Trigger::Others };
            Ok((shared.written(store, object, &owner.key, trigger), true))
        }
        Err(error) if !existed && error.is_conflict() => Err(foreign::<K>(shared, key, owner, error).await),
        Err(error) => Err(error),
    }
}

/// Reads a child that a cache with a selector may not hold.
async fn fetch<K: Object>(
    shared: &Shared,
    key: &ObjectKey,
) -> Result<Option<(Arc<K>, Option<Arc<FieldSet>>)>> {
    let live = request::get::<K>(&shared.client, key).await?;
    Ok(live.map(|mut live| {
        let fields = FieldSet::take(live.meta_mut(), &shared.field_manager).map(Arc::new);
        (Arc::new(live), fields)
    }))
}

/// A conflict on an object that the cache did not know: someone else has just made it.
async fn foreign<K: Object>(shared: &Shared, key: &ObjectKey, owner: &Owner, error: Error) -> Error {
    match request::get::<K>(&shared.client, key).await {
        Ok(Some(live)) if !owner::is_controlled_by(live.meta(), &owner.reference.uid) => {
            name_conflict::<K>(key, owner)
        }
        _ => error,
    }
}

fn is_held<K: Object>(body: &Value, live: &K, fields: Option<&FieldSet>, key: &ObjectKey) -> Result<bool> {
    let Some(fields) = fields else { return Ok(false) };
    let live = serde_json::to_value(live).map_err(|source| Error::Encode {
        kind: Box::new(Kind::of::<K>()),
        key: key.clone(),
        source,
    })?;
    Ok(held::holds(body, &live, fields))
}

fn name_conflict<K: Object>(key: &ObjectKey, owner: &Owner) -> Error {
    Error::NameConflict { kind: Box::new(Kind::of::<K>()), key: key.clone(), owner: owner.describe() }
}

/// A kind that a controller owns, whatever its type.
pub(crate) trait OwnedKind: Send + Sync {
    fn kind(&self) -> &Kind;
    /// Deletes what the owner controls and does not want. Returns how many that were.
    fn prune<'a>(
        &'a self,
        shared: &'a Shared,
        owner: &'a Owner,
        wanted: &'a [(Kind, ObjectKey)],
    ) -> BoxFuture<'a, Result<usize>>;
}

pub(crate) struct TypedOwnedKind<K> {
    pub(crate) kind: Kind,
    pub(crate) store: Arc<Store<K>>,
}

impl<K: Object> OwnedKind for TypedOwnedKind<K> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn prune<'a>(
        &'a self,
        shared: &'a Shared,
        owner: &'a Owner,
        wanted: &'a [(Kind, ObjectKey)],
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let mut pruned = 0;
            for object in self.store.owned_by(&owner.reference.uid) {
                let key = ObjectKey::of(&*object);
                let is_wanted = wanted.iter().any(|(kind, want)| *kind == self.kind && *want == key);
                if is_wanted || object.meta().deletion_timestamp.is_some() {
                    continue;
                }
                tracing::info!(kind = %self.kind, child = %key, "deleting a child that is no longer wanted");
                shared.delete(&self.store, &*object).await?;
                pruned += 1;
            }
            Ok(pruned)
        })
    }
}
