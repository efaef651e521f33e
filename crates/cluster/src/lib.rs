//! The built-in controllers and a simulated node around the embedded API server.
//!
//! [`Cluster`] starts all of it in one process: for `windlass dev`, and for tests. The controllers are written
//! with the `windlass` SDK and meet the API server only through a `kube::Client`; they run as well beside a real
//! kube-apiserver that has no controller manager (see [`controllers`]).
//!
//! No container runs, and nobody is told otherwise. `kubectl logs` shows what happened to a container and what the
//! annotation `windlass.dev/log` says; `kubectl exec` answers what objects decide (`env`, `cat` and `ls` of mounted
//! ConfigMaps, Secrets and downward API files, `hostname`, `date`, `echo`, `sleep`, small scripts), and ends with 127
//! and a word about the reason for everything else.

mod amount;
mod autoscaler;
mod claim;
mod cluster;
pub mod controllers;
mod cron_job;
mod daemon_set;
mod deployment;
mod descriptions;
mod disruption;
mod endpoint_slice;
mod fields;
mod garbage;
mod history;
mod job;
mod namespace;
mod node;
mod node_affinity;
mod pod_control;
mod pod_gc;
mod pods;
mod quantity;
mod quota;
mod replica_set;
mod replication_controller;
mod resources;
mod restarts;
mod scheduler;
mod selector;
mod stateful_set;
mod taint_eviction;
pub mod testing;
mod volume;

use std::time::Duration;

pub use cluster::{Access, Builder, Cluster, Error, Listening};
pub use controllers::Controllers;
pub use node::{SIMULATED, Timing};
pub use windlass_apiserver::{
    audit::{AuditOptions, Policy, PolicyError},
    auth::Identity,
    auth::oidc::{Algorithm, OidcError, OidcOptions},
    authority::Authority,
    http::{Fault, Faults},
    listener::Serving,
    store::{BackupError, Copied, Encryption, EncryptionError, backup, restore},
};

/// A lost race is no failure: the object that won is in the cache soon, and the run is repeated with it.
fn retry_conflicts(result: windlass::Result<windlass::Action>) -> windlass::Result<windlass::Action> {
    match result {
        Err(error) if error.is_conflict() && !error.is_already_exists() => {
            Ok(windlass::Action::requeue(Duration::from_millis(20)))
        }
        other => other,
    }
}
