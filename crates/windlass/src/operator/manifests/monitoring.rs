//! What makes a Prometheus read an operator's metrics and warn by them, and a Grafana show them. Not part of what is
//! applied by default: two of the three kinds are the Prometheus operator's, which a cluster may not have.
//!
//! Every query here names a metric that the SDK exports; a test compares.

use serde_json::{Value, json};

use super::{Operator, Placement, labelled};

/// An alert: its name, its query, for how long, how bad, and what it means.
struct Alert {
    name: &'static str,
    query: String,
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
}

/// A panel of the dashboard: its title, Grafana's unit, and what it shows under which legend.
struct Panel {
    title: &'static str,
    unit: &'static str,
    queries: Vec<(String, &'static str)>,
}

impl Operator {
    /// A ServiceMonitor, a PrometheusRule, and a ConfigMap with a dashboard for Grafana.
    ///
    /// They are apart from [`manifests`](Self::manifests): the first two need the CRDs of the Prometheus operator.
    pub fn monitoring_manifests(&self, placement: &Placement) -> Vec<Value> {
        vec![self.service_monitor(placement), self.alerts(placement), self.dashboard(placement)]
    }

    fn service_monitor(&self, placement: &Placement) -> Value {
        let scheme = placement.metrics.scheme();
        // Of the Services with the label below only that of the metrics has a port of this name.
        let mut endpoint = json!({ "path": "/metrics", "port": scheme, "scheme": scheme });
        if placement.metrics.secure {
            endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token".into();
            // The operator signs the certificate itself; who may read is decided by the token.
            endpoint["tlsConfig"] = json!({ "insecureSkipVerify": true });
        }
        let monitor = json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "spec": {
                "endpoints": [endpoint],
                "selector": { "matchLabels": self.selector() },
            },
        });
        labelled(self, monitor, &format!("{}-metrics-monitor", self.name()), Some(&placement.namespace))
    }

    /// Whose series are meant: a ServiceMonitor's job is named after the Service.
    fn series(&self, placement: &Placement) -> String {
        format!("namespace=\"{}\",job=\"{}-metrics\"", placement.namespace, self.name())
    }

    fn alerts(&self, placement: &Placement) -> Value {
        let rules: Vec<Value> = alerts(&self.series(placement), !self.webhooks.is_empty())
            .into_iter()
            .map(|alert| {
                json!({
                    "alert": alert.name,
                    "expr": alert.query,
                    "for": alert.lasts,
                    "labels": { "severity": alert.severity, "operator": self.name() },
                    "annotations": { "summary": alert.summary },
                })
            })
            .collect();
        let rule = json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "spec": { "groups": [{ "name": self.name(), "rules": rules }] },
        });
        labelled(self, rule, &format!("{}-rules", self.name()), Some(&placement.namespace))
    }

    fn dashboard(&self, placement: &Placement) -> Value {
        let panels = panels(&self.series(placement), !self.webhooks.is_empty());
        let panels: Vec<Value> = panels.iter().enumerate().map(|(place, panel)| panel.json(place)).collect();
        let source = json!({ "name": "datasource", "type": "datasource", "query": "prometheus" });
        let page = json!({
            "uid": format!("{}-operator", self.name()),
            "title": format!("{} (operator)", self.name()),
            "tags": ["kubernetes", "operator"],
            "schemaVersion": 39,
            "time": { "from": "now-3h", "to": "now" },
            "refresh": "30s",
            "templating": { "list": [source] },
            "panels": panels,
        });
        let text = serde_json::to_string_pretty(&page).expect("a dashboard must serialise") + "\n";
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            // What the sidecar of Grafana's chart looks for.
            "metadata": { "labels": { "grafana_dashboard": "1" } },
            "data": { format!("{}.json", self.name()): text },
        });
        labelled(self, map, &format!("{}-dashboard", self.name()), Some(&placement.namespace))
    }
}

