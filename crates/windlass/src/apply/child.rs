//! One child of a known type: deciding whether a request is needed, sending it, and pruning its kind.

use std::{any::Any, marker::PhantomData, sync::Arc};

use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::{AnyChild, BoxFuture, Erased, FieldSet, Owner, held, intent};
use crate::{
    cache::{self, Fresh, Store},
    context::{Shared, Trigger, encode, rehearsal},
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey, uid},
    owner, request,
};

pub(super) struct Child<K> {
    object: K,
    kind: Kind,
    key: ObjectKey,
}

impl<K: AnyObject> Child<K> {
    pub(super) fn new(kind: Kind, object: K) -> Self {
        Self { kind, key: ObjectKey::of(&object), object }
    }

    fn invalid(&self, reason: &'static str) -> Error {
        Error::InvalidChild { kind: Box::new(self.kind.clone()), key: self.key.clone(), reason }
    }
}

impl<K: AnyObject> AnyChild for Child<K> {
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

    fn conflict(&self, shared: &Shared, owner: &Owner) -> Option<Error> {
        let (store, key) = (shared.reader.find_of::<K>(&self.kind)?, self.key_under(owner).ok()?);
        let ours = store.is_controlled_by(&key, &owner.reference.uid)?;
        (!ours).then(|| owner.name_conflict(&self.kind, &key))
    }

    fn apply<'a>(&'a self, shared: &'a Shared, owner: &'a Owner) -> BoxFuture<'a, Result<(Erased, bool)>> {
        Box::pin(async move {
            let owned = shared.owned.find(&self.kind).ok_or_else(|| Error::NotOwned {
                kind: Box::new(self.kind.clone()),
                controller: shared.controller.to_string(),
            })?;
            let key = self.key_under(owner)?;
            if !owned.is_served() {
                return Err(Error::NotServed { kind: Box::new(self.kind.clone()), key });
            }
            let body = intent::body(&self.object, &self.kind, &key, owner)?;
            let place = Place::<K> { shared, owner, owned, kind: &self.kind, key, of: PhantomData };
            let (object, written) = place.apply(body).await?;
            Ok((object as Erased, written))
        })
    }
}

/// Where a child goes.
struct Place<'a, K> {
    shared: &'a Shared,
    owner: &'a Owner,
    owned: Arc<dyn OwnedKind>,
    kind: &'a Kind,
    key: ObjectKey,
    of: PhantomData<K>,
}

