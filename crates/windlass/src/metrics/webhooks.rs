//! The metrics of webhooks and their certificates, under controller-runtime's names.

use std::sync::Arc;

use axum::http::StatusCode;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use tokio::time::Instant;

use super::{HistogramFamily, QUEUE_BUCKETS};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    webhook: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    webhook: Arc<str>,
    code: u16,
}

#[derive(Clone)]
pub(super) struct WebhookFamilies {
    latency: HistogramFamily<WebhookLabels>,
    requests: Family<CodeLabels, Counter>,
    in_flight: Family<WebhookLabels, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
    pub(super) certificate_reads: Counter,
    pub(super) certificate_errors: Counter,
}

impl WebhookFamilies {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            // The same twelve steps as the queue's.
            latency: Family::new_with_constructor(|| Histogram::new(QUEUE_BUCKETS)),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
            certificate_reads: Counter::default(),
            certificate_errors: Counter::default(),
        };
        let f = families.clone();
        let latency = "Histogram of the latency of processing admission requests";
        registry.register("controller_runtime_webhook_latency_seconds", latency, f.latency);
        let requests = "Total number of admission requests by HTTP status code";
        registry.register("controller_runtime_webhook_requests", requests, f.requests);
        let in_flight = "Current number of admission requests being served";
        registry.register("controller_runtime_webhook_requests_in_flight", in_flight, f.in_flight);
        registry.register("controller_runtime_webhook_panics", "Total number of webhook panics", f.panics);
        registry.register(
            "controller_runtime_conversion_webhook_panics",
            "Total number of conversion webhook panics",
            f.conversion_panics,
        );
        let reads = "Total number of certificate reads";
        registry.register("certwatcher_read_certificate", reads, f.certificate_reads);
        let errors = "Total number of certificate read errors";
        registry.register("certwatcher_read_certificate_errors", errors, f.certificate_errors);
        families
    }

    pub(super) fn of(&self, path: &str) -> WebhookMetrics {
        let webhook: Arc<str> = path.into();
        for code in [200, 500] {
            let _ = self.requests.get_or_create(&CodeLabels { webhook: webhook.clone(), code });
        }
        WebhookMetrics { families: self.clone(), webhook }
    }
}

/// What one webhook reports.
#[derive(Clone)]
pub(crate) struct WebhookMetrics {
    families: WebhookFamilies,
    webhook: Arc<str>,
}

impl WebhookMetrics {
    fn labels(&self) -> WebhookLabels {
        WebhookLabels { webhook: self.webhook.clone() }
    }

    pub(crate) fn started(&self) -> InFlight {
        self.families.in_flight.get_or_create(&self.labels()).inc();
        InFlight { metrics: self.clone(), since: Instant::now() }
    }

    pub(crate) fn finished(&self, request: InFlight, status: StatusCode) {
        let took = request.since.elapsed().as_secs_f64();
        self.families.latency.get_or_create(&self.labels()).observe(took);
        let labels = CodeLabels { webhook: self.webhook.clone(), code: status.as_u16() };
        self.families.requests.get_or_create(&labels).inc();
    }

    pub(crate) fn panicked(&self) {
        self.families.panics.inc();
    }

    pub(crate) fn conversion_panicked(&self) {
        self.families.conversion_panics.inc();
    }
}

/// A request that is being served. Dropped when it ends, also when the client has gone away.
pub(crate) struct InFlight {
    metrics: WebhookMetrics,
    since: Instant,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.families.in_flight.get_or_create(&self.metrics.labels()).dec();
    }
}
