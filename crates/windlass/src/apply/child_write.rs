//! Where a child goes: deciding whether a request is needed, and sending it.

use std::{marker::PhantomData, sync::Arc};

use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};

use super::{Onlookers, Owner, Shared, Trigger, dry_run, encode, held, recall::Answer, succeed};
use crate::{
    cache::Store,
    error::{Error, Result},
    object::{AnyObject, Kind, ObjectKey, uid, version},
    owner, request,
    wire::{
        Fresh, Ownership,
        digest::{self, Digest},
    },
};

/// Where a child goes.
pub(super) struct ChildWrite<'a, K> {
    shared: &'a Shared,
    owner: &'a Owner,
    onlookers: Onlookers,
    kind: &'a Kind,
    key: ObjectKey,
    of: PhantomData<K>,
}

impl<'a, K: AnyObject> ChildWrite<'a, K> {
    pub(super) fn new(
        shared: &'a Shared,
        owner: &'a Owner,
        onlookers: Onlookers,
        kind: &'a Kind,
        key: ObjectKey,
    ) -> Self {
        Self { shared, owner, onlookers, kind, key, of: PhantomData }
    }

    /// Makes the child what is wanted, in the sight of a watch. Returns it, and whether that took a request.
    pub(super) async fn apply(&self, body: Value) -> Result<(Arc<K>, bool)> {
        let (object, written) = self.make(body).await?;
        if !self.onlookers.are_certain() {
            let value = encode(&*object, self.kind, &self.key)?;
            let (run, trigger) = (&self.owner.key, Trigger::Others);
            self.onlookers.confirm(self.shared, self.kind, &value, run, trigger).await?;
        }
        Ok((object, written))
    }

    async fn make(&self, mut body: Value) -> Result<(Arc<K>, bool)> {
        let digest = Digest::of(&self.shared.controller, &body);
        let mark = digest::mark(&self.shared.controller, digest);
        body["metadata"]["annotations"][self.shared.field_manager.annotation()] = mark.into();
        let Some((live, ownership)) = self.live().await? else {
            return Ok((self.create(body, digest).await?, true));
        };
        if !owner::belongs_to(live.meta(), &self.owner.reference.uid) {
            return Err(self.name_conflict());
        }
        if !ownership.inherits && self.is_in_force(&body, digest, &*live, &ownership)? {
            return Ok((live, false));
        }
        let uid = uid(&*live);
        if self.shared.dry_run {
            return Ok((self.rehearsed(Some(&*live), &body)?, true));
        }
        if ownership.inherits {
            self.succeed(uid).await?;
        }
        // Of an object that was replaced since, nothing may be overwritten.
        let answer = self.send(&with_uid(&body, uid), true).await?;
        self.remember(&body, digest, &answer)?;
        Ok((self.enter(answer, Trigger::Everyone)?, true))
    }

    /// Creates the child. Nothing may be taken by force from what is there against all expectation.
    async fn create(&self, body: Value, digest: Digest) -> Result<Arc<K>> {
        if self.shared.dry_run {
            return self.rehearsed(None, &body);
        }
        let answer = match self.send(&body, false).await {
            Ok(answer) => answer,
            Err(error) if error.is_conflict() => return Err(self.foreign(error).await),
            Err(error) => return Err(error),
        };
        if self.has_met_foreign(&answer).await {
            self.withdraw(uid(&answer.object)).await?;
            return Err(self.name_conflict());
        }
        self.remember(&body, digest, &answer)?;
        // The run that creates a child sees it in `Applied`; only others need to hear of it.
        self.enter(answer, Trigger::Others)
    }

    async fn send(&self, body: &Value, force: bool) -> Result<Fresh<K>> {
        let manager = Some(self.shared.field_manager.name().to_owned());
        // Fields that the schema does not have fail every apply. All that validation adds is a second parse, as strict YAML,
        // which finds keys that are there twice: a map has none.
        let params =
            PatchParams { field_manager: manager, force, ..PatchParams::default() }.validation_ignore();
        let (client, patch) = (&self.shared.client, Patch::Apply(body));

        request::patch::<K>(client, "apply", self.kind, &self.key, None, &patch, &params).await
    }

    fn rehearsed(&self, live: Option<&K>, body: &Value) -> Result<Arc<K>> {
        Ok(Arc::new(dry_run::merged("apply", self.kind, &self.key, live, body)?))
    }

    /// The child as it is: from the cache, or from the server where the cache may not hold it.
    async fn live(&self) -> Result<Option<(Arc<K>, Ownership)>> {
        // Other stores of the kind may be ahead or behind; those of `owns` have this run called when they change.
        let stores: Vec<Arc<Store<K>>> =
            self.onlookers.iter().filter_map(|one| one.store().downcast().ok()).collect();
        let copies = stores.iter().filter_map(|store| store.get_with_ownership(&self.key));
        match copies.max_by_key(|(object, _)| version(&**object)) {
            Some(cached) => Ok(Some(cached)),
            None if stores.iter().any(|store| !store.may_miss(&self.key)) => Ok(None),
            // A selector keeps it out, or only its metadata is cached.
            None => self.fetch().await,
        }
    }

