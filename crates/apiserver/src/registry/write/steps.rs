//! The steps from a decoded object to its commit.
//!
//! The first half (prepare, own, admit) makes of a body what its writer and everybody who may change it want; the second
//! (complete, check, confirm, charge, commit) makes of that a stored object. A name that the server makes is made
//! between the two.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::{
    Attempt, CreateRight, Ownership, Target, Unwritten, Write, WriteOptions,
    rules::{check_revision, check_update, reset_fields, zero_of},
};
use crate::{
    error::{Cause, Error, Named, Result},
    merge::{self, UpdateOptions, Versions},
    registry::{
        Attributes, Presented, Registry, Resource, bounds, catalog, decode,
        metadata::{self, is_deleting},
        resource::{Origin, text},
        scale,
        strategy::Reservation,
    },
    store::{Key, Object, Other, TableName, WriteError},
};

/// An object on its way into the store.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    /// The version that it replaces: as it is stored, and as the version of the request shows it.
    before: Option<(Arc<Object>, Value)>,
    /// The object as it is wanted, in the version of the request.
    pub(super) new: Value,
    /// Whether it is known who owns its fields.
    owned: bool,
}

impl Pending {
    /// A new object.
    pub(super) fn create(new: Value) -> Self {
        Self { before: None, new, owned: false }
    }

    /// A new version of an object.
    pub(super) fn update(current: Arc<Object>, old: Value, new: Value) -> Self {
        Self { before: Some((current, old)), new, owned: false }
    }

    fn old(&self) -> Option<&Value> {
        self.before.as_ref().map(|(_, old)| old)
    }
}

impl Registry {
    /// What the writer wants, and what everybody who may change it makes of that.
    pub(super) async fn enter(
        &self,
        write: &Write<'_>,
        request: &Attributes<'_>,
        object: &mut Pending,
    ) -> Attempt<()> {
        let asks = write.admission && self.needs_admission(request);
        self.prepare(write, object, asks)?;
        if asks || object.before.is_some() {
            self.own(write, object);
        }
        if asks {
            self.admit(request, object).await?;
        }
        Ok(())
    }

    /// What was admitted becomes an object of its kind, is checked and is stored.
    pub(super) async fn finish(
        &self,
        write: &Write<'_>,
        request: &Attributes<'_>,
        mut object: Pending,
    ) -> Attempt<Presented> {
        self.complete(write, &mut object);
        let same = object.old() == Some(&object.new);
        if !same {
            check(write, &object)?;
            self.advise(write, &object);
        }
        // What it reserves is free again unless it is committed: also when the client leaves while a webhook is asked.
        let reserved = match object.before {
            None => self.reserve(write.target.resource, &mut object.new, None)?,
            Some(_) => None,
        };
        self.confirm(write, request, &object).await?;
        match object {
            Pending { before: Some((current, _)), .. } if same => {
                Ok(self.present(write.target.resource, &current).await?)
            }
            Pending { before: Some((current, old)), new, .. } => {
                self.replace(write, request, &current, &old, new).await
            }
            Pending { before: None, new, .. } => self.store_new(write, request, new, reserved).await,
        }
    }

    /// Drops what a writer may not say and fills in what it left out. Of a new object that is done once more when it is
    /// complete; here it is done for those who are asked about it.
    fn prepare(&self, write: &Write<'_>, object: &mut Pending, asks: bool) -> Result<()> {
        let Target { resource, subresource, .. } = write.target;
        let Pending { before, new, .. } = object;
        match before {
            None if asks => {
                metadata::wipe(new);
                resource.apply_defaults(new);
            }
            None => {}
            Some((current, old)) => {
                check_revision(write.target, new, current.revision)?;
                metadata::keep_system_fields(new, old, resource)?;
                resource.prepare_update(subresource, new, old, self.environment());
            }
        }
        Ok(())
    }

