//! Patches: four ways to say a change, one pipeline to commit it.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::{
    Registry, Resource, bounds,
    decode::{self, Order},
    metadata,
    resource::text,
    scale,
    write::{
        FieldValidation, Ownership, Target, Write, WriteOptions, Written, clean, decoded, reset_fields,
        zero_of,
    },
};
use crate::{
    error::{Cause, Details, Error, Reason, Result},
    merge::{self, ApplyError, ApplyOptions, Versions},
};

/// The language of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Merge with list keys and directives; built-in kinds only.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// A patch as it arrived.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Its language.
    pub kind: PatchKind,
    /// Its text, decoded.
    pub body: Value,
    /// Keys that it says twice: their paths; for an apply, where they stand.
    pub duplicates: Vec<String>,
    /// For an apply: take fields from other managers.
    pub force: bool,
}

impl Registry {
    /// Patches an object or one of its subresources.
    pub async fn patch(&self, target: Target<'_>, patch: &Patch, options: &WriteOptions) -> Result<Written> {
        if target.subresource == "scale" {
            return self.patch_scale(target, patch, options).await;
        }
        match patch.kind {
            PatchKind::Apply => self.apply(target, patch, options).await,
            _ => self.patch_object(target, patch, options).await,
        }
    }

    async fn patch_object(
        &self,
        target: Target<'_>,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written> {
        let resource = target.resource;
        let warnings = Mutex::new(Vec::new());
        let change = |old: &Value| {
            let mut new = patched(resource, old, patch)?;
            refuse_nameless(&new, target.name)?;
            refuse_identity_change(resource, &new, old)?;
            metadata::match_name(&mut new, target.name)?;
            refuse_other_uid(resource, &new, old)?;
            let told = decoded(resource, &mut new, &patch.duplicates, &Order::default(), options.validation)
                .map_err(|error| undecodable(patch, &new, &error))?;
            *warnings.lock().unwrap_or_else(PoisonError::into_inner) = told;
            Ok(new)
        };
        let outcome = self.change(&Write::new(target, options), &change).await;
        options.warnings.add_first(&warnings.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(Written { object: outcome?, created: false })
    }

    async fn apply(&self, target: Target<'_>, patch: &Patch, options: &WriteOptions) -> Result<Written> {
        let resource = target.resource;
        if options.manager.is_empty() {
            let why = "is required for apply patch";
            let cause = Cause::required("fieldManager", why);
            let what = crate::error::Named { group: "meta.k8s.io", resource: "PatchOptions" };
            return Err(Error::invalid(what, "", vec![cause]));
        }
        let mut intent = patch.body.clone();
        refuse_other_kind(resource, &intent)?;
        decode::match_kind(&mut intent, resource, &resource.group, &resource.version, &resource.kind)?;
        metadata::match_namespace(&mut intent, resource, target.namespace)?;
        metadata::match_name(&mut intent, target.name)?;
        if metadata::meta(&intent, "managedFields").as_array().is_some_and(|list| !list.is_empty()) {
            return Err(Error::bad_request("metadata.managedFields must be nil"));
        }
        refuse_unknown(resource, &patch.body)?;
        let mut warnings = clean(resource, &mut intent, &[], &Order::default(), options.validation)?;
        let repeated = repeated_keys(&patch.duplicates);
        if options.validation == FieldValidation::Warn {
            warnings.extend(repeated.clone());
        }
        options.warnings.add_first(&warnings);
        let merged = |live: Option<&Value>| {
            if live.is_none() {
                refuse_uid(resource, &intent)?;
            }
            let merged = self.merge(target, live, &intent, patch.force, options)?;
            match &repeated {
                Some(why) if options.validation == FieldValidation::Strict => {
                    Err(Error::bad_request(format!("error strict decoding patch: {why}")))
                }
                _ => Ok(merged),
            }
        };
        let write = Write::new(target, options).with(Ownership::Done);
        let (object, created) = if target.subresource.is_empty() {
            self.upsert(&write, &merged).await?
        } else {
            (self.change(&write, &|live| merged(Some(live))).await?, false)
        };
        Ok(Written { object, created })
    }

    fn merge(
        &self,
        target: Target<'_>,
        live: Option<&Value>,
        intent: &Value,
        force: bool,
        options: &WriteOptions,
    ) -> Result<Value> {
        let resource = target.resource;
        let (api_version, time) = (resource.api_version(), self.environment().now_text());
        let reset = reset_fields(resource, target.subresource);
        let see = |version: &str, object: &Value| self.seen_in(resource, version, object);
        let options = ApplyOptions {
            manager: &options.manager,
            force,
            subresource: target.subresource,
            api_version: &api_version,
            time: &time,
            reset: &reset,
            zero: zero_of(resource),
            versions: Versions::new(&see),
        };
        merge::apply(resource.schema(), live, intent, &options).map_err(apply_error)
    }

    async fn patch_scale(
        &self,
        target: Target<'_>,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written> {
        let resource = target.resource;
        let change = |old: &Value| {
            let before = scale::of(resource, old)?;
            let after = match patch.kind {
                PatchKind::Apply => merge_patch(&before, &patch.body),
                _ => patched_untyped(&before, patch)?,
            };
            scale::set(resource, old, &after)
        };
        let object = self.change(&Write::new(target, options).with(Ownership::Scale), &change).await?;
        let shown = scale::of(resource, &object.into_value())?;
        Ok(Written { object: super::Presented::Converted(shown), created: false })
    }
}

/// What a patch makes of an object has its name.
fn refuse_nameless(new: &Value, name: &str) -> Result<()> {
    if !text(new, "/metadata/name").is_empty() {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )))
}