impl<K: AnyObject> Place<'_, K> {
    async fn apply(&self, mut body: Value) -> Result<(Arc<K>, bool)> {
        let live = self.live().await?;
        if let Some((live, fields)) = &live {
            if !owner::is_controlled_by(live.meta(), &self.owner.reference.uid) {
                return Err(self.name_conflict());
            }
            if self.is_held(&body, &**live, fields.as_deref())? {
                return Ok((live.clone(), false));
            }
            // Of an object that was replaced since, nothing may be overwritten.
            body["metadata"]["uid"] = uid(&**live).into();
        }
        if self.shared.dry_run {
            let live = live.as_ref().map(|(live, _)| &**live);
            return Ok((Arc::new(rehearsal::merged("apply", self.kind, &self.key, live, &body)?), true));
        }
        let params = PatchParams {
            field_manager: Some(self.shared.field_manager.to_string()),
            // What we control is ours to decide; of what we have not seen, nothing may be taken by force.
            force: live.is_some(),
            ..PatchParams::default()
        };
        let (client, patch) = (&self.shared.client, Patch::Apply(&body));
        match request::patch::<K>(client, "apply", self.kind, &self.key, None, &patch, &params).await {
            Ok(object) => {
                // The run that creates a child sees it in `Applied`; only others need to hear of it.
                let trigger = if live.is_some() { Trigger::Everyone } else { Trigger::Others };
                Ok((self.enter(object, trigger)?, true))
            }
            Err(error) if live.is_none() && error.is_conflict() => Err(self.foreign(error).await),
            Err(error) => Err(error),
        }
    }

    /// The child as it is: from the cache, or from the server where the cache may not hold it.
    async fn live(&self) -> Result<Option<(Arc<K>, Option<Arc<FieldSet>>)>> {
        match self.shared.reader.find_of::<K>(self.kind) {
            Some(store) => match store.get_with_fields(&self.key) {
                None if store.may_miss(&self.key) => self.fetch().await,
                cached => Ok(cached),
            },
            // Only its metadata is cached.
            None => self.fetch().await,
        }
    }

    async fn fetch(&self) -> Result<Option<(Arc<K>, Option<Arc<FieldSet>>)>> {
        let live = request::get::<K>(&self.shared.client, self.kind, &self.key).await?;
        Ok(live.map(|live| {
            let fresh = Fresh::from(live);
            let fields = fresh.fields(&self.shared.field_manager).map(Arc::new);
            (Arc::new(fresh.object), fields)
        }))
    }

    fn enter(&self, written: Fresh<K>, trigger: Trigger) -> Result<Arc<K>> {
        if let Some(store) = self.shared.reader.find_of::<K>(self.kind) {
            return Ok(self.shared.written(&store, written, &self.owner.key, trigger));
        }
        let object = written.object;
        let value = encode(&object, self.kind, &self.key)?;
        self.owned.enter(self.shared, value, &self.owner.key, trigger);
        Ok(Arc::new(object))
    }

    /// A conflict on an object that the cache did not know: someone else has just made it.
    async fn foreign(&self, error: Error) -> Error {
        match request::get::<K>(&self.shared.client, self.kind, &self.key).await {
            Ok(Some(live)) if !owner::is_controlled_by(live.meta(), &self.owner.reference.uid) => {
                self.name_conflict()
            }
            _ => error,
        }
    }

    fn is_held(&self, body: &Value, live: &K, fields: Option<&FieldSet>) -> Result<bool> {
        let Some(fields) = fields else { return Ok(false) };
        Ok(held::holds(body, &encode(live, self.kind, &self.key)?, fields))
    }

    fn name_conflict(&self) -> Error {
        self.owner.name_conflict(self.kind, &self.key)
    }
}

/// A kind that a controller owns, whatever its type.
pub(crate) trait OwnedKind: Send + Sync {
    fn kind(&self) -> &Kind;
    fn is_served(&self) -> bool;
    /// Enters an object that was written in another form than it is cached.
    fn enter(&self, shared: &Shared, object: Value, run: &ObjectKey, trigger: Trigger);
    /// Deletes what the owner controls and does not want. Returns how many that were.
    fn prune<'a>(
        &'a self,
        shared: &'a Shared,
        owner: &'a Owner,
        wanted: &'a [(Kind, ObjectKey)],
    ) -> BoxFuture<'a, Result<usize>>;
}

pub(crate) struct OwnedStore<K> {
    pub(crate) store: Arc<Store<K>>,
}

impl<K: AnyObject> OwnedKind for OwnedStore<K> {
    fn kind(&self) -> &Kind {
        self.store.kind()
    }

    fn is_served(&self) -> bool {
        self.store.is_served()
    }

    fn enter(&self, shared: &Shared, object: Value, run: &ObjectKey, trigger: Trigger) {
        // What cannot be read in this form arrives through the watch, and is reported there.
        if let Ok(object) = cache::read::<K>(&object.to_string()) {
            shared.written(&self.store, object, run, trigger);
        }
    }

    fn prune<'a>(
        &'a self,
        shared: &'a Shared,
        owner: &'a Owner,
        wanted: &'a [(Kind, ObjectKey)],
    ) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let mut pruned = 0;
            let kind = self.store.kind();
            for key in self.store.keys_owned_by(&owner.reference.uid) {
                if wanted.iter().any(|(of, want)| of == kind && *want == key) {
                    continue;
                }
                let Some(object) = self.store.get(&key) else { continue };
                let ours = owner::is_controlled_by(object.meta(), &owner.reference.uid);
                if !ours || object.meta().deletion_timestamp.is_some() {
                    continue;
                }
                tracing::info!(%kind, child = %key, "deleting a child that is no longer wanted");
                shared.delete(Some(&*self.store), kind, &*object).await?;
                pruned += 1;
            }
            Ok(pruned)
        })
    }
}
