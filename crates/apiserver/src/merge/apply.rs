//! Server-side apply: a configuration is merged into the live object, fields that its manager no
//! longer wants disappear, fields that others own with another value are conflicts.

use serde_json::{Map, Value};

use super::{
    combine::combine,
    compare::Comparison,
    conflict::Conflicts,
    field_set::FieldSet,
    last_applied,
    managed::{self, Managed, ManagedFieldsError, Manager, Owned},
    reconcile::reconcile,
    remove::remove,
    typed::{fields_of, misfits},
    update::{self, UpdateOptions, never_owned},
    versions::{Changes, Versions},
};
use crate::schema::{TypeRef, json::equal};

/// The owner of what an object held before anybody's ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who applies, where, when, and whether others' fields may be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApplyOptions<'a> {
    /// The field manager, which the client must name.
    pub(crate) manager: &'a str,
    /// Take fields from other managers instead of reporting conflicts.
    pub(crate) force: bool,
    /// The subresource applied to, or empty.
    pub(crate) subresource: &'a str,
    /// The group and version of the request, such as `apps/v1`.
    pub(crate) api_version: &'a str,
    /// Now, as RFC 3339 with seconds.
    pub(crate) time: &'a str,
    /// Fields which this endpoint never changes, so that their applier never owns them.
    pub(crate) reset: &'a FieldSet,
    /// What a new object is compared with: [`TypeRef::zero`] for built-in kinds.
    pub(crate) zero: Option<&'a Value>,
    /// The other versions of the kind.
    pub(crate) versions: Versions<'a>,
}

/// Why an apply did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// Others own some of the fields with other values.
    #[error("{0}")]
    Conflict(Conflicts),
    /// The request asks for something that cannot be.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit the schema; the real server answers 500.
    #[error("{0}")]
    Typed(String),
    /// The live object's `managedFields` are unreadable.
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(#[source] ManagedFieldsError),
}

/// `live` with `intent` applied, and who owns what in its `managedFields`.
///
/// # Guarantees
/// An apply that changes neither a field nor an owner returns `live` as it was, times included.
/// Defaults are not filled in: the caller does, and they belong to nobody.
pub(crate) fn apply(
    ty: &TypeRef,
    live: Option<&Value>,
    intent: &Value,
    options: &ApplyOptions<'_>,
) -> Result<Value, ApplyError> {
    check_request(ty, intent, options)?;
    let mut managed = match live {
        Some(live) => Managed::of(live).map_err(ApplyError::ManagedFields)?,
        None => Managed::default(),
    };
    let mut base = live.cloned().unwrap_or_else(|| new_object(options, intent));
    managed::strip(&mut base);
    if managed.entries.is_empty() && live.is_some() {
        own_what_is_there(ty, &base, &mut managed, options);
    }
    let applied = match merge(ty, &base, intent, managed.clone(), options, options.force) {
        Err(ApplyError::Conflict(conflicts)) if options.manager == last_applied::KUBECTL => {
            settle(ty, &base, intent, managed, options, conflicts)?
        }
        other => other?,
    };
    let mut merged = applied.object;
    if options.manager == last_applied::KUBECTL {
        last_applied::refresh(&mut merged, intent);
    }
    applied.managed.write(&mut merged);
    Ok(merged)
}

fn check_request(ty: &TypeRef, intent: &Value, options: &ApplyOptions<'_>) -> Result<(), ApplyError> {
    let version = intent.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != options.api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, \
             expected: {}",
            options.api_version
        )));
    }
    let managed_fields = intent.pointer("/metadata/managedFields");
    if managed_fields.is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let problems = misfits(ty, intent);
    let problems = match problems.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    Err(ApplyError::Typed(format!("failed to create typed patch object ({}): {problems}", described(intent))))
}

/// `namespace/name; group/version, Kind=kind`, as errors name an object.
fn described(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}

/// The object that an apply to nothing starts from.
fn new_object(options: &ApplyOptions<'_>, intent: &Value) -> Value {
    let mut object = match options.zero {
        Some(Value::Object(zero)) => zero.clone(),
        _ => Map::new(),
    };
    for key in ["apiVersion", "kind"] {
        if let Some(value) = intent.get(key) {
            object.insert(key.to_owned(), value.clone());
        }
    }
    object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    Value::Object(object)
}

