//! A kind as a value: all that sets the objects of one kind apart.
//!
//! Every built-in kind has a [`Strategy`] in `kinds`, and custom kinds share one. The catalogue finds it once, when a
//! resource is made; what reads and writes objects calls its functions and never asks which kind it has. But for the
//! hooks everything here is pure: an object and its old version in, a changed object or causes out.

pub(super) mod built_in;
pub(super) mod custom;

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Registry,
    metadata::{self, NameRule, has_finalizers, meta},
    resource::{Resource, text},
};
use crate::{
    auth::Identity,
    environment::Environment,
    error::{Cause, Error, Result},
    store::Object,
};

/// All that is special about a kind. A kind without a word about something is as [`Strategy::PLAIN`] is.
#[derive(Debug)]
pub(crate) struct Strategy {
    /// How its objects are decoded, filled in and checked: as types of Kubernetes, or by a schema of somebody's own.
    pub(super) form: &'static Form,
    /// Which names its objects may have.
    pub(super) name_rule: NameRule,
    /// What `metadata.generation` counts.
    pub(super) generation: Generation,
    /// The fields that selectors may name besides name and namespace.
    pub(super) selectable: &'static [Selectable],
    /// What is said of a field that selectors may not name, if not what is said of all kinds.
    pub(super) unknown_field: Option<fn(&str) -> String>,

    /// Fills in what a body leaves out.
    pub(super) defaults: fn(&mut Value),
    /// Changes a new object after it was filled in: what only the server may say, and who asks.
    pub(super) prepare_create: fn(&mut Value, &Identity),
    /// Changes a new version before it is filled in: what a writer may not change, or did not mean to.
    pub(super) prepare_update: fn(new: &mut Value, old: &Value),
    /// Changes a new version of the status.
    pub(super) prepare_status: fn(new: &mut Value, old: &Value, &Environment),
    /// The metadata that a write of the status may change.
    pub(super) status_metadata: &'static [&'static str],
    /// Subresources that are written in a manner of their own.
    pub(super) parts: &'static [Part],
    /// Adds to a new object what the server decides and nobody owns.
    pub(super) complete_create: fn(&mut Value, &Environment),
    /// The same for a new version.
    pub(super) complete_update: fn(new: &mut Value, old: &Value),
    /// What is wrong with an object.
    pub(super) validate: Validate,
    /// What is wrong with a written status.
    pub(super) validate_status: fn(&Value) -> Vec<Cause>,
    /// What is valid and yet hardly what was meant.
    pub(super) warnings: fn(new: &Value, old: Option<&Value>) -> Vec<String>,
    /// Whether a PUT of what is not there creates it.
    pub(super) creates_on_update: bool,
    /// Whether a PUT may leave out of which revision it is.
    pub(super) unconditional_update: bool,

    /// Why the object of this name cannot be deleted.
    pub(super) undeletable: fn(&str) -> Option<&'static str>,
    /// Changes an object when its deletion is first asked for.
    pub(super) begin_deletion: fn(&mut Value, &Environment),
    /// How long the object may take to end, given what the client asks for.
    pub(super) grace_period: fn(&Value, Option<i64>) -> i64,
    /// Whether its end is a matter of seconds at all.
    pub(super) has_grace_period: bool,
    /// Whether an object that goes at once is seen on its way all the same: marked first, then removed.
    pub(super) marked_first: bool,
    /// What an object looks like while it waits for its end.
    pub(super) terminating: fn(&mut Value),
    /// Whether a deleted object without finalizers can go.
    pub(super) may_vanish: fn(&Value) -> bool,
    /// Whether dependents stay when nobody says what becomes of them, as the first versions of some kinds did it.
    pub(super) orphans_by_default: bool,
    /// What a client should know that does not say what becomes of dependents.
    pub(crate) orphan_warning: Option<&'static str>,
    /// Whether a deletion is answered with the last state of the object, or with a `Status`.
    pub(crate) returns_deleted: bool,

    /// How this version differs from the one that is stored, where it does.
    pub(super) conversion: Option<Conversion>,
    /// The group under which objects are stored, where a kind is served by two.
    pub(super) stored_group: Option<&'static str>,
    /// What Kubernetes says to whoever uses a kind that it would like to be rid of.
    pub(crate) deprecation: Option<&'static str>,

    /// The cells that `kubectl get` shows; without it, name and age.
    pub(crate) row: Option<Row>,
    /// What is worth knowing about a row besides its cells.
    pub(crate) row_conditions: fn(&Value) -> Option<Value>,

    /// Reserves what an object needs and only one object can have.
    pub(super) reserve: Option<Reserve>,
    /// What follows from a committed object.
    pub(super) after_write: fn(&Registry, &Object),
    /// What follows from a removed object.
    pub(super) after_removal: fn(&Registry, &Resource, &Object),
    /// Answers an object that is a question and is not stored.
    pub(super) review: Option<Review>,
}

/// Finds what is wrong with an object, new or changed.
pub(super) type Validate = fn(new: &Value, old: Option<&Value>) -> Vec<Cause>;

