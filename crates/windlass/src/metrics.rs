//! Metrics under controller-runtime's names, labels and buckets, so that existing dashboards and alerts work.
//!
//! Every operator has a registry of its own: many can run in one process. A user's own metrics go into the same
//! registry with [`Metrics::register`].

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry},
};

use crate::{cache::WeakCaches, object::ObjectKey, queue::Queue, runs::RunResult};

mod caches;
mod client;
mod process;
mod queues;
mod webhooks;

pub use client::{ClientLayer, CountRequests};

use caches::CacheGauges;
use client::RetryLabels;
use process::ProcessMetrics;
use queues::QueueGauges;
use webhooks::WebhookFamilies;
pub(crate) use webhooks::WebhookMetrics;

/// The buckets of `controller_runtime_reconcile_time_seconds`.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// The buckets of the two `workqueue_…_duration_seconds`: 10 ns to 1,000 s, tenfold.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: Arc<str>,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: Arc<str>,
    controller: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    name: String,
}

type HistogramFamily<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone)]
struct Families {
    total: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    terminal: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    timeouts: Family<ControllerLabels, Counter>,
    time: HistogramFamily<ControllerLabels>,
    workers: Family<ControllerLabels, Gauge>,
    active: Family<ControllerLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    waited: HistogramFamily<QueueLabels>,
    worked: HistogramFamily<QueueLabels>,
    retries: Family<QueueLabels, Counter>,
}

impl Families {
    fn register(registry: &mut Registry) -> Self {
        let queue = || Histogram::new(QUEUE_BUCKETS);
        let families = Self {
            total: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            workers: Family::default(),
            active: Family::default(),
            adds: Family::default(),
            waited: Family::new_with_constructor(queue),
            worked: Family::new_with_constructor(queue),
            retries: Family::default(),
        };
        // Counters are registered without `_total`, which the encoder adds.
        let f = families.clone();
        registry.register(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            f.total,
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Total number of failed reconciliations",
            f.errors,
        );
        registry.register(
            "controller_runtime_terminal_reconcile_errors",
            "Total number of failed reconciliations that are not retried",
            f.terminal,
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Total number of panics in a reconciler",
            f.panics,
        );
        registry.register(
            "controller_runtime_reconcile_timeouts",
            "Total number of timed out reconciliations",
            f.timeouts,
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation",
            f.time,
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciliations",
            f.workers,
        );
        registry.register("controller_runtime_active_workers", "Number of currently used workers", f.active);
        registry.register("workqueue_adds", "Total number of adds handled by the queue", f.adds);
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long a key was ready before it ran",
            f.waited,
        );
        registry.register("workqueue_work_duration_seconds", "How long a run took", f.worked);
        registry.register("workqueue_retries", "Total number of retries handled by the queue", f.retries);
        families
    }
}

/// The metrics of one operator.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    families: Families,
    queues: QueueGauges,
    client: ClientLayer,
    retries: Family<RetryLabels, Counter>,
    /// The host of the API server, once it is known.
    host: Arc<OnceLock<String>>,
    leading: Family<NameLabels, Gauge>,
    slow_renewals: Family<NameLabels, Counter>,
    webhooks: WebhookFamilies,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry);
        let queues = QueueGauges::default();
        registry.register_collector(Box::new(queues.clone()));
        registry.register_collector(Box::new(ProcessMetrics));
        let (client, leading, slow_renewals) = (ClientLayer::default(), Family::default(), Family::default());
        let requests = "Number of HTTP requests, partitioned by status code, method, and host";
        registry.register("rest_client_requests", requests, client.requests.clone());
        let retries = Family::default();
        let repeated = "Number of request retries, partitioned by status code, verb, and host";
        registry.register("rest_client_request_retries", repeated, Family::clone(&retries));
        let holder = "Whether this replica holds the lease";
        registry.register("leader_election_master_status", holder, Family::clone(&leading));
        let slow = "Total number of renewals of the lease that had to read it first";
        registry.register("leader_election_slowpath", slow, Family::clone(&slow_renewals));
        let webhooks = WebhookFamilies::register(&mut registry);
        let registry = Arc::new(Mutex::new(registry));
        Self {
            registry,
            families,
            queues,
            client,
            retries,
            host: Arc::default(),
            leading,
            slow_renewals,
            webhooks,
        }
    }
}

