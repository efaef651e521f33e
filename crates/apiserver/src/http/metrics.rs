//! `/metrics`: what the server has answered and what is under way, under the names of the real server.
//!
//! Every request that was answered enters with its [`Labels`]; the page leaves in Prometheus' text format. What is
//! counted elsewhere (requests in flight, objects, tokens) is looked up when somebody asks.

mod process;
mod watched;

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

pub(super) use self::watched::Watched;
use self::watched::Watches;
use super::{
    flow::{Kind, Seats},
    guard::Guard,
    path::RequestInfo,
    version::version,
};
use crate::{
    audit::AuditLog,
    registry::{ADMISSION_BOUNDS, Registry},
};

/// The bounds of `apiserver_request_duration_seconds`.
const BOUNDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// What a request was about. Only what the catalogue knows is named: clients can ask for anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels {
    pub(super) verb: &'static str,
    pub(super) group: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) resource: Arc<str>,
    pub(super) subresource: Arc<str>,
    pub(super) scope: &'static str,
    pub(super) dry_run: bool,
}

impl Labels {
    /// The labels of a request for a resource.
    pub(super) fn of(
        registry: &Registry,
        place: &RequestInfo,
        verb: &str,
        applies: bool,
        dry_run: bool,
    ) -> Self {
        let verb = match verb {
            "get" => "GET",
            "list" => "LIST",
            "watch" => "WATCH",
            "create" if matches!(place.subresource.as_deref(), Some("exec" | "attach")) => "CONNECT",
            "create" => "POST",
            "update" => "PUT",
            "patch" if applies => "APPLY",
            "patch" => "PATCH",
            "delete" => "DELETE",
            "deletecollection" => "DELETECOLLECTION",
            _ => "other",
        };
        let scope = match (&place.name, &place.namespace) {
            (Some(_), _) => "resource",
            (None, Some(_)) => "namespace",
            (None, None) => "cluster",
        };
        let Ok(resource) = registry.resource(&place.group, &place.version, &place.resource) else {
            return Self { verb, scope, ..Self::default() };
        };
        let known = place.subresource.as_deref().filter(|name| resource.has(name)).unwrap_or_default();
        Self {
            verb,
            scope,
            group: Arc::clone(&resource.table.group),
            version: place.version.as_str().into(),
            resource: Arc::clone(&resource.table.plural),
            subresource: known.into(),
            dry_run,
        }
    }
}

/// What was answered so far.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    answered: Mutex<Answered>,
    watches: Arc<Watches>,
}

#[derive(Debug, Default)]
struct Answered {
    counts: BTreeMap<(Labels, u16), u64>,
    times: BTreeMap<Labels, Times>,
}