fn alerts(series: &str, webhooks: bool) -> Vec<Alert> {
    let alert =
        |name, query: String, lasts, severity, summary| Alert { name, query, lasts, severity, summary };
    let mut alerts = vec![
        alert(
            "OperatorAbsent",
            format!("absent(controller_runtime_max_concurrent_reconciles{{{series}}})"),
            "10m",
            "critical",
            "No replica of the operator is scraped: nothing is reconciled, or nobody would know.",
        ),
        alert(
            "OperatorWithoutLeader",
            format!("max(leader_election_master_status{{{series}}}) < 1"),
            "5m",
            "critical",
            "No replica of the operator holds the lease: nothing is reconciled.",
        ),
        alert(
            "OperatorReconcileErrors",
            format!(
                "sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{series}}}[5m])) / \
                 sum by (controller) (rate(controller_runtime_reconcile_total{{{series}}}[5m])) > 0.1"
            ),
            "15m",
            "warning",
            "More than a tenth of the reconciles of {{ $labels.controller }} fail.",
        ),
        alert(
            "OperatorReconcilePanics",
            format!(
                "sum by (controller) (increase(controller_runtime_reconcile_panics_total{{{series}}}[15m])) > 0"
            ),
            "0m",
            "warning",
            "A reconcile of {{ $labels.controller }} has panicked: this is a bug in the operator.",
        ),
        alert(
            "OperatorReconcileStuck",
            format!("max by (controller) (workqueue_longest_running_processor_seconds{{{series}}}) > 300"),
            "5m",
            "warning",
            "A reconcile of {{ $labels.controller }} has run for more than five minutes.",
        ),
        alert(
            "OperatorQueueGrows",
            format!("sum by (controller) (workqueue_depth{{{series}}}) > 100"),
            "15m",
            "warning",
            "More than a hundred objects wait for {{ $labels.controller }}.",
        ),
        alert(
            "OperatorForbidden",
            format!("sum(increase(rest_client_requests_total{{{series},code=\"403\"}}[15m])) > 0"),
            "15m",
            "warning",
            "The API server forbids requests of the operator: its roles are not those of its version.",
        ),
        alert(
            "OperatorUnreadableObjects",
            format!("sum by (kind) (windlass_cache_unreadable_objects{{{series}}}) > 0"),
            "15m",
            "warning",
            "There are objects of {{ $labels.kind }} that the operator cannot read and so does not reconcile.",
        ),
    ];
    if webhooks {
        alerts.push(alert(
            "OperatorWebhookErrors",
            format!(
                "sum by (webhook) (increase(controller_runtime_webhook_requests_total{{{series},code=~\"5..\"}}[5m])) > 0"
            ),
            "10m",
            "critical",
            "The webhook {{ $labels.webhook }} fails: the API server may refuse writes of its kind.",
        ));
        alerts.push(alert(
            "OperatorCertificateErrors",
            format!("sum(increase(certwatcher_read_certificate_errors_total{{{series}}}[15m])) > 0"),
            "15m",
            "warning",
            "The certificate of the webhooks cannot be read; once it expires they cannot be reached.",
        ));
    }
    alerts
}

