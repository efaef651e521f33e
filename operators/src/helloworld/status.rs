//! What is reported about a HelloWorld. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    api::{HelloWorld, HelloWorldStatus},
    build,
};
use crate::workload::{Rollout, pods};

/// The status of a HelloWorld: what was seen, if anything could be, and what is to be said of it.
pub(super) fn reported(
    hello: &HelloWorld,
    seen: Option<&Rollout>,
    conditions: Vec<Condition>,
) -> HelloWorldStatus {
    let counts = seen.map(Rollout::counts).unwrap_or_default();
    let running = seen.iter().flat_map(|seen| seen.pods.iter()).filter(|pod| pods::is_active(pod));
    HelloWorldStatus {
        nodes: pods::names(running),
        observed_generation: hello.metadata.generation,
        replicas: counts.replicas.unwrap_or(0),
        ready_replicas: counts.ready_replicas.unwrap_or(0),
        updated_replicas: counts.updated_replicas.unwrap_or(0),
        available_replicas: counts.available_replicas.unwrap_or(0),
        selector: build::selector(hello),
        conditions,
    }
}
