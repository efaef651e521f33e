//! What a body must be to be written: known fields, a current revision, a change that its kind allows. Pure.

use serde_json::Value;

use super::{FieldValidation, Target};
use crate::{
    error::{Cause, Error, Result},
    merge::FieldSet,
    registry::{
        Resource, bounds,
        decode::{self, Order},
        metadata::{is_deleting, meta},
        resource::text,
    },
};

/// The fields that a write to this endpoint never owns.
pub(in crate::registry) fn reset_fields(resource: &Resource, subresource: &str) -> FieldSet {
    match subresource {
        "status" => FieldSet::of_paths(["spec", "metadata"]),
        _ if resource.has("status") => FieldSet::of_paths(["status"]),
        _ => FieldSet::default(),
    }
}

/// The object that a built-in kind starts from: its zero value owns nothing.
pub(in crate::registry) fn zero_of(resource: &Resource) -> Option<&Value> {
    resource.custom().is_none().then(|| resource.schema().zero_ref())
}

/// What becomes of a body when it is decoded: it is cleaned, and nulls that its schema does not allow were never said.
/// What is applied is not decoded in this way.
pub(in crate::registry) fn decoded(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[String],
    order: &Order,
    validation: FieldValidation,
) -> Result<Vec<String>> {
    let warnings = clean(resource, object, duplicates, order, validation)?;
    if resource.custom().is_some() {
        resource.schema().drop_nulls(object);
    }
    Ok(warnings)
}

/// Drops what the schema does not know and says so, as the client wishes.
pub(in crate::registry) fn clean(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[String],
    order: &Order,
    validation: FieldValidation,
) -> Result<Vec<String>> {
    bounds::check_entries(object)?;
    (resource.strategy.form.decode)(resource, object).map_err(|why| cannot_handle(resource, why))?;
    let unknown = resource.schema().prune(object);
    let mut problems: Vec<(&str, &str)> =
        duplicates.iter().map(|field| ("duplicate", field.as_str())).collect();
    problems.extend(unknown.iter().map(|field| ("unknown", field.as_str())));
    if resource.custom().is_none() {
        // A typed object is decoded in one go; a custom one first, and then compared with its schema.
        problems.sort_by_cached_key(|(what, field)| order.place_of(field, *what == "duplicate"));
    }
    problems.truncate(decode::PROBLEMS);
    let problems: Vec<String> =
        problems.into_iter().map(|(what, field)| format!("{what} field \"{field}\"")).collect();
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(problems),
        FieldValidation::Strict if problems.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => {
            Err(cannot_handle(resource, format!("strict decoding error: {}", problems.join(", "))))
        }
    }
}

/// The body is no object of the kind, for the reason that Go's decoder gives.
fn cannot_handle(resource: &Resource, why: String) -> Error {
    let (kind, version) = (&resource.kind, &resource.version);
    Error::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

fn new_finalizers(new: &Value, old: &Value) -> Option<Cause> {
    let list = |object: &Value| meta(object, "finalizers").as_array().cloned().unwrap_or_default();
    let before = list(old);
    let added: Vec<String> =
        list(new).iter().filter(|one| !before.contains(one)).map(ToString::to_string).collect();
    (!added.is_empty()).then(|| {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        Cause::forbidden("metadata.finalizers", &why)
    })
}

pub(super) fn check_revision(target: Target<'_>, new: &Value, current: u64) -> Result<()> {
    let claimed = text(new, "/metadata/resourceVersion");
    if claims_nothing(claimed) || claimed == current.to_string() {
        return Ok(());
    }
    Err(Error::stale(target.resource.named(), target.name))
}

/// Whether a resourceVersion says nothing: there is none, or it is zero, which no object has.
pub(super) fn claims_nothing(claimed: &str) -> bool {
    claimed.is_empty() || claimed.parse() == Ok(0_u64)
}

pub(super) fn check_update(target: Target<'_>, new: &Value, old: &Value) -> Result<()> {
    let resource = target.resource;
    bounds::check_depth(new)?;
    let mut causes = resource.validate(target.subresource, new, Some(old));
    if is_deleting(old) {
        causes.extend(new_finalizers(new, old));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(resource.named_kind(), target.name, causes))
}