fn panels(series: &str, webhooks: bool) -> Vec<Panel> {
    let rate = |metric: &str, by: &str| format!("sum by ({by}) (rate({metric}{{{series}}}[5m]))");
    let quantile = |metric: &str, by: &str| {
        format!("histogram_quantile(0.99, sum by (le, {by}) (rate({metric}_bucket{{{series}}}[5m])))")
    };
    let sum = |metric: &str, by: &str| format!("sum by ({by}) ({metric}{{{series}}})");
    let panel = |title, unit, queries| Panel { title, unit, queries };
    let (controller, result) = ("{{controller}}", "{{controller}} {{result}}");
    let mut panels = vec![
        panel(
            "Reconciles",
            "ops",
            vec![(rate("controller_runtime_reconcile_total", "controller, result"), result)],
        ),
        panel(
            "Failed reconciles",
            "ops",
            vec![
                (rate("controller_runtime_reconcile_errors_total", "controller"), controller),
                (rate("controller_runtime_reconcile_panics_total", "controller"), "{{controller}} panics"),
                (
                    rate("controller_runtime_reconcile_timeouts_total", "controller"),
                    "{{controller}} timeouts",
                ),
            ],
        ),
        panel(
            "Length of a reconcile, 99th percentile",
            "s",
            vec![(quantile("controller_runtime_reconcile_time_seconds", "controller"), controller)],
        ),
        panel(
            "Workers",
            "short",
            vec![
                (sum("controller_runtime_active_workers", "controller"), "{{controller}} busy"),
                (sum("controller_runtime_max_concurrent_reconciles", "controller"), "{{controller}} in all"),
            ],
        ),
        panel("Objects that wait", "short", vec![(sum("workqueue_depth", "controller"), controller)]),
        panel(
            "Time in the queue, 99th percentile",
            "s",
            vec![(quantile("workqueue_queue_duration_seconds", "controller"), controller)],
        ),
        panel("Retries", "ops", vec![(rate("workqueue_retries_total", "controller"), controller)]),
        panel(
            "Requests to the API server",
            "reqps",
            vec![(rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}")],
        ),
        panel("Cached objects", "short", vec![(sum("windlass_cache_objects", "kind"), "{{kind}}")]),
        panel("Leader", "short", vec![(format!("leader_election_master_status{{{series}}}"), "{{pod}}")]),
        panel("Memory", "bytes", vec![(format!("process_resident_memory_bytes{{{series}}}"), "{{pod}}")]),
        panel("CPU", "short", vec![(rate("process_cpu_seconds_total", "pod"), "{{pod}}")]),
    ];
    if webhooks {
        panels.push(panel(
            "Webhook requests",
            "reqps",
            vec![(
                rate("controller_runtime_webhook_requests_total", "webhook, code"),
                "{{webhook}} {{code}}",
            )],
        ));
        panels.push(panel(
            "Length of a webhook request, 99th percentile",
            "s",
            vec![(quantile("controller_runtime_webhook_latency_seconds", "webhook"), "{{webhook}}")],
        ));
    }
    panels
}

impl Panel {
    /// Two panels in a row of 24 columns.
    fn json(&self, place: usize) -> Value {
        let source = json!({ "type": "prometheus", "uid": "${datasource}" });
        let target = |(place, (query, legend)): (usize, &(String, &str))| {
            let letter = char::from(b'A' + place as u8).to_string();
            json!({ "refId": letter, "expr": query, "legendFormat": legend, "datasource": source })
        };
        let targets: Vec<Value> = self.queries.iter().enumerate().map(target).collect();
        json!({
            "id": place + 1,
            "type": "timeseries",
            "title": self.title,
            "datasource": source,
            "gridPos": { "x": place % 2 * 12, "y": place / 2 * 8, "w": 12, "h": 8 },
            "fieldConfig": { "defaults": { "unit": self.unit, "min": 0 }, "overrides": [] },
            "targets": targets,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::operator::manifests::tests::hooked;

    /// Every name of a metric in a query: a word before `{`.
    fn named(query: &str) -> Vec<&str> {
        let parts: Vec<&str> = query.split('{').collect();
        let word = |part: &&str| {
            let start = part.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
            part.split_at(start).1.len()
        };
        parts[..parts.len() - 1].iter().map(|part| &part[part.len() - word(part)..]).collect()
    }

    /// The names under which series are exported.
    async fn exported() -> BTreeSet<String> {
        let page = crate::metrics::tests::touched().await;
        page.lines().filter_map(|line| line.split(['{', ' ']).next()).map(ToOwned::to_owned).collect()
    }

    #[tokio::test]
    async fn every_query_of_an_alert_and_of_the_dashboard_names_a_metric_that_is_exported() {
        let placement = Placement::new("boxes", "a:1");
        let manifests = hooked().monitoring_manifests(&placement);
        let rules = manifests[1]["spec"]["groups"][0]["rules"].as_array().unwrap();
        let mut queries: Vec<String> =
            rules.iter().map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect();
        let page: Value =
            serde_json::from_str(manifests[2]["data"]["box-operator.json"].as_str().unwrap()).unwrap();
        let targets =
            page["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array());
        queries.extend(targets.flatten().map(|target| target["expr"].as_str().unwrap().to_owned()));
        let exported = exported().await;
        let mut seen = 0;
        for query in &queries {
            for metric in named(query) {
                assert!(exported.contains(metric), "{metric} in {query} is not exported: {exported:#?}");
                seen += 1;
            }
            assert!(query.contains("namespace=\"boxes\",job=\"box-operator-metrics\""), "{query}");
        }
        assert!(seen > 25, "only {seen} metrics in {queries:#?}");
    }

    #[test]
    fn the_job_of_the_queries_is_the_service_that_the_monitor_finds() {
        let placement = Placement::new("boxes", "a:1");
        let service = hooked().metrics_service(&placement);
        assert!(hooked().series(&placement).contains(service["metadata"]["name"].as_str().unwrap()));
        let monitor = &hooked().monitoring_manifests(&placement)[0];
        let labels = &monitor["spec"]["selector"]["matchLabels"];
        for (key, value) in labels.as_object().unwrap() {
            assert_eq!(&service["metadata"]["labels"][key], value);
        }
        assert_eq!(monitor["spec"]["endpoints"][0]["port"], service["spec"]["ports"][0]["name"]);
    }

    #[test]
    fn an_operator_without_webhooks_is_not_asked_for_theirs() {
        let text = format!("{:?}", Operator::new("op").monitoring_manifests(&Placement::new("sys", "op:1")));
        assert!(!text.contains("webhook") && !text.contains("certwatcher"), "{text}");
    }
}