/// Makes the cells of a row.
pub(crate) type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// Takes what a new or changed object needs.
pub(super) type Reserve =
    fn(&Registry, &Resource, new: &mut Value, old: Option<&Value>) -> Result<Box<dyn Reservation>>;

/// Makes the answer to a question that a user has sent.
pub(super) type Review = fn(&Registry, &Resource, &Identity, &mut Value) -> Result<()>;

/// What a write has taken and no stored object holds yet. Dropped, it is free again.
pub(super) trait Reservation: Send {
    /// The write was committed: what it took is the object's, and what that held before and needs no more is free.
    fn keep(self: Box<Self>, old: Option<&Value>, stored: &Value);
}

/// How the objects of built-in and of custom kinds differ in every step.
#[derive(Debug)]
pub(super) struct Form {
    /// Makes a body into an object of the kind. Fails with what Go's decoder says.
    pub(super) decode: fn(&Resource, &mut Value) -> Result<(), String>,
    /// The same of an object that admission has patched.
    pub(super) decode_patched: fn(&Resource, &mut Value) -> Result<(), String>,
    /// Fills in what an object leaves out.
    pub(super) fill: fn(&Resource, &mut Value),
    /// Makes a decoded body into a new version of an object, through a subresource or not.
    pub(super) prepare_update: fn(&Resource, &str, new: &mut Value, old: &Value, &Environment),
    /// What is wrong with an object that was written through a subresource or not.
    pub(super) validate: fn(&Resource, &str, new: &Value, old: Option<&Value>) -> Vec<Cause>,
}

/// A subresource that is written in a manner of its own.
#[derive(Debug)]
pub(super) struct Part {
    /// The subresource.
    pub(super) name: &'static str,
    /// Keeps what the subresource may not change, if that is not what a write of the whole may not change either.
    pub(super) prepare: Option<fn(new: &mut Value, old: &Value, &Environment)>,
    /// What is wrong with the outcome, if not what is wrong with any object of the kind.
    pub(super) validate: Option<Validate>,
    /// Whether a change is one of what the author wants.
    pub(super) raises_generation: bool,
}

/// What `metadata.generation` counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Generation {
    /// Nothing: objects have none.
    None,
    /// Nothing: it is 1 and stays so.
    One,
    /// The changes of which the function says so, given the subresource.
    Changes(fn(&Resource, &str, new: &Value, old: &Value) -> bool),
}

/// A field that selectors may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selectable {
    /// Its name in selectors.
    pub(super) name: Cow<'static, str>,
    /// Where it is.
    pub(super) pointer: Cow<'static, str>,
    /// Where it is if it is not there.
    pub(super) otherwise: Option<&'static str>,
    /// Its value where it has none.
    pub(super) absent: &'static str,
}

/// How a version that is served differs from the one that is stored.
#[derive(Debug)]
pub(super) struct Conversion {
    /// A stored object as this version shows it.
    pub(super) show: fn(Value) -> Value,
    /// An object of this version as it is stored.
    pub(super) store: fn(Value) -> Value,
    /// A field that a selector names, as it is stored.
    pub(super) stored_field: fn(&str) -> Cow<'_, str>,
}

impl Strategy {
    /// A built-in kind about which there is nothing to say.
    pub(super) const PLAIN: Self = Self {
        form: &built_in::FORM,
        name_rule: NameRule::Subdomain,
        generation: Generation::None,
        selectable: &[],
        unknown_field: None,
        defaults: |_| {},
        prepare_create: |_, _| {},
        prepare_update: |_, _| {},
        prepare_status: |_, _, _| {},
        // Kubelets and controllers annotate what they report on in the same write.
        status_metadata: &["annotations", "finalizers"],
        parts: &[],
        complete_create: |_, _| {},
        complete_update: |_, _| {},
        validate: |_, _| Vec::new(),
        validate_status: |_| Vec::new(),
        warnings: |_, _| Vec::new(),
        creates_on_update: false,
        unconditional_update: true,
        undeletable: |_| None,
        begin_deletion: |_, _| {},
        grace_period: |_, _| 0,
        has_grace_period: true,
        marked_first: false,
        terminating: |_| {},
        may_vanish: |_| true,
        orphans_by_default: false,
        orphan_warning: None,
        returns_deleted: false,
        conversion: None,
        stored_group: None,
        deprecation: None,
        row: None,
        row_conditions: |_| None,
        reserve: None,
        after_write: |_, _| {},
        after_removal: |_, _, _| {},
        review: None,
    };

    /// The manner in which a subresource is written, if it is its own.
    fn part(&self, subresource: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == subresource)
    }
}

impl Generation {
    /// Counts the changes of everything but metadata and status.
    pub(super) const SPEC: Self = Self::Changes(|_, _, new, old| changed(new, old, true));
}

