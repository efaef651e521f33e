//! Validating and defaulting: the traits a user implements, and the way from an `AdmissionReview` to them.

use std::future::Future;

use kube::{
    Resource,
    core::{
        DynamicObject, Status,
        admission::{AdmissionRequest, AdmissionResponse, Operation},
    },
};
use serde_json::Value;

use super::{Request, Verdict, patch, verdict::failure};
use crate::object::{AnyObject, Kind};

/// Judges objects of a kind before they are stored.
///
/// Prefer rules in the CRD's schema (`#[x_kube(validation = ...)]`) where they can say it: those need no server.
pub trait Validator: Send + Sync + 'static {
    /// The kind, in the version in which this validator wants to see it; `DynamicObject` for one that is known only
    /// when the program runs.
    type Resource: AnyObject;

    /// Judges a new object; also an updated one, unless [`validate_update`](Self::validate_update) is written.
    fn validate_create(
        &self,
        object: &Self::Resource,
        request: &Request,
    ) -> impl Future<Output = Verdict> + Send;

    /// Judges a change.
    ///
    /// Not called while an object is going and only its metadata changes: an object that has become invalid
    /// must still be able to lose its finalizers.
    fn validate_update(
        &self,
        old: &Self::Resource,
        new: &Self::Resource,
        request: &Request,
    ) -> impl Future<Output = Verdict> + Send {
        let _ = old;
        self.validate_create(new, request)
    }

    /// Judges a deletion. Called only if the webhook was registered for it with [`Webhook::on_delete`](super::Webhook::on_delete).
    fn validate_delete(
        &self,
        object: &Self::Resource,
        request: &Request,
    ) -> impl Future<Output = Verdict> + Send {
        let _ = (object, request);
        async { Verdict::allow() }
    }
}

/// Fills in what a user left out, before an object is validated and stored.
pub trait Defaulter: Send + Sync + 'static {
    /// The kind, in the version in which this defaulter wants to see it; `DynamicObject` for one that is known only
    /// when the program runs.
    type Resource: AnyObject;

    /// Changes the object in place. Only what is changed here reaches the stored object; fields that the type
    /// does not know are kept. Called again on every update, so it must leave alone what is set already.
    fn default(&self, object: &mut Self::Resource, request: &Request)
    -> impl Future<Output = Verdict> + Send;
}

pub(super) async fn validate<V: Validator>(
    validator: &V,
    kind: &Kind,
    request: &AdmissionRequest<DynamicObject>,
    info: &Request,
) -> AdmissionResponse {
    match judge(validator, kind, request, info).await {
        Ok(verdict) => answer(kind, request, verdict),
        Err(status) => refused(request, status),
    }
}

async fn judge<V: Validator>(
    validator: &V,
    kind: &Kind,
    request: &AdmissionRequest<DynamicObject>,
    info: &Request,
) -> Result<Verdict, Box<Status>> {
    let new = || decode::<V::Resource>(kind, request.object.as_ref(), "object");
    let old = || decode::<V::Resource>(kind, request.old_object.as_ref(), "oldObject");
    Ok(match request.operation {
        Operation::Create => validator.validate_create(&new()?, info).await,
        Operation::Update if only_lets_go(request) => Verdict::allow(),
        Operation::Update => validator.validate_update(&old()?, &new()?, info).await,
        Operation::Delete => validator.validate_delete(&old()?, info).await,
        Operation::Connect => return Err(failure(400, "BadRequest", "cannot judge CONNECT".into())),
    })
}

pub(super) async fn default<D: Defaulter>(
    defaulter: &D,
    kind: &Kind,
    request: &AdmissionRequest<DynamicObject>,
    info: &Request,
) -> AdmissionResponse {
    let Some(live) = request.object.as_ref().filter(|object| object.metadata.deletion_timestamp.is_none())
    else {
        // Nothing to fill in when an object is deleted or going.
        return AdmissionResponse::from(request);
    };
    let mut object = match decode::<D::Resource>(kind, Some(live), "object") {
        Ok(object) => object,
        Err(status) => return refused(request, status),
    };
    let before = encode(&object);
    let verdict = defaulter.default(&mut object, info).await;
    let allowed = verdict.is_allowed();
    let mut response = answer(kind, request, verdict);
    if allowed && let Some(patch) = patch::between(&encode(live), &before, &encode(&object)) {
        response = response.with_patch(patch).expect("a JSON patch must serialise");
    }
    response
}

fn answer(kind: &Kind, request: &AdmissionRequest<DynamicObject>, verdict: Verdict) -> AdmissionResponse {
    let mut response = match verdict.status(kind, &request.name) {
        None => AdmissionResponse::from(request),
        Some(status) => refused(request, status),
    };
    response.warnings = verdict.into_warnings();
    response
}

pub(super) fn refused(request: &AdmissionRequest<DynamicObject>, status: Box<Status>) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
    response.allowed = false;
    response.result = *status;
    response
}

/// Whether an object is going and nothing but its metadata and status changes.
fn only_lets_go(request: &AdmissionRequest<DynamicObject>) -> bool {
    let content = |object: &DynamicObject| {
        let mut data = object.data.clone();
        if let Some(fields) = data.as_object_mut() {
            fields.remove("status");
        }
        data
    };
    match (&request.object, &request.old_object) {
        (Some(new), Some(old)) => new.metadata.deletion_timestamp.is_some() && content(new) == content(old),
        _ => false,
    }
}

fn decode<K: AnyObject>(kind: &Kind, object: Option<&DynamicObject>, field: &str) -> Result<K, Box<Status>> {
    let kind = &kind.kind;
    let Some(object) = object else {
        return Err(failure(
            400,
            "BadRequest",
            format!("failed to read the {kind}: the review has no {field}"),
        ));
    };
    serde_json::from_value(encode(object)).map_err(|error| {
        let name = object.meta().name.as_deref().unwrap_or_default();
        failure(400, "BadRequest", format!("failed to read {kind} {name:?}: {error}"))
    })
}

fn encode(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).expect("an object that came as JSON must serialise")
}
