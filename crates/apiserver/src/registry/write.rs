//! Create and update: one pipeline for every kind and every way of writing.

mod attempt;
mod commit;
mod rules;
mod upsert;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{
    Presented, Registry, Resource, bounds, decode,
    metadata::{self, is_deleting},
    resource::text,
    scale,
    strategy::Reservation,
};
use crate::{
    admission::{Attributes, Operation, Warnings},
    auth::Identity,
    error::{Cause, Error, Named, Result},
    merge::{self, UpdateOptions},
    store::{Key, TableName, WriteError},
};

use self::rules::{check_revision, check_update, claims_nothing};
pub(super) use self::{
    attempt::{Attempt, Unwritten},
    rules::{clean, decoded, reset_fields, zero_of},
};

/// How often a write is tried again when another one came between reading and committing.
const ATTEMPTS: usize = 16;

/// The same where nobody is asked in between, so that only writers of other threads can have been faster.
pub(super) const CONTENDED: usize = 256;

/// What to do about fields that the schema does not know and keys that are said twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Nothing.
    Ignore,
    /// Tell the client.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// What a writer says about its write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Who owns the fields that are written.
    pub manager: String,
    /// Go all the way, but do not commit.
    pub dry_run: bool,
    /// What to do about unknown fields.
    pub validation: FieldValidation,
    /// Who writes.
    pub user: Identity,
    /// What the client should be told besides the answer, also when the answer is a failure.
    pub warnings: Warnings,
    /// The parameters as the client gave them, for admission to see.
    pub stated: Map<String, Value>,
}

impl Default for WriteOptions {
    /// A write of the server itself.
    fn default() -> Self {
        Self {
            manager: String::new(),
            dry_run: false,
            validation: FieldValidation::default(),
            user: Identity::api_server(),
            warnings: Warnings::default(),
            stated: Map::new(),
        }
    }
}

/// The object of a request.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its resource.
    pub resource: &'a Resource,
    /// Its namespace, empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Its name, empty for a create.
    pub name: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The object as the requested version shows it.
    pub object: Presented,
    /// Whether it is new.
    pub created: bool,
    /// What the client should be told.
    pub warnings: Vec<String>,
}

/// Who keeps the record of field ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The pipeline, from the difference to the old object.
    Track,
    /// Server-side apply did it already.
    Done,
    /// The pipeline, if somebody owns the replicas: who scales takes them over from their owner, or owns nothing.
    Scale,
}

/// Whether the writer was asked for the right to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreateRight {
    /// When the request came in: its verb is `create`.
    Checked,
    /// Not yet: the verb of the request is another one.
    Unchecked,
}

impl Registry {
    /// Creates an object from a decoded body.
    pub async fn create(
        &self,
        target: Target<'_>,
        body: decode::Body,
        options: &WriteOptions,
    ) -> Result<Written> {
        let (object, warnings) = Self::new_object(target, body, options)?;
        let stored = self.insert(target, object, Ownership::Track, CreateRight::Checked, options).await?;
        Ok(Written { object: stored, created: true, warnings })
    }

    /// Creates an object of the server's own, which nobody is asked about.
    pub(super) fn create_own(
        &self,
        target: Target<'_>,
        body: decode::Body,
        options: &WriteOptions,
    ) -> Result<Presented> {
        let (object, _) = Self::new_object(target, body, options)?;
        self.check_namespace(target.resource, target.namespace, "")?;
        let (made, reserved) = self.make(target, object, Ownership::Track, options)?;
        let stored = target.resource.to_storage(made.clone());
        let committed = self.commit_made(target, &made, &stored, options.dry_run, &|| Ok(Vec::new()))?;
        if let (Some(_), Some(reserved)) = (&committed, reserved) {
            reserved.keep(None, &stored);
        }
        Ok(committed.map_or(Presented::Converted(made), |object| target.resource.present(&object)))
    }

    /// The object of a create: decoded, in its place and clean.
    fn new_object(
        target: Target<'_>,
        body: decode::Body,
        options: &WriteOptions,
    ) -> Result<(Value, Vec<String>)> {
        let resource = target.resource;
        let mut object = body.value;
        decode::match_kind(&mut object, resource, &resource.group, &resource.version, &resource.kind)?;
        metadata::match_namespace(&mut object, resource, target.namespace)?;
        let warnings = decoded(resource, &mut object, &body.duplicates, &body.order, options.validation)?;
        // Of a new object only the revision of another one is refused, and only where it would be stored.
        let claimed = text(&object, "/metadata/resourceVersion");
        if !options.dry_run && claimed.parse::<u64>().is_ok_and(|revision| revision != 0) {
            return Err(Error::bare("resourceVersion should not be set on objects to be created"));
        }
        Ok((object, warnings))
    }

