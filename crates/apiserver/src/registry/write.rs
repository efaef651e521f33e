//! Writes: one type for a write, and one list of steps that every write goes through.
//!
//! ```text
//! decode -> prepare -> own -> admit -> complete -> check -> confirm -> charge -> commit
//! ```
//!
//! [`Registry::create`], [`Registry::update`], patches, apply and the server's own objects differ in how an object is
//! decoded and in nothing else; a delete has nothing to prepare, own or complete. The steps are in `steps`, the commit
//! is in `commit`; ARCHITECTURE.md shows what each of them does.

mod attempt;
mod commit;
mod rules;
mod steps;
mod upsert;

use futures::FutureExt;
use serde_json::{Map, Value, json};

use super::{
    Attributes, Operation, Presented, Registry, Resource, Warnings, decode, metadata, resource::text,
};
use crate::{
    auth::Identity,
    error::{Cause, Error, Result},
};

pub(super) use self::{
    attempt::{Attempt, Unwritten},
    rules::{clean, decoded, reset_fields, zero_of},
};
use self::{rules::claims_nothing, steps::Pending};

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
}

/// One write: what is written, what its writer says about it, and what is different about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) target: Target<'a>,
    pub(super) options: &'a WriteOptions,
    /// Who keeps the record of field ownership.
    ownership: Ownership,
    /// Whether the writer was asked for the right to create.
    right: CreateRight,
    /// Whether admission has a say. It has none in what the server does on its own account.
    admission: bool,
}

/// Who keeps the record of field ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The write, from the difference to the old object.
    Track,
    /// Server-side apply did it already.
    Done,
    /// The write, if somebody owns the replicas: who scales takes them over from their owner, or owns nothing.
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

impl<'a> Write<'a> {
    /// The write of a client.
    pub(super) fn new(target: Target<'a>, options: &'a WriteOptions) -> Self {
        let (ownership, right) = (Ownership::Track, CreateRight::Checked);
        Self { target, options, ownership, right, admission: true }
    }

    /// A write on the server's own account, which nobody is asked about. It is done at once: see [`Registry::at_once`].
    pub(super) fn of_server(target: Target<'a>, options: &'a WriteOptions) -> Self {
        Self { admission: false, ..Self::new(target, options) }
    }

    /// The same write, whose record of field ownership is kept in another way.
    pub(super) fn with(self, ownership: Ownership) -> Self {
        Self { ownership, ..self }
    }

    /// Whether admission is asked at all.
    pub(super) fn asks(&self) -> bool {
        self.admission
    }

    /// What admission is told about the write.
    pub(super) fn attributes(&self, operation: Operation, name: &str) -> Attributes<'a> {
        Attributes::of_write(operation, self.target, name, self.options)
    }
}

impl Registry {
    /// Creates an object from a decoded body.
    pub async fn create(
        &self,
        target: Target<'_>,
        body: decode::Body,
        options: &WriteOptions,
    ) -> Result<Written> {
        let object = new_object(target, body, options)?;
        let object = self.insert(&Write::new(target, options), object).await?;
        Ok(Written { object, created: true })
    }

    /// Creates an object of the server's own.
    pub(super) fn create_own(
        &self,
        target: Target<'_>,
        body: decode::Body,
        options: &WriteOptions,
    ) -> Result<Presented> {
        let object = new_object(target, body, options)?;
        Ok(Self::at_once(self.insert(&Write::of_server(target, options), object))?)
    }