impl Metrics {
    /// Adds a metric of your own. A counter's name is given without `_total`.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.lock().register(name, help, metric);
    }

    /// Counts the requests of a client in these metrics.
    pub fn client_layer(&self) -> ClientLayer {
        self.client.clone()
    }

    /// Notes which API server the requests go to.
    pub(crate) fn set_host(&self, host: &str) {
        // The first one counts: an operator has one API server.
        let _ = self.host.set(host.to_owned());
    }

    /// Counts that a request was made again because of this answer.
    pub(crate) fn request_repeated(&self, code: http::StatusCode, method: &http::Method) {
        let host = self.host.get().cloned().unwrap_or_default();
        let labels = RetryLabels { code: code.as_str().to_owned(), verb: method.to_string(), host };
        self.retries.get_or_create(&labels).inc();
    }

    /// Notes whether this replica holds the lease.
    pub(crate) fn leading(&self, lease: &str, leads: bool) {
        let labels = NameLabels { name: lease.to_owned() };
        self.leading.get_or_create(&labels).set(i64::from(leads));
        // There from the beginning, at zero.
        let _ = self.slow_renewals.get_or_create(&labels);
    }

    /// Counts a renewal of the lease that could not be made with what was last written.
    pub(crate) fn slow_renewal(&self, lease: &str) {
        self.slow_renewals.get_or_create(&NameLabels { name: lease.to_owned() }).inc();
    }

    /// The metrics of the webhook at this path.
    pub(crate) fn webhook(&self, path: &str) -> WebhookMetrics {
        self.webhooks.of(path)
    }

    /// Counts that a certificate was read from a file or a Secret, and whether that failed.
    pub(crate) fn certificate_read(&self, failed: bool) {
        self.webhooks.certificate_reads.inc();
        if failed {
            self.webhooks.certificate_errors.inc();
        }
    }

    /// All metrics in the OpenMetrics text format.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.lock())?;
        Ok(page)
    }

    /// The metrics of one controller.
    pub(crate) fn controller(
        &self,
        name: &Arc<str>,
        concurrency: usize,
        queue: &Arc<Queue<ObjectKey>>,
    ) -> ControllerMetrics {
        self.queues.add(name.clone(), queue);
        let labels = ControllerLabels { controller: name.clone() };
        let queue_labels = QueueLabels { name: name.clone(), controller: name.clone() };
        self.families.workers.get_or_create(&labels).set(concurrency as i64);
        // Families show a series only once it was touched; dashboards expect zeros.
        for result in ["success", "error", "requeue", "requeue_after"] {
            let _ = self.families.total.get_or_create(&ResultLabels { controller: name.clone(), result });
        }
        for family in
            [&self.families.errors, &self.families.terminal, &self.families.panics, &self.families.timeouts]
        {
            let _ = family.get_or_create(&labels);
        }
        ControllerMetrics { families: self.families.clone(), labels, queue_labels, runs: Arc::default() }
    }

    /// Reports the size of these caches from now on.
    pub(crate) fn caches(&self, caches: WeakCaches) {
        self.lock().register_collector(Box::new(CacheGauges { caches }));
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one controller reports.
#[derive(Clone)]
pub(crate) struct ControllerMetrics {
    families: Families,
    labels: ControllerLabels,
    queue_labels: QueueLabels,
    runs: Arc<AtomicU64>,
}

impl ControllerMetrics {
    pub(crate) fn added(&self) {
        self.families.adds.get_or_create(&self.queue_labels).inc();
    }

    /// A run starts. Returns its number.
    pub(crate) fn started(&self, waited: Duration) -> u64 {
        self.families.waited.get_or_create(&self.queue_labels).observe(waited.as_secs_f64());
        self.families.active.get_or_create(&self.labels).inc();
        self.runs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A run was cut off.
    pub(crate) fn abandoned(&self) {
        self.families.active.get_or_create(&self.labels).dec();
    }

    pub(crate) fn finished(&self, verdict: RunResult, took: Duration, retry: bool) {
        let families = &self.families;
        families.active.get_or_create(&self.labels).dec();
        families.time.get_or_create(&self.labels).observe(took.as_secs_f64());
        families.worked.get_or_create(&self.queue_labels).observe(took.as_secs_f64());
        let (result, also) = match verdict {
            RunResult::Success => ("success", None),
            RunResult::RequeueAfter => ("requeue_after", None),
            RunResult::Error => ("error", None),
            RunResult::Terminal => ("error", Some(&families.terminal)),
            RunResult::Panic => ("error", Some(&families.panics)),
            RunResult::Timeout => ("error", Some(&families.timeouts)),
        };
        let labels = ResultLabels { controller: self.labels.controller.clone(), result };
        families.total.get_or_create(&labels).inc();
        if result == "error" {
            families.errors.get_or_create(&self.labels).inc();
        }
        if let Some(family) = also {
            family.get_or_create(&self.labels).inc();
        }
        if retry {
            families.retries.get_or_create(&self.queue_labels).inc();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What is exported once everything has happened: a controller has run and failed, a request was made, a webhook
    /// asked, a lease held, a cache filled.
    pub(crate) async fn touched() -> String {
        use tower::{Layer, ServiceExt};
        let metrics = Metrics::default();
        let answer = tower::service_fn(|_: http::Request<()>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(()))
        });
        let counted = metrics.client_layer().host("api:6443").layer(answer);
        counted.oneshot(http::Request::new(())).await.expect("an answer");
        metrics.leading("lease", false);
        let name = Arc::from("box");
        let queue = Arc::new(Queue::new(crate::queue::Pace::default()));
        let controller = metrics.controller(&name, 2, &queue);
        controller.added();
        controller.started(Duration::ZERO);
        controller.finished(RunResult::Error, Duration::ZERO, true);
        let webhook = metrics.webhook("/x");
        webhook.finished(webhook.started(), http::StatusCode::OK);
        let mut page = metrics.encode().expect("metrics must encode");
        // The gauges of caches are read from stores that a run fills.
        for (name, ..) in caches::FIGURES {
            page.push_str(name);
            page.push('\n');
        }
        page
    }
}
