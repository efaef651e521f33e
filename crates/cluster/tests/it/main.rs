//! The cluster as its users see it: through a `kube::Client`.

#![expect(
    clippy::unwrap_used,
    clippy::large_futures,
    reason = "a test fails where it cannot go on, and runs once"
)]

mod autoscalers;
mod budgets;
mod crashes;
mod cron_jobs;
mod daemon_sets;
mod deaths;
mod deletion;
mod environment;
mod extremes;
mod greeting;
mod guide;
mod jobs;
mod lifecycle;
mod nodes;
mod orders;
mod quotas;
mod references;
mod scheduling;
mod services;
mod sessions;
mod stateful_sets;
mod support;
mod transitions;
mod versions;
mod volumes;
mod warnings;
mod workloads;
