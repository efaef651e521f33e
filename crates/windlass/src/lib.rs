//! An SDK for Kubernetes operators: what controller-runtime is to Go, on kube-rs.

#![deny(missing_docs)]

pub mod clock;
pub mod conditions;
pub mod events;
pub mod leader;
pub mod metrics;
pub mod owner;
pub mod queue;
pub mod rbac;

mod apply;
mod cache;
mod context;
mod controller;
mod error;
mod merge;
mod object;
mod operator;
mod predicate;
mod reconciler;
mod request;

pub use apply::{Applied, Children};
pub use cache::{Change, Reader};
pub use clock::Clock;
pub use context::{Context, Finalization};
pub use controller::{Controller, PAUSED, Watch};
pub use error::{Error, ReconcileError, Result};
pub use events::Event;
pub use leader::LeaderElection;
pub use metrics::Metrics;
pub use object::{Kind, Object, ObjectKey};
pub use operator::{Check, InstallError, Operator, Placement, Probes, RunError};
pub use predicate::Predicate;
pub use reconciler::{Action, Reconciler};

pub use {jiff, k8s_openapi, kube, schemars, serde, serde_json};
