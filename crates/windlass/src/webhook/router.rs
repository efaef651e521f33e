//! Webhooks over HTTP: one path for each, panics kept in their request, every request counted.

use std::{any::Any, future::Future, panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::FutureExt;
use kube::{
    Client,
    core::{
        DynamicObject,
        admission::{AdmissionRequest, AdmissionReview},
    },
};
use serde_json::Value;
use tracing::Instrument;

use super::{Conversion, Webhook, admission::refused, conversion, tools::Tools, verdict::failure};
use crate::{
    cache::Caches,
    metrics::{Metrics, WebhookMetrics},
};

/// The path of every conversion.
pub(crate) const CONVERT: &str = "/convert";

/// How large a review may be: an object and its predecessor, each at most what etcd takes, and some more.
const LARGEST_ADMISSION: usize = 7 << 20;
/// A conversion is asked for whole lists.
const LARGEST_CONVERSION: usize = 64 << 20;

/// Every webhook of an operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Webhooks {
    pub(crate) admission: Vec<Webhook>,
    pub(crate) conversions: Vec<Conversion>,
}

impl Webhooks {
    pub(crate) fn is_empty(&self) -> bool {
        self.admission.is_empty() && self.conversions.is_empty()
    }

    /// A path that two webhooks claim.
    pub(crate) fn collision(&self) -> Option<String> {
        let mut seen = std::collections::BTreeSet::new();
        let kinds = self.conversions.iter().map(|c| format!("{CONVERT} of {}", c.kind()));
        self.admission.iter().map(Webhook::path).chain(kinds).find(|path| !seen.insert(path.clone()))
    }

    /// The HTTP service of all of them.
    pub(crate) fn router(&self, metrics: &Metrics, around: Option<&Around<'_>>) -> Router {
        let mut router = Router::new();
        for webhook in &self.admission {
            let path = webhook.path();
            let tools = around.map(|around| {
                Tools::new(&path, &webhook.reads, around.client, around.caches, around.namespaces)
            });
            let hook = (webhook.clone(), tools);
            let state = Arc::new(Served { hook, metrics: metrics.webhook(&path) });
            let route = post(admit).layer(DefaultBodyLimit::max(LARGEST_ADMISSION)).with_state(state);
            router = router.route(&path, route);
        }
        if !self.conversions.is_empty() {
            let state =
                Arc::new(Served { hook: self.conversions.clone(), metrics: metrics.webhook(CONVERT) });
            let route = post(convert).layer(DefaultBodyLimit::max(LARGEST_CONVERSION)).with_state(state);
            router = router.route(CONVERT, route);
        }
        router
    }
}

/// What handlers of a running operator may use.
pub(crate) struct Around<'a> {
    pub(crate) client: &'a Client,
    pub(crate) caches: &'a Caches,
    pub(crate) namespaces: &'a [String],
}

type Hook = (Webhook, Option<Tools>);

struct Served<H> {
    hook: H,
    metrics: WebhookMetrics,
}

impl<H> Served<H> {
    /// Counts and times a request.
    async fn measured(&self, answer: impl Future<Output = Response> + Send) -> Response {
        let started = self.metrics.started();
        let response = answer.await;
        self.metrics.finished(started, response.status());
        response
    }
}

async fn admit(State(served): State<Arc<Served<Hook>>>, body: Bytes) -> Response {
    let answer = async {
        let review: AdmissionReview<DynamicObject> = match serde_json::from_slice(&body) {
            Ok(review) => review,
            Err(error) => return unreadable("AdmissionReview", &error),
        };
        let Ok(request): Result<AdmissionRequest<DynamicObject>, _> = review.try_into() else {
            return (StatusCode::BAD_REQUEST, "the AdmissionReview has no request\n").into_response();
        };
        let span = tracing::info_span!(
            "admission",
            webhook = served.hook.0.path(),
            operation = ?request.operation,
            namespace = request.namespace,
            name = request.name,
            uid = request.uid,
        );
        guarded(&served, request).instrument(span).await
    };
    served.measured(answer).await
}

/// Asks the webhook; a panic becomes a refusal that says so.
async fn guarded(served: &Served<Hook>, request: AdmissionRequest<DynamicObject>) -> Response {
    let (webhook, tools) = &served.hook;
    let asked = AssertUnwindSafe(webhook.respond(request.clone(), tools.as_ref())).catch_unwind().await;
    let response = asked.unwrap_or_else(|panic| {
        served.metrics.panicked();
        let text = panic_text(&*panic);
        tracing::error!(panic = text, "webhook panicked");
        refused(&request, failure(500, "InternalError", format!("the webhook panicked: {text}")))
    });
    if response.allowed {
        tracing::debug!("allowed");
    } else {
        tracing::info!(reason = response.result.message, "refused");
    }
    let patch = response.patch.clone();
    let mut review = serde_json::to_value(response.into_review()).expect("a review must serialise");
    if let Some(patch) = patch {
        // kube writes a list of numbers, which only Go's decoder takes for bytes.
        review["response"]["patch"] = Value::String(STANDARD.encode(patch));
    }
    json(&review)
}

async fn convert(State(served): State<Arc<Served<Vec<Conversion>>>>, body: Bytes) -> Response {
    let answer = async {
        let review = match serde_json::from_slice(&body) {
            Ok(review) => review,
            Err(error) => return unreadable("ConversionReview", &error),
        };
        let (review, panicked) = conversion::answer(&served.hook, review);
        if panicked {
            served.metrics.conversion_panicked();
        }
        json(&serde_json::to_value(review).expect("a review must serialise"))
    };
    served.measured(answer).await
}

fn unreadable(kind: &str, error: &serde_json::Error) -> Response {
    tracing::warn!(%error, "failed to read a review");
    (StatusCode::BAD_REQUEST, format!("failed to read the {kind}: {error}\n")).into_response()
}

fn json(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