#[derive(Debug, Default)]
struct Times {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Counts a request. How long a watch lasts says nothing about the server.
    pub(super) fn answered(&self, labels: &Labels, code: u16, took: Duration) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        match answered.counts.get_mut(&(labels.clone(), code)) {
            Some(count) => *count += 1,
            None => drop(answered.counts.insert((labels.clone(), code), 1)),
        }
        if !matches!(labels.verb, "WATCH" | "CONNECT") {
            answered.times.entry(labels.clone()).or_default().add(took.as_secs_f64());
        }
    }

    /// Counts a watch for as long as it is open.
    pub(super) fn watch(&self, labels: Labels) -> Watched {
        self.watches.begin(labels)
    }

    /// The page.
    pub(super) fn page(&self, registry: &Registry, guard: &Guard, audit: Option<&AuditLog>) -> String {
        let mut page = Page::default();
        self.write_answered(&mut page);
        write_flow(&mut page, guard, &self.watches);
        self.watches.write_events(&mut page);
        write_admission(&mut page, registry);
        write_audit(&mut page, audit);
        write_build(&mut page);
        process::write(&mut page);
        page.family(
            "apiserver_resource_objects",
            "gauge",
            "Number of stored objects at the time of last check split by kind.",
        );
        let catalog = registry.catalog();
        let tables: BTreeMap<_, _> = catalog
            .resources()
            .map(|resource| ((&resource.table.group, &resource.table.plural), &resource.table))
            .collect();
        for ((group, plural), table) in tables {
            let labels = [("group", &**group), ("resource", &**plural)];
            page.line("apiserver_resource_objects", &labels, registry.store().count(table) as f64);
        }
        page.family(
            "authentication_token_cache_request_total",
            "counter",
            "Counter of tokens that were known and that were not.",
        );
        let (hits, misses) = registry.tokens_seen();
        page.line("authentication_token_cache_request_total", &[("status", "hit")], hits as f64);
        page.line("authentication_token_cache_request_total", &[("status", "miss")], misses as f64);
        page.text
    }

    fn write_answered(&self, page: &mut Page) {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "apiserver_request_total";
        page.family(name, "counter", "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.");
        for ((labels, code), count) in &answered.counts {
            let code = code.to_string();
            page.line(name, &[&[("code", &*code)], &labels.pairs()[..]].concat(), *count as f64);
        }
        let name = "apiserver_request_duration_seconds";
        page.family(name, "histogram", "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.");
        for (labels, times) in &answered.times {
            let pairs = labels.pairs();
            for (bound, count) in BOUNDS.iter().zip(times.buckets) {
                let bound = bound.to_string();
                page.line(
                    &format!("{name}_bucket"),
                    &[&pairs[..], &[("le", &*bound)]].concat(),
                    count as f64,
                );
            }
            page.line(
                &format!("{name}_bucket"),
                &[&pairs[..], &[("le", "+Inf")]].concat(),
                times.count as f64,
            );
            page.line(&format!("{name}_sum"), &pairs, times.sum);
            page.line(&format!("{name}_count"), &pairs, times.count as f64);
        }
    }
}

