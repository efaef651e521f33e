//! What is reported about a WebApp. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    api::{WebApp, WebAppStatus},
    autoscaler, build,
};
use crate::workload::Rollout;

/// The status of a WebApp: where it is reached, what was seen, if anything could be, and what is to be said of it.
pub(super) fn reported(
    app: &WebApp,
    url: Option<String>,
    seen: Option<&Rollout>,
    mut conditions: Vec<Condition>,
) -> WebAppStatus {
    let counts = seen.map(Rollout::counts).unwrap_or_default();
    // What was said of an autoscaler goes with it.
    let scaled = app.spec.autoscaling.is_some();
    conditions.retain(|condition| scaled || condition.type_ != autoscaler::READY);
    WebAppStatus {
        observed_generation: app.metadata.generation,
        url,
        desired_replicas: seen.map_or(app.spec.replicas, |seen| seen.wanted),
        replicas: counts.replicas.unwrap_or(0),
        ready_replicas: counts.ready_replicas.unwrap_or(0),
        updated_replicas: counts.updated_replicas.unwrap_or(0),
        available_replicas: counts.available_replicas.unwrap_or(0),
        selector: build::selector(app),
        conditions,
    }
}
