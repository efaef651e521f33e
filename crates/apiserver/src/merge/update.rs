//! Ownership after a write that is not an apply: create, PUT and the other patches.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value};

use super::{
    compare::Comparison,
    conflict::Conflicts,
    field_set::FieldSet,
    managed::{self, Managed, Manager, Owned},
    versions::{Changes, Versions},
};
use crate::schema::{TypeRef, json::at};

/// Fields of every object that are never owned: its identity and what the server keeps.
const NEVER_OWNED: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

/// Who writes, where, when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateOptions<'a> {
    /// The field manager; empty means unknown.
    pub(crate) manager: &'a str,
    /// The subresource written to, or empty.
    pub(crate) subresource: &'a str,
    /// The group and version of the request, such as `apps/v1`.
    pub(crate) api_version: &'a str,
    /// Now, as RFC 3339 with seconds.
    pub(crate) time: &'a str,
    /// Fields which this endpoint never changes, so that their writer never owns them.
    pub(crate) reset: &'a FieldSet,
    /// What a new object is compared with: [`TypeRef::zero`] for built-in kinds.
    pub(crate) zero: Option<&'a Value>,
    /// The other versions of the kind.
    pub(crate) versions: Versions<'a>,
}

/// Writes into `new` who owns its fields, now that `options.manager` turned `old` into it.
///
/// `new` is in the form in which it will be stored, defaults included, and may carry
/// `managedFields` of its own: they count, an empty list resets all ownership. A subresource
/// never changes other managers' entries directly.
pub(crate) fn track_update(ty: &TypeRef, old: Option<&Value>, new: &mut Value, options: &UpdateOptions<'_>) {
    let mut managed = starting_point(old, new, options.subresource);
    managed::strip(new);
    // Objects from before ownership was tracked stay untracked until somebody applies.
    if managed.entries.is_empty() && old.is_some() {
        return;
    }
    let zero = Value::Object(Map::new());
    record(ty, old.or(options.zero).unwrap_or(&zero), new, &mut managed, options);
    managed.cap();
    managed.write(new);
}

/// Keeps the old times of `managedFields` when nothing else changed, so that a write which changes
/// nothing stays one. For `new` as it would be stored, after admission.
pub(crate) fn keep_times(old: &Value, new: &mut Value) {
    let same = match (managed_fields(old), managed_fields(new)) {
        (Some(before), Some(after)) => before != after && same_but_for_times(before, after),
        _ => false,
    };
    if !same {
        return;
    }
    let times = at(old, "/metadata/managedFields").cloned();
    let current = new.pointer_mut("/metadata/managedFields");
    let (Some(times), Some(current)) = (times, current) else {
        return;
    };
    let changed = std::mem::replace(current, times);
    // Whatever differs now is a real change, and then the time is news.
    if old != new
        && let Some(current) = new.pointer_mut("/metadata/managedFields")
    {
        *current = changed;
    }
}

fn managed_fields(object: &Value) -> Option<&Vec<Value>> {
    at(object, "/metadata/managedFields")?.as_array()
}

fn same_but_for_times(before: &[Value], after: &[Value]) -> bool {
    let timeless = |entry: &'_ Map<String, Value>| entry.len() - usize::from(entry.contains_key("time"));
    let same = |(before, after): (&Value, &Value)| match (before.as_object(), after.as_object()) {
        (Some(before), Some(after)) => {
            timeless(before) == timeless(after)
                && before.iter().all(|(key, value)| key == "time" || after.get(key) == Some(value))
        }
        _ => false,
    };
    before.len() == after.len() && before.iter().zip(after).all(same)
}

/// Whose entries count: those of the request, unless it has none or may not set any.
fn starting_point(old: Option<&Value>, new: &Value, subresource: &str) -> Managed {
    let live = || old.map(Managed::of).and_then(Result::ok).unwrap_or_default();
    if !subresource.is_empty() {
        return live();
    }
    if managed::asks_for_reset(new) {
        return Managed::default();
    }
    match Managed::of(new) {
        Ok(managed) if !managed.entries.is_empty() => managed,
        _ => live(),
    }
}

/// Lets the writer own what it changed, and everybody else no longer. `after` says nothing of owners; `before` may.
pub(crate) fn record(
    ty: &TypeRef,
    before: &Value,
    after: &Value,
    managed: &mut Managed,
    options: &UpdateOptions<'_>,
) {
    let mut own = Comparison::of(ty, before, after).without(options.reset);
    if at(before, "/metadata/managedFields").is_some() {
        own.removed = own.removed.without(owners());
    }
    let kind = (ty, options.api_version);
    let changes = options.versions.changes(kind, (before, after), managed, options.reset, own);
    let taken = taken_from_others(managed, &changes, None);
    give_up(managed, &changes, &taken);
    let written = changes.own.written().difference(never_owned());
    if written.is_empty() {
        return;
    }
    let manager = Manager::updater(options.manager, options.api_version, options.subresource);
    let previous = managed.entries.remove(&manager);
    let fields = match previous {
        Some(previous) => previous.fields.union(&written),
        None => written,
    };
    managed.entries.insert(
        manager,
        Owned { fields, api_version: options.api_version.to_owned(), time: Some(options.time.to_owned()) },
    );
}

/// What others than `except` own of the changed fields.
pub(crate) fn taken_from_others(
    managed: &Managed,
    changes: &Changes,
    except: Option<&Manager>,
) -> BTreeMap<Manager, FieldSet> {
    managed
        .entries
        .iter()
        .filter(|(manager, _)| Some(*manager) != except)
        .map(|(manager, owned)| {
            let written = changes.of(&owned.api_version).written();
            (manager.clone(), owned.fields.intersection(&written))
        })
        .filter(|(_, taken)| !taken.is_empty())
        .collect()
}

/// Takes from the others what was overwritten or is gone; who then owns nothing disappears.
pub(crate) fn give_up(managed: &mut Managed, changes: &Changes, taken: &BTreeMap<Manager, FieldSet>) {
    for (manager, owned) in &mut managed.entries {
        if let Some(taken) = taken.get(manager) {
            owned.fields = owned.fields.difference(taken);
        }
        let removed = &changes.of(&owned.api_version).removed;
        if !removed.is_empty() {
            owned.fields = owned.fields.difference(removed);
        }
    }
    managed.drop_empty();
}

/// The conflicts that overwriting `taken` would be.
pub(crate) fn conflicts(taken: &BTreeMap<Manager, FieldSet>) -> Option<Conflicts> {
    Conflicts::from_sets(taken)
}

/// The record of owners itself, which is neither there nor gone for whoever compares two objects.
fn owners() -> &'static FieldSet {
    static SET: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(["metadata.managedFields"]));
    &SET
}

pub(crate) fn never_owned() -> &'static FieldSet {
    static SET: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(NEVER_OWNED));
    &SET
}
