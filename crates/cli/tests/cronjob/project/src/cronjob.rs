//! CronJob: a Job whenever a schedule says so, as kubebuilder's tutorial builds it.

use windlass::Operator;

pub mod api;
mod build;
mod controller;
mod schedule;
mod status;
mod webhook;

pub use api::{CronJob, CronJobSpec, CronJobStatus};

/// Adds the kind, its webhooks and its controller to an operator.
pub fn register(operator: Operator) -> Operator {
    operator
        .crd::<CronJob>()
        .defaults(webhook::Defaults)
        .validates(webhook::Rules)
        .controller(controller::controller())
}