    /// Records who owns the fields, once.
    fn own(&self, write: &Write<'_>, object: &mut Pending) {
        if object.owned {
            return;
        }
        object.owned = true;
        let old = object.before.as_ref().map(|(_, old)| old);
        let tracks = match write.ownership {
            Ownership::Track => true,
            Ownership::Done => false,
            Ownership::Scale => old.is_some_and(|old| scale::is_owned(write.target.resource, old)),
        };
        if tracks {
            self.track(write.target, old, &mut object.new, write.options);
        }
    }

    /// Lets everybody change the object who may.
    async fn admit(&self, request: &Attributes<'_>, object: &mut Pending) -> Result<()> {
        let Target { resource, subresource, .. } = request.target;
        let Pending { before, new, .. } = object;
        let Some((_, old)) = before else {
            *new = self.mutate_by_admission(request, std::mem::take(new), None).await?;
            return Ok(());
        };
        let changed = self.mutate_by_admission(request, new.clone(), Some(old)).await?;
        if changed != *new {
            let wanted = std::mem::replace(new, changed);
            metadata::copy_meta(&wanted, new, "managedFields");
            metadata::keep_system_fields(new, old, resource)?;
            resource.prepare_update(subresource, new, old, self.environment());
        }
        Ok(())
    }

    /// Adds what only the server decides.
    fn complete(&self, write: &Write<'_>, object: &mut Pending) {
        let Target { resource, namespace, .. } = write.target;
        if let Some((_, old)) = &object.before {
            metadata::copy_meta(old, &mut object.new, "resourceVersion");
            merge::keep_times(old, &mut object.new);
            return;
        }
        metadata::stamp(&mut object.new, namespace, self.environment());
        resource.prepare_create(&mut object.new, &write.options.user);
        self.own(write, object);
        (resource.strategy.complete_create)(&mut object.new, self.environment());
    }

    /// Asks whoever may refuse the object, now that it is whole.
    async fn confirm(&self, write: &Write<'_>, request: &Attributes<'_>, object: &Pending) -> Result<()> {
        if object.before.is_none() && write.right == CreateRight::Unchecked {
            self.check_create(request)?;
        }
        if write.admission {
            self.validate_by_admission(request, Some(&object.new), object.old()).await?;
        }
        Ok(())
    }

