//! What is reported about a WebServer. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    api::{WebServer, WebServerStatus},
    build,
};
use crate::workload::Rollout;

/// The status of a WebServer: what was seen, if anything could be, and what is to be said of it.
pub(super) fn reported(
    web: &WebServer,
    seen: Option<&Rollout>,
    conditions: Vec<Condition>,
) -> WebServerStatus {
    let counts = seen.map(Rollout::counts).unwrap_or_default();
    WebServerStatus {
        observed_generation: web.metadata.generation,
        replicas: counts.replicas.unwrap_or(0),
        ready_replicas: counts.ready_replicas.unwrap_or(0),
        updated_replicas: counts.updated_replicas.unwrap_or(0),
        available_replicas: counts.available_replicas.unwrap_or(0),
        selector: build::selector(web),
        conditions,
    }
}
