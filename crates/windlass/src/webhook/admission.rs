//! Validating and defaulting: the traits a user implements, and the way from an `AdmissionReview` to them.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    Resource,
    core::{
        DynamicObject, Status,
        admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
    },
};
use serde_json::Value;

use super::{Request, Verdict, patch, verdict::failure};
use crate::object::{Kind, Object};

/// Judges objects of a kind before they are stored.
///
/// Prefer rules in the CRD's schema (`#[x_kube(validation = ...)]`) where they can say it: those need no server.
pub trait Validator: Send + Sync + 'static {
    /// The kind, in the version in which this validator wants to see it.
    type Resource: Object;

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

    /// Judges a deletion. Called only if the webhook was registered for it with [`Webhook::on_delete`].
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
    /// The kind, in the version in which this defaulter wants to see it.
    type Resource: Object;

    /// Changes the object in place. Only what is changed here reaches the stored object; fields that the type
    /// does not know are kept. Called again on every update, so it must leave alone what is set already.
    fn default(&self, object: &mut Self::Resource, request: &Request)
    -> impl Future<Output = Verdict> + Send;
}

/// What a webhook does with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Judges.
    Validating,
    /// Fills in.
    Defaulting,
}

impl Mode {
    /// The verb in paths and names.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Validating => "validate",
            Self::Defaulting => "mutate",
        }
    }
}

/// What the API server does with a request when the webhook does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It refuses the request.
    #[default]
    Fail,
    /// It goes on as if there were no webhook.
    Ignore,
}

type Answer = Pin<Box<dyn Future<Output = AdmissionResponse> + Send>>;
type Handler = Arc<dyn Fn(AdmissionRequest<DynamicObject>) -> Answer + Send + Sync>;

/// A validator or defaulter, and when the API server is to ask it.
#[derive(Clone)]
pub struct Webhook {
    pub(crate) mode: Mode,
    pub(crate) kind: Kind,
    pub(crate) operations: Vec<Operation>,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) timeout: Duration,
    pub(crate) subresources: Vec<String>,
    pub(crate) namespaces: Option<LabelSelector>,
    pub(crate) objects: Option<LabelSelector>,
    handler: Handler,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Asks `validator` about creations and updates.
    pub fn validating<V: Validator>(validator: V) -> Self {
        let validator = Arc::new(validator);
        let handler = move |request: AdmissionRequest<DynamicObject>| -> Answer {
            let validator = validator.clone();
            Box::pin(async move { validate(&*validator, &request).await })
        };
        Self::new::<V::Resource>(Mode::Validating, Arc::new(handler))
    }

    /// Lets `defaulter` fill in creations and updates.
    pub fn defaulting<D: Defaulter>(defaulter: D) -> Self {
        let defaulter = Arc::new(defaulter);
        let handler = move |request: AdmissionRequest<DynamicObject>| -> Answer {
            let defaulter = defaulter.clone();
            Box::pin(async move { default(&*defaulter, &request).await })
        };
        Self::new::<D::Resource>(Mode::Defaulting, Arc::new(handler))
    }

    fn new<K: Object>(mode: Mode, handler: Handler) -> Self {
        Self {
            mode,
            kind: Kind::of::<K>(),
            operations: vec![Operation::Create, Operation::Update],
            failure_policy: FailurePolicy::default(),
            timeout: Duration::from_secs(10),
            subresources: Vec::new(),
            namespaces: None,
            objects: None,
            handler,
        }
    }

    /// Asks about deletions as well. A webhook that is down then keeps objects from being deleted.
    pub fn on_delete(mut self) -> Self {
        if !self.operations.contains(&Operation::Delete) {
            self.operations.push(Operation::Delete);
        }
        self
    }

    /// What happens when the webhook does not answer: the request fails unless set.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = policy;
        self
    }

    /// How long the API server waits for an answer, 1 to 30 seconds: 10 s unless set.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit.clamp(Duration::from_secs(1), Duration::from_secs(30));
        self
    }

    /// Asks about writes to a subresource as well, such as `status`.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresources.push(name.into());
        self
    }

    /// Asks only about objects in namespaces with these labels.
    pub fn in_namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespaces = Some(selector);
        self
    }

    /// Asks only about objects with these labels.
    pub fn with_labels(mut self, selector: LabelSelector) -> Self {
        self.objects = Some(selector);
        self
    }

    /// Where the webhook is served, by controller-runtime's scheme: `/validate-apps-v1-deployment`.
    pub fn path(&self) -> String {
        let Kind { group, version, kind, .. } = &self.kind;
        format!("/{}-{}-{version}-{}", self.mode.verb(), group.replace('.', "-"), kind.to_lowercase())
    }

    /// The name of the webhook in its configuration, which needs three parts.
    pub(crate) fn name(&self) -> String {
        let group = if self.kind.group.is_empty() { "core" } else { &self.kind.group };
        format!("{}.{}.{}.{group}", self.mode.verb(), self.kind.version, self.kind.plural)
    }

    /// Answers a review, as the server does: for tests without one.
    pub async fn review(&self, review: AdmissionReview<DynamicObject>) -> AdmissionReview<DynamicObject> {
        let response = match TryInto::<AdmissionRequest<DynamicObject>>::try_into(review) {
            Ok(request) => self.respond(request).await,
            Err(error) => AdmissionResponse::invalid(error),
        };
        response.into_review()
    }

    pub(super) async fn respond(&self, request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
        (self.handler)(request).await
    }
}