/// Gives the fields of an object that was never tracked an owner, so that applies can conflict.
fn own_what_is_there(ty: &TypeRef, live: &Value, managed: &mut Managed, options: &ApplyOptions<'_>) {
    let empty = Value::Object(Map::new());
    let before = options.zero.unwrap_or(&empty);
    let options = UpdateOptions {
        manager: BEFORE_FIRST_APPLY,
        subresource: options.subresource,
        api_version: options.api_version,
        time: options.time,
        reset: options.reset,
        zero: options.zero,
        versions: options.versions,
    };
    update::record(ty, before, live, managed, &options);
    managed.cap();
}

struct Applied {
    object: Value,
    managed: Managed,
}

/// A second try for kubectl: conflicts with what client-side apply set before are none.
fn settle(
    ty: &TypeRef,
    live: &Value,
    intent: &Value,
    managed: Managed,
    options: &ApplyOptions<'_>,
    conflicts: Conflicts,
) -> Result<Applied, ApplyError> {
    let Some(allowed) = last_applied::still_as_applied(ty, live, options.api_version) else {
        return Err(ApplyError::Conflict(conflicts));
    };
    match conflicts.outside(&allowed) {
        Some(rest) => Err(ApplyError::Conflict(rest)),
        None => merge(ty, live, intent, managed, options, true),
    }
}

fn merge(
    ty: &TypeRef,
    live: &Value,
    intent: &Value,
    mut managed: Managed,
    options: &ApplyOptions<'_>,
    force: bool,
) -> Result<Applied, ApplyError> {
    for owned in managed.entries.values_mut().filter(|owned| owned.api_version == options.api_version) {
        reconcile(ty, &mut owned.fields);
    }
    let merged = combine(ty, live, intent)
        .map_err(|problem| ApplyError::Typed(format!("failed to merge config: {problem}")))?;
    let manager = Manager::applier(options.manager, options.subresource);
    let last = managed.entries.remove(&manager);
    let own = Owned {
        fields: fields_of(ty, intent).without(options.reset),
        api_version: options.api_version.to_owned(),
        time: last.as_ref().and_then(|last| last.time.clone()),
    };
    managed.entries.insert(manager.clone(), own);
    let object = match &last {
        Some(last) => drop_unwanted(ty, &merged, &managed, &last.fields),
        None => merged,
    };

    let own = Comparison::of(ty, live, &object).without(options.reset);
    let kind = (ty, options.api_version);
    let changes = options.versions.changes(kind, (live, &object), &mut managed, options.reset, own);
    let taken = update::taken_from_others(&managed, &changes, Some(&manager));
    if let (false, Some(conflicts)) = (force, update::conflicts(&taken)) {
        return Err(ApplyError::Conflict(conflicts));
    }
    give_up_except(&mut managed, &changes, &taken, &manager);
    let changed = !equal(live, &object);
    if let Some(own) = managed.entries.get_mut(&manager) {
        own.fields = own.fields.difference(never_owned());
        if changed {
            own.time = Some(options.time.to_owned());
        }
    }
    managed.drop_empty();
    Ok(Applied { object, managed })
}

/// The applier itself keeps all it just applied.
fn give_up_except(
    managed: &mut Managed,
    changes: &Changes,
    taken: &std::collections::BTreeMap<Manager, FieldSet>,
    manager: &Manager,
) {
    let own = managed.entries.remove(manager);
    update::give_up(managed, changes, taken);
    if let Some(own) = own {
        managed.entries.insert(manager.clone(), own);
    }
}

/// Removes what the manager applied last time, applies no longer, and nobody else owns.
fn drop_unwanted(ty: &TypeRef, merged: &Value, managed: &Managed, last: &FieldSet) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let named = |set: &FieldSet| set.with_named_fields(ty.types(), Some(ty.id()));
    let without_last = remove(ty, merged, &named(last));

    // What somebody owns comes back, with the structs around it.
    let owned = managed.entries.values().fold(FieldSet::new(), |all, owned| all.union(&owned.fields));
    let there = named(&fields_of(ty, merged));
    let kept = named(&fields_of(ty, &without_last)).union(&named(&owned));
    let with_owned = remove(ty, merged, &there.difference(&kept));

    // What went only because something around it went, and was never applied, comes back too.
    let kept = named(&fields_of(ty, &with_owned));
    let gone = there.difference(&kept).intersection(&named(last));
    remove(ty, merged, &gone)
}