    /// Carries out a write of the server's own on a built-in kind. It asks nobody, so there is nothing to wait for.
    pub(super) fn at_once<T>(write: impl Future<Output = T>) -> T {
        write.now_or_never().expect("a write that asks nobody must be done at once")
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
        let warnings = decoded(resource, &mut object, &body.duplicates, &body.order, options.validation)?;
        options.warnings.add_first(&warnings);
        // What is not there is not found, whatever revision of it is meant.
        let readable = || match claimed.parse::<u64>() {
            Err(_) if !claimed.is_empty() => {
                Err(Error::bare(format!("strconv.ParseUint: parsing \"{claimed}\": invalid syntax")))
            }
            _ => Ok(()),
        };
        let conditional = || {
            readable()?;
            if claims_nothing(&claimed) && !resource.strategy.unconditional_update {
                let cause =
                    Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
                return Err(Error::invalid(resource.named(), target.name, vec![cause]));
            }
            Ok(())
        };
        let write = Write::new(target, options);
        if resource.strategy.creates_on_update && target.subresource.is_empty() {
            let made = |live: Option<&Value>| {
                let mut object = object.clone();
                if live.is_none() {
                    readable()?;
                    metadata::metadata(&mut object).remove("resourceVersion");
                } else {
                    conditional()?;
                }
                Ok(object)
            };
            let (object, created) = self.upsert(&write, &made).await?;
            return Ok(Written { object, created });
        }
        let made = |_: &Value| {
            conditional()?;
            Ok(object.clone())
        };
        let object = self.change(&write, &made).await?;
        Ok(Written { object, created: false })
    }

    /// Brings a new object into the store. Its body has been decoded and cleaned.
    async fn insert(&self, write: &Write<'_>, object: Value) -> Attempt<Presented> {
        let Target { resource, namespace, .. } = write.target;
        self.check_namespace(resource, namespace, text(&object, "/metadata/name"))?;
        if resource.custom().is_some_and(|served| served.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            let name = text(&object, "/metadata/name");
            return Err(Error::forbidden(resource.named(), name, why).into());
        }
        let request = write.attributes(Operation::Create, text(&object, "/metadata/name"));
        let mut object = Pending::create(object);
        self.enter(write, &request, &mut object).await?;
        if !metadata::wants_name(&object.new) {
            return self.finish(write, &request, object).await;
        }
        for _ in 0..ATTEMPTS {
            let mut attempt = object.clone();
            metadata::generate_name(&mut attempt.new, self.environment());
            match self.finish(write, &request, attempt).await {
                Err(Unwritten::Taken(_)) => {}
                outcome => return outcome,
            }
        }
        Err(Error::already_exists(resource.named(), text(&object.new, "/metadata/generateName")).into())
    }

    /// Changes an object: reads it, lets `decode` make a new version of it, and commits that, again and again until no
    /// other write came between.
    pub(super) async fn change(
        &self,
        write: &Write<'_>,
        decode: &(dyn Fn(&Value) -> Result<Value> + Sync),
    ) -> Attempt<Presented> {
        let Target { resource, namespace, name, .. } = write.target;
        let request = write.attributes(Operation::Update, name);
        for _ in 0..ATTEMPTS {
            let current = self.get(resource, namespace, name).map_err(Unwritten::Gone)?;
            let old = self.present_for_change(resource, &current).await?;
            let new = decode(&old)?;
            let mut object = Pending::update(current, old, new);
            self.enter(write, &request, &mut object).await?;
            match self.finish(write, &request, object).await {
                Err(Unwritten::Moved(_)) => {}
                outcome => return outcome,
            }
        }
        Err(Error::stale(resource.named(), name).into())
    }
}

/// The object of a create: decoded, in its place and clean. What there is to say about its fields is said.
fn new_object(target: Target<'_>, body: decode::Body, options: &WriteOptions) -> Result<Value> {
    let resource = target.resource;
    let mut object = body.value;
    decode::match_kind(&mut object, resource, &resource.group, &resource.version, &resource.kind)?;
    metadata::match_namespace(&mut object, resource, target.namespace)?;
    let warnings = decoded(resource, &mut object, &body.duplicates, &body.order, options.validation)?;
    options.warnings.add_first(&warnings);
    // Of a new object only the revision of another one is refused, and only where it would be stored.
    let claimed = text(&object, "/metadata/resourceVersion");
    if !options.dry_run && claimed.parse::<u64>().is_ok_and(|revision| revision != 0) {
        return Err(Error::bare("resourceVersion should not be set on objects to be created"));
    }
    Ok(object)
}