async fn validate<V: Validator>(
    validator: &V,
    request: &AdmissionRequest<DynamicObject>,
) -> AdmissionResponse {
    let info = Request::of(request);
    let verdict = match judge(validator, request, &info).await {
        Ok(verdict) => verdict,
        Err(status) => return refused(request, status),
    };
    answer::<V::Resource>(request, verdict)
}

async fn judge<V: Validator>(
    validator: &V,
    request: &AdmissionRequest<DynamicObject>,
    info: &Request,
) -> Result<Verdict, Box<Status>> {
    let new = || decode::<V::Resource>(request.object.as_ref(), "object");
    let old = || decode::<V::Resource>(request.old_object.as_ref(), "oldObject");
    Ok(match request.operation {
        Operation::Create => validator.validate_create(&new()?, info).await,
        Operation::Update if only_lets_go(request) => Verdict::allow(),
        Operation::Update => validator.validate_update(&old()?, &new()?, info).await,
        Operation::Delete => validator.validate_delete(&old()?, info).await,
        Operation::Connect => return Err(failure(400, "BadRequest", "cannot judge CONNECT".into())),
    })
}

async fn default<D: Defaulter>(
    defaulter: &D,
    request: &AdmissionRequest<DynamicObject>,
) -> AdmissionResponse {
    let Some(live) = request.object.as_ref().filter(|object| object.metadata.deletion_timestamp.is_none())
    else {
        // Nothing to fill in when an object is deleted or going.
        return AdmissionResponse::from(request);
    };
    let mut object = match decode::<D::Resource>(Some(live), "object") {
        Ok(object) => object,
        Err(status) => return refused(request, status),
    };
    let before = encode(&object);
    let verdict = defaulter.default(&mut object, &Request::of(request)).await;
    let allowed = verdict.is_allowed();
    let mut response = answer::<D::Resource>(request, verdict);
    if allowed && let Some(patch) = patch::between(&encode(live), &before, &encode(&object)) {
        response = response.with_patch(patch).expect("a JSON patch must serialise");
    }
    response
}

fn answer<K: Object>(request: &AdmissionRequest<DynamicObject>, verdict: Verdict) -> AdmissionResponse {
    let mut response = match verdict.status(&Kind::of::<K>(), &request.name) {
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

fn decode<K: Object>(object: Option<&DynamicObject>, field: &str) -> Result<K, Box<Status>> {
    let kind = K::kind(&());
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