    /// What has to be written together with the write, so that quotas stay true.
    fn charge_write(
        &self,
        write: &Write<'_>,
        request: &Attributes<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Other>> {
        if write.admission { self.charge(request, new, old) } else { Ok(Vec::new()) }
    }

    /// Commits a new object.
    async fn store_new(
        &self,
        write: &Write<'_>,
        request: &Attributes<'_>,
        new: Value,
        reserved: Option<Box<dyn Reservation>>,
    ) -> Attempt<Presented> {
        let resource = write.target.resource;
        let converted;
        let stored = if resource.is_stored_as_shown() {
            &new
        } else {
            converted = self.store_form(resource, new.clone()).await?;
            &converted
        };
        let charge = || self.charge_write(write, request, &new, None);
        match self.commit_made(write.target, &new, stored, write.options.dry_run, &charge)? {
            Some(object) => {
                if let Some(reserved) = reserved {
                    reserved.keep(None, stored);
                }
                Ok(self.present(resource, &object).await?)
            }
            None => Ok(Presented::Converted(new)),
        }
    }

    /// Commits a new version of an object, or its removal where the last finalizer has gone.
    async fn replace(
        &self,
        write: &Write<'_>,
        request: &Attributes<'_>,
        current: &Arc<Object>,
        old: &Value,
        mut new: Value,
    ) -> Attempt<Presented> {
        let Target { resource, name, .. } = write.target;
        let others = self.charge_write(write, request, &new, Some(old))?;
        let reserved = self.reserve(resource, &mut new, Some(old))?;
        if write.options.dry_run {
            return Ok(Presented::Converted(new));
        }
        let stored = self.store_form(resource, new).await?;
        let gone = is_deleting(&stored) && resource.may_vanish(&stored);
        let object = match self.commit_charged(resource, current, &stored, others) {
            Ok(object) => object,
            Err(WriteError::Missing) => {
                return Err(Unwritten::Gone(Error::not_found(resource.named(), name)));
            }
            Err(WriteError::TooLarge) => return Err(Error::too_large().into()),
            Err(WriteError::Disk(why)) => return Err(Error::from(why).into()),
            Err(WriteError::Moved(_) | WriteError::Exists) => {
                return Err(Unwritten::Moved(Error::stale(resource.named(), name)));
            }
        };
        if let Some(reserved) = reserved {
            reserved.keep(Some(old), &stored);
        }
        let shown = self.present(resource, &object).await?;
        if !gone {
            return Ok(shown);
        }
        // The last version of an object whose last finalizer went was never stored: it keeps its revision.
        let mut shown = shown.into_value();
        metadata::copy_meta(old, &mut shown, "resourceVersion");
        Ok(Presented::Converted(shown))
    }

    /// Reserves what an object of its kind needs and only one object can have.
    fn reserve(
        &self,
        resource: &Resource,
        new: &mut Value,
        old: Option<&Value>,
    ) -> Result<Option<Box<dyn Reservation>>> {
        resource.strategy.reserve.map(|reserve| reserve(self, resource, new, old)).transpose()
    }

    /// Records who owns the fields of `new`.
    pub(crate) fn track(
        &self,
        target: Target<'_>,
        old: Option<&Value>,
        new: &mut Value,
        options: &WriteOptions,
    ) {
        let resource = target.resource;
        let (api_version, time) = (resource.api_version(), self.environment().now_text());
        let reset = reset_fields(resource, target.subresource);
        merge::track_update(
            resource.schema(),
            old,
            new,
            &UpdateOptions {
                manager: &options.manager,
                subresource: target.subresource,
                api_version: &api_version,
                time: &time,
                reset: &reset,
                zero: zero_of(resource),
                versions: Versions::new(&|version, object| self.seen_in(resource, version, object)),
            },
        );
    }

    /// Refuses to create in a namespace that is missing or going away.
    pub(in crate::registry) fn check_namespace(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        if !resource.namespaced {
            return Ok(());
        }
        static NAMESPACES: LazyLock<TableName> = LazyLock::new(|| catalog::table_of("", "namespaces"));
        let what = Named { group: "", resource: "namespaces" };
        let found = self
            .store()
            .get(&NAMESPACES, &Key::new("", namespace))
            .ok_or_else(|| Error::not_found(what, namespace))?;
        if decode::may_be_deleting(&found) && is_deleting(&decode::stored(&found)) {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut error = Error::forbidden(resource.named(), name, why);
            if let Some(details) = &mut error.details {
                details.causes = vec![Cause {
                    reason: "NamespaceTerminating".into(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".into(),
                }];
            }
            return Err(error);
        }
        Ok(())
    }
}

impl Registry {
    /// Warns of what whoever embeds the server knows about built-in kinds.
    fn advise(&self, write: &Write<'_>, object: &Pending) {
        let Target { resource, subresource, .. } = write.target;
        if let (Some(known), Origin::BuiltIn { definition }, "") =
            (self.descriptions(), &resource.origin, subresource)
        {
            for warning in known.warnings(definition, &object.new) {
                write.options.warnings.add(&warning);
            }
        }
    }
}

/// Refuses what is no valid object of its kind, and warns of what hardly was meant.
fn check(write: &Write<'_>, object: &Pending) -> Result<()> {
    let Target { resource, subresource, .. } = write.target;
    match object.old() {
        Some(old) => check_update(write.target, &object.new, old)?,
        None => {
            let causes = resource.validate("", &object.new, None);
            if !causes.is_empty() {
                let name = text(&object.new, "/metadata/name");
                return Err(Error::invalid(resource.named_kind(), name, causes));
            }
            bounds::check_depth(&object.new)?;
        }
    }
    if subresource.is_empty() {
        for warning in (resource.strategy.warnings)(&object.new, object.old()) {
            write.options.warnings.add(&warning);
        }
    }
    Ok(())
}
