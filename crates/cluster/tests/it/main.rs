//! The cluster as its users see it: through a `kube::Client`.

mod budgets;
mod cron_jobs;
mod daemon_sets;
mod deletion;
mod jobs;
mod lifecycle;
mod services;
mod stateful_sets;
mod support;
mod volumes;
mod workloads;