    async fn fetch(&self) -> Result<Option<(Arc<K>, Ownership)>> {
        let live = request::get::<K>(&self.shared.client, self.kind, &self.key).await?;
        Ok(live.map(|live| {
            let fresh = Fresh::from(live);
            let ownership = self.ownership(&fresh);
            (Arc::new(fresh.object), ownership)
        }))
    }

    fn ownership(&self, fresh: &Fresh<K>) -> Ownership {
        Ownership::of(fresh, &self.shared.field_manager)
    }

    fn enter(&self, written: Fresh<K>, trigger: Trigger) -> Result<Arc<K>> {
        for other in self.onlookers.iter().filter(|one| !one.store().is::<Store<K>>()) {
            let value = encode(&written.object, self.kind, &self.key)?;
            other.enter(self.shared, value, &self.owner.key, trigger, false);
        }
        Ok(match self.shared.reader.find_of::<K>(self.kind) {
            Some(stores) => self.shared.written(&stores, written, &self.owner.key, trigger),
            None => Arc::new(written.object),
        })
    }

    /// A conflict on an object that the cache did not know: someone else has just made it.
    async fn foreign(&self, error: Error) -> Error {
        match request::get::<K>(&self.shared.client, self.kind, &self.key).await {
            Ok(Some(live)) if !owner::belongs_to(live.meta(), &self.owner.reference.uid) => {
                self.name_conflict()
            }
            _ => error,
        }
    }

    fn is_in_force(&self, body: &Value, digest: Digest, live: &K, ownership: &Ownership) -> Result<bool> {
        let Some(fields) = &ownership.fields else { return Ok(false) };
        let evident = ownership.digest == Some(digest)
            && held::holds(body, &encode(live, self.kind, &self.key)?, fields);
        Ok(evident
            || self.shared.recall.is_known(self.kind, &self.key, &Answer::new(uid(live), digest, ownership)))
    }

    /// Takes note of the answer to an apply, should it not speak for itself.
    fn remember(&self, body: &Value, digest: Digest, answer: &Fresh<K>) -> Result<()> {
        let (live, ownership) = (encode(&answer.object, self.kind, &self.key)?, self.ownership(answer));
        let evident = ownership.digest == Some(digest)
            && ownership.fields.as_deref().is_some_and(|fields| held::holds(body, &live, fields));
        let recalled = (!evident).then(|| Answer::new(uid(&answer.object), digest, &ownership));
        self.shared.recall.note(self.kind, &self.key, recalled);
        Ok(())
    }

    /// Takes over what former managers have set, so that the apply that follows can take away what is not wanted.
    async fn succeed(&self, uid: &str) -> Result<()> {
        let live = request::get::<DynamicObject>(&self.shared.client, self.kind, &self.key).await?;
        let Some(live) = live.filter(|live| live.uid().as_deref() == Some(uid)) else { return Ok(()) };
        let Some(patch) = succeed::patch(&self.shared.field_manager, &encode(&live, self.kind, &self.key)?)
        else {
            return Ok(());
        };
        tracing::info!(kind = %self.kind, child = %self.key, "taking over the fields of a former field manager");
        let (client, params, patch) =
            (&self.shared.client, PatchParams::default(), Patch::Json::<&Value>(patch));
        let what = "take over the fields of";
        request::patch::<DynamicObject>(client, what, self.kind, &self.key, None, &patch, &params).await?;
        Ok(())
    }

    /// Whether an apply that was to create has met an object of somebody else, as it was right before: now it bears
    /// our reference. What cannot be told any more counts as ours, for nothing of it was overwritten.
    async fn has_met_foreign(&self, answer: &Fresh<K>) -> bool {
        // An apply has no way to say that it must create; but what nobody else has a part in was not there before.
        if !answer.has_managers_beside(self.shared.field_manager.name()) {
            return false;
        }
        let before = version(&answer.object).saturating_sub(1);
        let old = request::get_at(&self.shared.client, self.kind, &self.key, before).await;
        let uid = &self.owner.reference.uid;
        matches!(old, Ok(Some(old)) if !owner::belongs_to(&old.metadata, uid))
    }

    /// Takes back all that we have put into an object that is not ours.
    async fn withdraw(&self, uid: &str) -> Result<()> {
        let mut nothing = json!({"metadata": {"name": self.key.name()}});
        nothing["apiVersion"] = self.kind.api_version().into();
        nothing["kind"] = self.kind.kind.clone().into();
        self.send(&with_uid(&nothing, uid), false).await.map(|_| ())
    }

    fn name_conflict(&self) -> Error {
        self.owner.name_conflict(self.kind, &self.key)
    }
}

fn with_uid(body: &Value, uid: &str) -> Value {
    let mut body = body.clone();
    body["metadata"]["uid"] = uid.into();
    body
}