    /// Brings a new object into the store. Its body has been decoded and cleaned.
    async fn insert(
        &self,
        target: Target<'_>,
        mut object: Value,
        mut ownership: Ownership,
        right: CreateRight,
        options: &WriteOptions,
    ) -> Attempt<Presented> {
        let resource = target.resource;
        self.check_namespace(resource, target.namespace, text(&object, "/metadata/name"))?;
        let request =
            Attributes::of_write(Operation::Create, target, text(&object, "/metadata/name"), options);
        if self.admits(&request) {
            metadata::wipe(&mut object);
            resource.apply_defaults(&mut object);
            if ownership == Ownership::Track {
                self.track(target, None, &mut object, options);
                ownership = Ownership::Done;
            }
            object = self.mutate_by_admission(&request, object, None).await?;
        }
        if !metadata::wants_name(&object) {
            return self.try_insert(object, ownership, right, options, &request).await;
        }
        for _ in 0..ATTEMPTS {
            let mut attempt = object.clone();
            metadata::generate_name(&mut attempt, self.environment());
            match self.try_insert(attempt, ownership, right, options, &request).await {
                Err(Unwritten::Taken(_)) => {}
                outcome => return outcome,
            }
        }
        Err(Error::already_exists(resource.named(), text(&object, "/metadata/generateName")).into())
    }

    async fn try_insert(
        &self,
        object: Value,
        ownership: Ownership,
        right: CreateRight,
        options: &WriteOptions,
        request: &Attributes<'_>,
    ) -> Attempt<Presented> {
        let target = request.target;
        // What it reserves is free again unless it is committed: also when the client leaves while a webhook is asked.
        let (made, reserved) = self.make(target, object, ownership, options)?;
        self.confirm_new(request, right, &made).await?;
        let charge = || self.charge(request, &made, None);
        if target.resource.is_stored_as_shown() && !options.dry_run {
            let object = self.commit_made(target, &made, &made, false, &charge)?;
            if let Some(reserved) = reserved {
                reserved.keep(None, &made);
            }
            let object = object.expect("a committed object must come back");
            return Ok(target.resource.present(&object));
        }
        let stored = self.store_form(target.resource, made.clone()).await?;
        match self.commit_made(target, &made, &stored, options.dry_run, &charge)? {
            Some(object) => {
                if let Some(reserved) = reserved {
                    reserved.keep(None, &stored);
                }
                Ok(self.present(target.resource, &object).await?)
            }
            None => Ok(Presented::Converted(made)),
        }
    }

    /// Asks whoever has a say about a new object once it is whole.
    async fn confirm_new(&self, request: &Attributes<'_>, right: CreateRight, made: &Value) -> Result<()> {
        if right == CreateRight::Unchecked {
            self.check_create(request)?;
        }
        self.validate_by_admission(request, Some(made), None).await
    }

