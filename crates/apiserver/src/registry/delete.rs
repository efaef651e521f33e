//! Deletion: preconditions, grace, propagation and finalizers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Operation, Presented, Registry, Resource, decode,
    list::ListOptions,
    metadata::{self, has_finalizers, is_deleting, meta},
    resource::text,
    write::{CONTENDED, Target, Write, WriteOptions},
};
use crate::{
    error::{Error, Result},
    store::{Draft, Object, WriteError},
};

/// A deletion as the store has it.
#[derive(Debug)]
enum Removal {
    Gone(Value),
    Pending(Arc<Object>),
}

/// What becomes of the objects that the deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// The policy as the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// The body of a DELETE.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// How long the object may take to end; only Pods take any time.
    pub grace_period_seconds: Option<i64>,
    /// What the object must be.
    pub preconditions: Preconditions,
    /// What becomes of dependents.
    pub propagation_policy: Option<Propagation>,
    /// The old word for Orphan.
    pub orphan_dependents: Option<bool>,
    /// `["All"]` for a dry run.
    pub dry_run: Vec<String>,
}

/// What the object must be for the deletion to go on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its revision.
    pub resource_version: Option<String>,
}

/// The outcome of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// The object stays until its finalizers or its grace period end.
    Pending(Presented),
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Registry {
    /// Deletes one object, or begins to.
    pub async fn delete(
        &self,
        target: Target<'_>,
        options: &DeleteOptions,
        write: &WriteOptions,
    ) -> Result<Deleted> {
        match self.remove(&Write::new(target, write), options).await? {
            Removal::Gone(last) => Ok(Deleted::Gone(last)),
            Removal::Pending(object) => self.present(target.resource, &object).await.map(Deleted::Pending),
        }
    }

    /// Deletes one object on the server's own account: nobody is asked about it.
    pub(super) async fn delete_unasked(
        &self,
        target: Target<'_>,
        options: &DeleteOptions,
        write: &WriteOptions,
    ) -> Result<()> {
        self.remove(&Write::of_server(target, write), options).await.map(|_| ())
    }

    /// The steps of a delete: check, admit, commit.
    async fn remove(&self, write: &Write<'_>, options: &DeleteOptions) -> Result<Removal> {
        let target = write.target;
        let request = write.attributes(Operation::Delete, target.name);
        for _ in 0..CONTENDED {
            let (current, old) = self.deletable(target, options)?;
            if write.asks() && self.needs_admission(&request) {
                let shown = self.present(target.resource, &current).await?.into_value();
                self.delete_by_admission(&request, &shown).await?;
            }
            if let Some(removal) =
                self.attempt_delete(target, &current, &old, options, write.options.dry_run)?
            {
                return Ok(removal);
            }
        }
        Err(Error::stale(target.resource.named(), target.name))
    }

    fn deletable(&self, target: Target<'_>, options: &DeleteOptions) -> Result<(Arc<Object>, Value)> {
        let Target { resource, namespace, name, .. } = target;
        let current = self.get(resource, namespace, name)?;
        let old = decode::stored(&current);
        check_preconditions(resource, name, &old, &options.preconditions)?;
        resource.allow_delete(name)?;
        Ok((current, old))
    }

    /// `None` when another write came between.
    fn attempt_delete(
        &self,
        target: Target<'_>,
        current: &Arc<Object>,
        old: &Value,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> Result<Option<Removal>> {
        match self.try_delete(target.resource, current, old, options, dry_run) {
            Ok(removal) => Ok(Some(removal)),
            Err(WriteError::Missing) => Err(Error::not_found(target.resource.named(), target.name)),
            Err(WriteError::TooLarge) => Err(Error::too_large()),
            Err(WriteError::Disk(why)) => Err(why.into()),
            Err(WriteError::Moved(_) | WriteError::Exists) => Ok(None),
        }
    }

    fn try_delete(
        &self,
        resource: &Resource,
        current: &Arc<Object>,
        old: &Value,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> Result<Removal, WriteError> {
        let grace = (resource.strategy.grace_period)(
            old,
            options.grace_period_seconds.map(|asked| if asked < 0 { 1 } else { asked }),
        );
        let mut new = old.clone();
        set_propagation(&mut new, options, resource.strategy.orphans_by_default);
        if !is_deleting(old) {
            (resource.strategy.begin_deletion)(&mut new, self.environment());
        }
        let vanishes = grace == 0 && resource.may_vanish(&new);
        if vanishes {
            if !dry_run {
                let mut current = Arc::clone(current);
                if resource.strategy.marked_first && !is_deleting(old) {
                    self.mark(resource, &mut new, grace, options.grace_period_seconds.is_some());
                    // Not as other changes are committed: what may vanish would be gone with it, and nobody had seen it go.
                    let marked = resource.to_storage(new.clone());
                    let draft = Draft::encode(&marked, resource.fields_of(&marked));
                    let (table, key) = (&resource.table, &current.key);
                    current = self.store().update_with(Vec::new(), table, key, current.revision, draft)?;
                }
                let draft = Draft::encode(&new, resource.fields_of(&new));
                let last = self.store().delete(&resource.table, &current.key, current.revision, draft)?;
                (resource.strategy.after_removal)(self, resource, &last);
                new = decode::stored(&last);
            }
            return Ok(Removal::Gone(new));
        }
        self.mark(resource, &mut new, grace, options.grace_period_seconds.is_some());
        if new == *old || dry_run {
            return Ok(Removal::Pending(Arc::clone(current)));
        }
        // What is stored is of the stored version already; only a definition can have chosen another one since.
        let stored = if resource.custom().is_some() { resource.to_storage(new) } else { new };
        Ok(Removal::Pending(self.commit_change(resource, current, &stored)?))
    }

    /// Writes the end that the object is heading for. A deletion can be made sooner by who says how soon, never later.
    fn mark(&self, resource: &Resource, object: &mut Value, grace: i64, asked: bool) {
        let (now, mut grace) = (self.environment().now(), grace);
        let after = |start: Timestamp, seconds: i64| {
            start.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(start)
        };
        let mut end = after(now, grace);
        let first = !is_deleting(object);
        if !first {
            let Some(before) = meta(object, "deletionGracePeriodSeconds").as_i64() else { return };
            if !asked || before <= grace {
                return;
            }
            // Counted from the moment at which the deletion began.
            let planned = text(object, "/metadata/deletionTimestamp").parse().unwrap_or(now);
            end = after(after(planned, before.saturating_neg()), grace);
            if end < now {
                (end, grace) = (now, grace.min(1));
            }
        }
        let generation = meta(object, "generation").as_i64();
        let metadata = metadata::metadata(object);
        metadata.insert("deletionTimestamp".into(), json!(end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
        if resource.strategy.has_grace_period {
            metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
        }
        if let (true, Some(generation)) = (first, generation) {
            metadata.insert("generation".into(), json!(generation + 1));
        }
        (resource.strategy.terminating)(object);
    }

    /// Deletes everything that matches, one after the other.
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        list: &ListOptions,
        options: &DeleteOptions,
        write: &WriteOptions,
    ) -> Result<Vec<Presented>> {
        let found = self.list(resource, list)?;
        let mut shown = Vec::with_capacity(found.objects.len());
        for object in found.objects {
            let (namespace, name) = (&*object.key.namespace, &*object.key.name);
            let target = Target { resource, namespace, name, subresource: "" };
            match self.delete(target, options, write).await {
                // What is shown is what was found, not what became of it.
                Ok(_) => shown.push(self.present(resource, &object).await?),
                // Somebody was faster.
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(shown)
    }

    /// Begins to delete every object of a resource that is going away itself.
    pub(super) fn drain(&self, resource: &Resource) -> Result<()> {
        for object in self.list(resource, &ListOptions::default())?.objects {
            let (namespace, name) = (&*object.key.namespace, &*object.key.name);
            let target = Target { resource, namespace, name, subresource: "" };
            let write = WriteOptions::default();
            match Self::at_once(self.remove(&Write::of_server(target, &write), &DeleteOptions::default())) {
                Err(error) if error.code != 404 => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

pub(super) fn check_preconditions(
    resource: &Resource,
    name: &str,
    object: &Value,
    conditions: &Preconditions,
) -> Result<()> {
    let actual = text(object, "/metadata/uid");
    if let Some(uid) = conditions.uid.as_deref().filter(|uid| *uid != actual) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({actual}). The object might have \
             been deleted and then recreated"
        );
        return Err(Error::conflict(resource.named_kind(), name, why));
    }
    let actual = text(object, "/metadata/resourceVersion");
    if let Some(revision) = conditions.resource_version.as_deref().filter(|revision| *revision != actual) {
        let why = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record \
             ({actual}). The object might have been modified"
        );
        return Err(Error::conflict(resource.named_kind(), name, why));
    }
    Ok(())
}

/// Adds or removes the finalizers by which the garbage collector learns what to do with dependents.
fn set_propagation(object: &mut Value, options: &DeleteOptions, orphans_by_default: bool) {
    let wanted = match (options.propagation_policy, options.orphan_dependents) {
        (Some(Propagation::Orphan), _) | (None, Some(true)) => Some(ORPHAN),
        (Some(Propagation::Foreground), _) => Some(FOREGROUND),
        (Some(Propagation::Background), _) | (None, Some(false)) => None,
        (None, None) if orphans_by_default && !has_finalizers(object) => Some(ORPHAN),
        // Nobody said anything: what the object already waits for stays.
        (None, None) => return,
    };
    let mut finalizers = meta(object, "finalizers").as_array().cloned().unwrap_or_default();
    let had = has_finalizers(object);
    finalizers.retain(|one| one != ORPHAN && one != FOREGROUND);
    finalizers.extend(wanted.map(|wanted| json!(wanted)));
    if !finalizers.is_empty() {
        metadata::metadata(object).insert("finalizers".into(), Value::Array(finalizers));
    } else if had {
        metadata::metadata(object).remove("finalizers");
    }
}