fn patched(resource: &Resource, old: &Value, patch: &Patch) -> Result<Value> {
    if patch.kind == PatchKind::Strategic {
        if resource.custom().is_some() {
            return Err(Error::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ));
        }
        refuse_no_object(patch)?;
        return merge::strategic(resource.schema(), old, &patch.body)
            .map_err(|error| Error::bare(error.to_string()));
    }
    patched_untyped(old, patch)
}

fn patched_untyped(old: &Value, patch: &Patch) -> Result<Value> {
    match patch.kind {
        PatchKind::Json => {
            if !patch.body.is_array() {
                let kind = if patch.body.is_object() { "object" } else { "string" };
                return Err(Error::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
                )));
            }
            let mut body = patch.body.clone();
            for operation in body.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                // Go takes a value that is not there for null.
                if operation.get("op").is_some_and(|op| op == "add" || op == "replace" || op == "test") {
                    operation.entry("value").or_insert(Value::Null);
                }
            }
            let operations: json_patch::Patch =
                serde_json::from_value(body).map_err(|error| not_applied(&error))?;
            bounds::json_patch(old, &operations)
        }
        _ => {
            refuse_no_object(patch)?;
            Ok(merge_patch(old, &patch.body))
        }
    }
}

/// A patch that merges is an object.
fn refuse_no_object(patch: &Patch) -> Result<()> {
    if patch.body.is_object() { Ok(()) } else { Err(Error::bad_request("invalid JSON patch")) }
}

/// A JSON patch that cannot be carried out.
fn not_applied(error: &dyn std::fmt::Display) -> Error {
    let mut failure =
        Error::new(Reason::Invalid, "the server rejected our request due to an error in our request");
    failure.details = Some(Box::default());
    tracing::debug!(%error, "a JSON patch did not apply");
    failure
}

/// What a patch makes is no object of its kind.
fn undecodable(patch: &Patch, new: &Value, error: &Error) -> Error {
    let why = error.message.split_once(": ").map_or(error.message.as_str(), |(_, why)| why);
    let shown = match patch.kind {
        PatchKind::Strategic => merge::as_go(&patch.body),
        _ => new.to_string(),
    };
    Error::bad_patch(&shown, why)
}

/// A patch cannot make another object of this one. One that takes the uid away gets it back, as with an update.
fn refuse_other_uid(resource: &Resource, new: &Value, old: &Value) -> Result<()> {
    let (claimed, actual) = (text(new, "/metadata/uid"), text(old, "/metadata/uid"));
    if claimed.is_empty() || claimed == actual {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", &serde_json::json!(claimed), "field is immutable");
    Err(Error::invalid(resource.named_kind(), text(old, "/metadata/name"), vec![cause]))
}

fn merge_patch(old: &Value, patch: &Value) -> Value {
    let mut new = old.clone();
    json_patch::merge(&mut new, patch);
    new
}

fn refuse_identity_change(resource: &Resource, new: &Value, old: &Value) -> Result<()> {
    for field in ["/apiVersion", "/kind"] {
        if text(new, field) != text(old, field) {
            let message = format!(
                "the {} in the patch ({}) does not match that of the {} ({})",
                &field[1..],
                text(new, field),
                resource.kind,
                text(old, field)
            );
            return Err(Error::bad_patch(&new.to_string(), message));
        }
    }
    Ok(())
}

/// What the schema does not know cannot be owned.
fn refuse_unknown(resource: &Resource, intent: &Value) -> Result<()> {
    let mut copy = intent.clone();
    let Some(field) = resource.schema().prune(&mut copy).into_iter().next() else { return Ok(()) };
    let (name, namespace) = (text(intent, "/metadata/name"), text(intent, "/metadata/namespace"));
    let version = resource.api_version();
    let version = if version.contains('/') { version } else { format!("/{version}") };
    Err(Error::bare(format!(
        "failed to create typed patch object ({namespace}/{name}; {version}, Kind={}): .{field}: field not declared in \
         schema",
        resource.kind
    )))
}

/// Keys that an intent says twice, in the words of Go's YAML decoder.
fn repeated_keys(lines: &[String]) -> Option<String> {
    let list = lines.join("\n  ");
    (!lines.is_empty()).then(|| format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {list}"))
}

/// An intent says of which kind it is.
fn refuse_other_kind(resource: &Resource, intent: &Value) -> Result<()> {
    let (version, kind) = (text(intent, "/apiVersion"), text(intent, "/kind"));
    if version == resource.api_version() && kind == resource.kind {
        return Ok(());
    }
    let shown = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
    Err(Error::bad_request(format!("invalid object type: {shown}, Kind={kind}")))
}

/// An apply that names a uid means an object that exists.
fn refuse_uid(resource: &Resource, intent: &Value) -> Result<()> {
    let uid = text(intent, "/metadata/uid");
    if uid.is_empty() {
        return Ok(());
    }
    let why =
        format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Err(Error::conflict(resource.named(), text(intent, "/metadata/name"), why))
}

fn apply_error(error: ApplyError) -> Error {
    match error {
        ApplyError::Conflict(conflicts) => {
            let mut failure = Error::new(Reason::Conflict, conflicts.message());
            let causes = conflicts.causes().into_iter().map(|cause| Cause {
                reason: "FieldManagerConflict".into(),
                message: cause.message,
                field: cause.field,
            });
            failure.details = Some(Box::new(Details { causes: causes.collect(), ..Details::default() }));
            failure
        }
        ApplyError::BadRequest(message) => Error::bad_request(message),
        ApplyError::ManagedFields(error) => Error::bad_request(error.to_string()),
        ApplyError::Typed(message) => {
            let mut failure = Error::internal(&message);
            failure.message = message;
            failure.reason = None;
            failure.details = None;
            failure
        }
    }
}