    /// Makes a decoded body into the object that will be stored, with what it reserves.
    fn make(
        &self,
        target: Target<'_>,
        mut object: Value,
        ownership: Ownership,
        options: &WriteOptions,
    ) -> Result<(Value, Option<Box<dyn Reservation>>)> {
        let resource = target.resource;
        metadata::stamp(&mut object, target.namespace, self.environment());
        resource.prepare_create(&mut object, &options.user);
        if ownership == Ownership::Track {
            self.track(target, None, &mut object, options);
        }
        (resource.strategy.complete_create)(&mut object, self.environment());
        let name = text(&object, "/metadata/name").to_owned();
        let causes = resource.validate("", &object, None);
        if !causes.is_empty() {
            return Err(Error::invalid(resource.named_kind(), &name, causes));
        }
        bounds::check_depth(&object)?;
        for warning in (resource.strategy.warnings)(&object, None) {
            options.warnings.add(&warning);
        }
        let reserved = self.reserve(resource, &mut object, None)?;
        Ok((object, reserved))
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

    /// Replaces an object by a decoded body.
    pub async fn update(
        &self,
        target: Target<'_>,
        body: decode::Body,
        options: &WriteOptions,
    ) -> Result<Written> {
        let resource = target.resource;
        let mut object = body.value;
        decode::match_kind(&mut object, resource, &resource.group, &resource.version, &resource.kind)?;
        metadata::match_namespace(&mut object, resource, target.namespace)?;
        if text(&object, "/metadata/name").is_empty() {
            return Err(Error::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                target.name
            )));
        }
        metadata::match_name(&mut object, target.name)?;
        let claimed = text(&object, "/metadata/resourceVersion").to_owned();
        if !claimed.is_empty() && claimed.parse::<u64>().is_err() {
            return Err(Error::bare(format!("strconv.ParseUint: parsing \"{claimed}\": invalid syntax")));
        }
        let warnings = decoded(resource, &mut object, &body.duplicates, &body.order, options.validation)?;
        if resource.strategy.creates_on_update && target.subresource.is_empty() {
            let made = |live: Option<&Value>| {
                let mut object = object.clone();
                if live.is_none() {
                    metadata::metadata(&mut object).remove("resourceVersion");
                }
                Ok(object)
            };
            let (object, created) = self.upsert(target, options, Ownership::Track, &made).await?;
            return Ok(Written { object, created, warnings });
        }
        if claims_nothing(&claimed) && resource.custom().is_some() {
            let cause =
                Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(Error::invalid(resource.named(), target.name, vec![cause]));
        }
        let changed = self.mutate(target, options, Ownership::Track, &|_| Ok(object.clone())).await?;
        Ok(Written { object: changed, created: false, warnings })
    }

    /// Changes an object: reads it, lets `change` make a new version of it, and commits that, again and
    /// again until no other write came between.
    pub(super) async fn mutate(
        &self,
        target: Target<'_>,
        options: &WriteOptions,
        ownership: Ownership,
        change: &(dyn Fn(&Value) -> Result<Value> + Sync),
    ) -> Attempt<Presented> {
        let Target { resource, namespace, name, .. } = target;
        let request = Attributes::of_write(Operation::Update, target, name, options);
        for _ in 0..ATTEMPTS {
            let current = self.get(resource, namespace, name).map_err(Unwritten::Gone)?;
            let old = self.present_for_change(resource, &current).await?;
            let mut new = change(&old)?;
            check_revision(target, &new, current.revision)?;
            metadata::keep_system_fields(&mut new, &old, resource)?;
            resource.prepare_update(target.subresource, &mut new, &old, self.environment());
            if match ownership {
                Ownership::Track => true,
                Ownership::Done => false,
                Ownership::Scale => scale::is_owned(resource, &old),
            } {
                self.track(target, Some(&old), &mut new, options);
            }
            if self.admits(&request) {
                new = self.admitted_update(&request, new, &old).await?;
            }
            metadata::copy_meta(&old, &mut new, "resourceVersion");
            merge::keep_times(&old, &mut new);
            let same = new == old;
            if !same {
                check_update(target, &new, &old)?;
                if target.subresource.is_empty() {
                    for warning in (resource.strategy.warnings)(&new, Some(&old)) {
                        options.warnings.add(&warning);
                    }
                }
            }
            self.validate_by_admission(&request, Some(&new), Some(&old)).await?;
            if same {
                return Ok(self.present(resource, &current).await?);
            }
            let others = self.charge(&request, &new, Some(&old))?;
            let reserved = self.reserve(resource, &mut new, Some(&old))?;
            if options.dry_run {
                return Ok(Presented::Converted(new));
            }
            let stored = self.store_form(resource, new).await?;
            let gone = is_deleting(&stored) && resource.may_vanish(&stored);
            let committed = self.commit_charged(resource, &current, &stored, others);
            if let (Ok(_), Some(reserved)) = (&committed, reserved) {
                reserved.keep(Some(&old), &stored);
            }
            match committed {
                Ok(object) if gone => {
                    // The last version of an object whose last finalizer went was never stored: it keeps its revision.
                    let mut shown = self.present(resource, &object).await?.into_value();
                    metadata::copy_meta(&old, &mut shown, "resourceVersion");
                    return Ok(Presented::Converted(shown));
                }
                Ok(object) => return Ok(self.present(resource, &object).await?),
                Err(WriteError::Missing) => {
                    return Err(Unwritten::Gone(Error::not_found(resource.named(), name)));
                }
                Err(WriteError::TooLarge) => return Err(Error::too_large().into()),
                Err(WriteError::Disk(why)) => return Err(Error::from(why).into()),
                Err(WriteError::Moved(_) | WriteError::Exists) => {}
            }
        }
        Err(Error::stale(resource.named(), name).into())
    }

    /// The new version after everybody who may change it did.
    async fn admitted_update(&self, request: &Attributes<'_>, new: Value, old: &Value) -> Result<Value> {
        let Target { resource, subresource, .. } = request.target;
        let changed = self.mutate_by_admission(request, new.clone(), Some(old)).await?;
        if changed == new {
            return Ok(new);
        }
        let mut object = changed;
        metadata::copy_meta(&new, &mut object, "managedFields");
        metadata::keep_system_fields(&mut object, old, resource)?;
        resource.prepare_update(subresource, &mut object, old, self.environment());
        Ok(object)
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
            },
        );
    }

    /// Refuses to create in a namespace that is missing or going away.
    fn check_namespace(&self, resource: &Resource, namespace: &str, name: &str) -> Result<()> {
        if !resource.namespaced {
            return Ok(());
        }
        static NAMESPACES: LazyLock<TableName> = LazyLock::new(|| super::catalog::table_of("", "namespaces"));
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