impl Times {
    fn add(&mut self, seconds: f64) {
        for (bucket, bound) in self.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

impl Labels {
    fn pairs(&self) -> [(&'static str, &str); 8] {
        [
            ("component", "apiserver"),
            ("dry_run", if self.dry_run { "All" } else { "" }),
            ("group", &self.group),
            ("resource", &self.resource),
            ("scope", self.scope),
            ("subresource", &self.subresource),
            ("verb", self.verb),
            ("version", &self.version),
        ]
    }
}

/// How long plug-ins, policies and webhooks took together.
fn write_admission(page: &mut Page, registry: &Registry) {
    let name = "apiserver_admission_step_admission_duration_seconds";
    page.family(
        name,
        "histogram",
        "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step \
         type (validate or admit).",
    );
    for (step, times) in registry.admission_times().all() {
        let rejected = if step.rejected { "true" } else { "false" };
        let pairs = [("operation", step.operation), ("rejected", rejected), ("type", step.kind)];
        let bounds = ADMISSION_BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(times.buckets.into_iter().chain([times.count])) {
            let pairs = [&pairs[..], &[("le", bound.as_str())]].concat();
            page.line(&format!("{name}_bucket"), &pairs, count as f64);
        }
        page.line(&format!("{name}_sum"), &pairs, times.sum);
        page.line(&format!("{name}_count"), &pairs, times.count as f64);
    }
}

/// What the audit log was told, if there is one.
fn write_audit(page: &mut Page, audit: Option<&AuditLog>) {
    let Some(audit) = audit else { return };
    let name = "apiserver_audit_event_total";
    page.family(name, "counter", "Counter of audit events generated and sent to the audit backend.");
    page.line(name, &[], audit.events() as f64);
    let name = "apiserver_audit_level_total";
    page.family(name, "counter", "Counter of policy levels for audit events (1 per request).");
    for (level, count) in audit.levels() {
        page.line(name, &[("level", level)], count as f64);
    }
}

fn write_build(page: &mut Page) {
    let name = "kubernetes_build_info";
    page.family(
        name,
        "gauge",
        "A metric with a constant '1' value labeled by what was built and where it runs.",
    );
    let version = version();
    let pairs = [
        ("build_date", "buildDate"),
        ("compiler", "compiler"),
        ("git_commit", "gitCommit"),
        ("git_tree_state", "gitTreeState"),
        ("git_version", "gitVersion"),
        ("go_version", "goVersion"),
        ("major", "major"),
        ("minor", "minor"),
        ("platform", "platform"),
    ];
    page.line(name, &pairs.map(|(label, field)| (label, version[field].as_str().unwrap_or_default())), 1.0);
}

/// Name, kind and meaning of a family, and its figures of what is exempt and of what is not.
type Row = (&'static str, &'static str, &'static str, fn(&Seats) -> [f64; 2]);

/// Requests in flight, in line and refused.
fn write_flow(page: &mut Page, guard: &Guard, watches: &Watches) {
    let kinds = [(Kind::ReadOnly, "readOnly"), (Kind::Mutating, "mutating")];
    let seats = kinds.map(|(kind, name)| (guard.flow.seats(kind), name));
    let exempt = |seats: &Seats| seats.exempt.load(Ordering::Relaxed) as f64;
    page.family(
        "apiserver_current_inflight_requests",
        "gauge",
        "Number of requests that are being answered, by request kind.",
    );
    for (seats, name) in &seats {
        let value = seats.occupied().0 as f64 + exempt(seats);
        page.line("apiserver_current_inflight_requests", &[("request_kind", name)], value);
    }
    page.family(
        "apiserver_current_inqueue_requests",
        "gauge",
        "Number of requests that wait for their turn, by request kind.",
    );
    for (seats, name) in &seats {
        page.line("apiserver_current_inqueue_requests", &[("request_kind", name)], seats.occupied().1 as f64);
    }
    page.family(
        "apiserver_longrunning_requests",
        "gauge",
        "Gauge of all active long-running apiserver requests broken out by verb.",
    );
    let sessions = guard.long_running().1;
    let pods = [
        ("component", "apiserver"),
        ("group", ""),
        ("resource", "pods"),
        ("scope", "resource"),
        ("subresource", "exec"),
        ("verb", "CONNECT"),
        ("version", "v1"),
    ];
    page.line("apiserver_longrunning_requests", &pods, sessions as f64);
    watches.write_open(page);
    let rows: [Row; 3] = [
        (
            "apiserver_flowcontrol_current_executing_requests",
            "gauge",
            "Number of requests that hold a seat.",
            |seats| [seats.exempt.load(Ordering::Relaxed) as f64, seats.occupied().0 as f64],
        ),
        (
            "apiserver_flowcontrol_current_inqueue_requests",
            "gauge",
            "Number of requests that wait in a queue.",
            |seats| [0.0, seats.occupied().1 as f64],
        ),
        (
            "apiserver_flowcontrol_dispatched_requests_total",
            "counter",
            "Number of requests that were let through.",
            |seats| {
                [
                    seats.exempt_dispatched.load(Ordering::Relaxed) as f64,
                    seats.dispatched.load(Ordering::Relaxed) as f64,
                ]
            },
        ),
    ];
    for (name, kind, help, figures) in rows {
        page.family(name, kind, help);
        let exempt: f64 = seats.iter().map(|(seats, _)| figures(seats)[0]).sum();
        page.line(name, &[("flow_schema", "exempt"), ("priority_level", "exempt")], exempt);
        for (seats, level) in &seats {
            page.line(name, &[("flow_schema", "users"), ("priority_level", level)], figures(seats)[1]);
        }
    }
    let name = "apiserver_flowcontrol_rejected_requests_total";
    page.family(name, "counter", "Number of requests that were refused because there were too many.");
    for (seats, level) in &seats {
        for (reason, count) in [("queue-full", &seats.queue_full), ("time-out", &seats.timed_out)] {
            let labels = [("flow_schema", "users"), ("priority_level", *level), ("reason", reason)];
            page.line(name, &labels, count.load(Ordering::Relaxed) as f64);
        }
    }
}

#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A line. Values of labels are names of the catalogue, which need no escaping.
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
        let _ = match labels.as_slice() {
            [] => writeln!(self.text, "{name} {value}"),
            several => writeln!(self.text, "{name}{{{}}} {value}", several.join(",")),
        };
    }
}
