//! One child of a known type: where it belongs, and the kind that a controller owns and prunes.

use std::{any::Any, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{
    AnyChild, BoxFuture, Erased, Onlookers, Owner, Shared, Trigger, child_write::ChildWrite, intent,
};
use crate::{
    cache::{Scope, Sight, Store, Stores},
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey},
    owner,
    wire::{self, digest},
};

pub(super) struct Child<K> {
    object: K,
    kind: Kind,
    key: ObjectKey,
    detached: bool,
}

impl<K: AnyObject> Child<K> {
    pub(super) fn new(kind: Kind, object: K) -> Self {
        Self { kind, key: ObjectKey::of(&object), object, detached: false }
    }

    pub(super) fn detached(self) -> Self {
        Self { detached: true, ..self }
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

    fn is_detached(&self) -> bool {
        self.detached
    }

    fn key_under(&self, owner: &Owner) -> Result<ObjectKey> {
        if self.key.name().is_empty() {
            return Err(self.invalid("a child needs a name; use ctx.create for generated names"));
        }
        let (own, theirs) = (self.key.namespace(), owner.key.namespace());
        match (self.kind.namespaced, own, theirs) {
            (false, _, Some(_)) if !self.detached => Err(self.invalid(
                "a namespaced object cannot own a cluster-scoped one; add it with Children::with_detached",
            )),
            (false, _, _) => Ok(ObjectKey::cluster(self.key.name())),
            (true, None, None) => {
                Err(self.invalid("a namespaced child of a cluster-scoped owner needs a namespace"))
            }
            (true, Some(own), Some(theirs)) if own != theirs && !self.detached => Err(self.invalid(
                "an owner can only own objects in its own namespace; add it with Children::with_detached",
            )),
            (true, own, theirs) => Ok(ObjectKey::new(own.or(theirs), self.key.name())),
        }
    }

    fn conflict(&self, shared: &Shared, owner: &Owner) -> Option<Error> {
        let (stores, key) = (shared.owned.stores::<K>(&self.kind)?, self.key_under(owner).ok()?);
        let ours = stores.is_controlled_by(&key, &owner.reference.uid)?;
        (!ours).then(|| owner.name_conflict(&self.kind, &key))
    }

    fn apply<'a>(&'a self, shared: &'a Shared, owner: &'a Owner) -> BoxFuture<'a, Result<(Erased, bool)>> {
        Box::pin(async move {
            let owned = shared.owned.of(&self.kind);
            if owned.is_empty() {
                return Err(Error::NotOwned {
                    kind: Box::new(self.kind.clone()),
                    controller: shared.controller.to_string(),
                });
            }
            let key = self.key_under(owner)?;
            if !owned.iter().all(|owned| owned.is_served()) {
                return Err(Error::NotServed { kind: Box::new(self.kind.clone()), key });
            }
            let meta = ObjectMeta {
                namespace: key.namespace().map(ToOwned::to_owned),
                name: Some(key.name().to_owned()),
                labels: self.object.meta().labels.clone(),
                ..ObjectMeta::default()
            };
            let onlookers = Onlookers::of(shared, &self.kind, &meta)?;
            let body = intent::body(&self.object, &self.kind, &key, owner, self.detached)?;
            let (object, written) =
                ChildWrite::<K>::new(shared, owner, onlookers, &self.kind, key).apply(body).await?;
            Ok((object as Erased, written))
        })
    }
}

/// A kind that a controller owns, in one scope, whatever its type.
pub(crate) trait OwnedKind: Send + Sync {
    fn kind(&self) -> &Kind;
    fn scope(&self) -> &Scope;
    fn is_served(&self) -> bool;
    /// Whether the watch delivers an object with this metadata.
    fn sight(&self, meta: &ObjectMeta) -> Sight;
    /// Whether the object is in the cache.
    fn holds(&self, key: &ObjectKey) -> bool;
    /// The store, of some type.
    fn store(&self) -> Erased;
    /// Enters an object that was written in another form than it is cached. `seen`: the server has said that the
    /// watch delivers it.
    fn enter(&self, shared: &Shared, object: Value, run: &ObjectKey, trigger: Trigger, seen: bool);
    /// Deletes the detached children of an owner. Returns how many are still there.
    fn delete_detached<'a>(&'a self, shared: &'a Shared, owner_uid: &'a str) -> BoxFuture<'a, Result<usize>>;
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

    fn scope(&self) -> &Scope {
        self.store.scope()
    }

    fn is_served(&self) -> bool {
        self.store.is_served()
    }

    fn sight(&self, meta: &ObjectMeta) -> Sight {
        self.store.sight(meta)
    }

    fn holds(&self, key: &ObjectKey) -> bool {
        self.store.contains(key)
    }

    fn store(&self) -> Erased {
        self.store.clone()
    }

    fn enter(&self, shared: &Shared, object: Value, run: &ObjectKey, trigger: Trigger, seen: bool) {
        // What cannot be read in this form arrives through the watch, and is reported there.
        let Ok(object) = wire::read::<K>(&object.to_string()) else { return };
        let origin = shared.origin(run, trigger);
        if seen {
            self.store.written_in_sight(object, origin.as_ref());
        } else if let Some(stores) = Stores::new(vec![self.store.clone()]) {
            stores.written(object, origin.as_ref());
        }
    }

    fn delete_detached<'a>(&'a self, shared: &'a Shared, owner_uid: &'a str) -> BoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let kind = self.store.kind();
            // A label alone is no proof: anybody may set one.
            let is_ours = |child: &&Arc<K>| {
                owner::is_detached(child.meta()) && self.store.is_applied(&ObjectKey::of(&***child))
            };
            let children = self.store.owned_by(owner_uid);
            for child in children.iter().filter(is_ours) {
                if child.meta().deletion_timestamp.is_none() {
                    tracing::info!(%kind, child = %ObjectKey::of(&**child), "deleting a child after its owner");
                    shared.delete(kind, &**child).await?;
                }
            }
            let left = self.store.owned_by(owner_uid);
            Ok(left.iter().filter(is_ours).count())
        })
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
                let ours = owner::belongs_to(object.meta(), &owner.reference.uid);
                let applied = self.store.is_applied(&key) && !is_of_another_controller(shared, &*object);
                if !ours || !applied || object.meta().deletion_timestamp.is_some() {
                    continue;
                }
                tracing::info!(%kind, child = %key, "deleting a child that is no longer wanted");
                shared.delete(kind, &*object).await?;
                shared.recall.note(kind, &key, None);
                pruned += 1;
            }
            Ok(pruned)
        })
    }
}

/// Whether another controller of this operator has applied the object.
fn is_of_another_controller<K: AnyObject>(shared: &Shared, object: &K) -> bool {
    let controller = shared.field_manager.mark_of(object.meta()).and_then(digest::controller_of);
    controller.is_some_and(|name| {
        *name != *shared.controller && shared.controllers.iter().any(|other| other == name)
    })
}