/// Whether anything but the metadata has changed, or but metadata and status.
pub(super) fn changed(new: &Value, old: &Value, but_status: bool) -> bool {
    let fields = |object| {
        let all = Value::as_object(object).into_iter().flatten();
        all.filter(|(key, _)| key.as_str() != "metadata" && !(but_status && key.as_str() == "status"))
    };
    fields(new).count() != fields(old).count() || fields(new).any(|(key, value)| old.get(key) != Some(value))
}

impl Selectable {
    /// A field that is where its name says.
    pub(super) const fn new(name: &'static str, pointer: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), pointer: Cow::Borrowed(pointer), otherwise: None, absent: "" }
    }

    /// The same, which has the value `absent` where nobody set one.
    pub(super) const fn with_default(
        name: &'static str,
        pointer: &'static str,
        absent: &'static str,
    ) -> Self {
        Self { name: Cow::Borrowed(name), pointer: Cow::Borrowed(pointer), otherwise: None, absent }
    }

    /// The field of a custom kind, by its path without the leading dot.
    pub(super) fn custom(path: &str) -> Self {
        let pointer = format!("/{}", path.replace('.', "/"));
        Self { name: path.to_owned().into(), pointer: pointer.into(), otherwise: None, absent: "" }
    }

    /// Its value in a stored object, as text.
    pub(super) fn value(&self, object: &Value) -> String {
        let pointer = match self.otherwise {
            Some(otherwise) if text(object, &self.pointer).is_empty() => otherwise,
            _ => &self.pointer,
        };
        match object.pointer(pointer) {
            Some(Value::String(value)) => value.clone(),
            Some(Value::Bool(value)) => value.to_string(),
            Some(Value::Number(value)) => value.to_string(),
            _ => self.absent.to_owned(),
        }
    }
}

/// What every kind does with an object, with what its strategy adds.
impl Resource {
    /// Fills in what a body leaves out.
    pub(super) fn apply_defaults(&self, object: &mut Value) {
        (self.strategy.form.fill)(self, object);
    }

    /// Makes a decoded body into a new object.
    pub(super) fn prepare_create(&self, object: &mut Value, user: &Identity) {
        if !matches!(self.strategy.generation, Generation::None) {
            metadata::metadata(object).insert("generation".into(), json!(1));
        }
        if self.has("status")
            && let Some(map) = object.as_object_mut()
        {
            // The status belongs to whoever observes, not to whoever creates.
            map.remove("status");
        }
        self.apply_defaults(object);
        (self.strategy.prepare_create)(object, user);
    }

    /// Makes a decoded body into a new version of `old`.
    pub(super) fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Value,
        old: &Value,
        environment: &Environment,
    ) {
        (self.strategy.form.prepare_update)(self, subresource, new, old, environment);
        if self.strategy.part(subresource).is_none_or(|part| part.raises_generation) {
            self.count_generation(subresource, new, old);
        }
    }

    fn count_generation(&self, subresource: &str, new: &mut Value, old: &Value) {
        if let Generation::Changes(changed) = self.strategy.generation {
            let before = meta(old, "generation").as_i64().unwrap_or(0);
            let changed = changed(self, subresource, new, old);
            metadata::metadata(new).insert("generation".into(), json!(before + i64::from(changed)));
        }
    }

    /// What is wrong with the object, if anything.
    pub(super) fn validate(&self, subresource: &str, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = metadata::validate(new, self.strategy.name_rule);
        causes.extend((self.strategy.form.validate)(self, subresource, new, old));
        causes
    }

    /// Whether a deleted object can go: nothing and nobody waits for it.
    pub(super) fn may_vanish(&self, object: &Value) -> bool {
        !has_finalizers(object) && (self.strategy.may_vanish)(object)
    }

    /// Refuses to delete what the cluster cannot do without.
    pub(super) fn allow_delete(&self, name: &str) -> Result<()> {
        match (self.strategy.undeletable)(name) {
            Some(why) => Err(Error::forbidden(self.named(), name, why)),
            None => Ok(()),
        }
    }
}

/// Keeps everything of `old` but its status and what else a write of the status may change.
fn keep_all_but_status(resource: &Resource, new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    copy_top(new, &mut kept, "status");
    metadata::copy_meta(new, &mut kept, "managedFields");
    for field in resource.strategy.status_metadata {
        metadata::copy_meta(new, &mut kept, field);
    }
    if let Some(revision) = new.pointer("/metadata/resourceVersion").cloned() {
        metadata::metadata(&mut kept).insert("resourceVersion".into(), revision);
    }
    *new = kept;
}

/// Copies a field of the top level from one object to another, or removes it where the first has none.
pub(super) fn copy_top(from: &Value, to: &mut Value, field: &str) {
    let Some(map) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => drop(map.insert(field.into(), value.clone())),
        None => drop(map.remove(field)),
    }
}

/// Sets a field that nobody has set.
pub(super) fn default(object: &mut Value, field: &str, value: impl FnOnce() -> Value) {
    let Some(map) = object.as_object_mut() else { return };
    if map.get(field).is_none_or(Value::is_null) {
        map.insert(field.to_owned(), value());
    }
}
