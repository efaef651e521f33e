//! What is reported about a Memcached. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    api::{Memcached, MemcachedStatus},
    build,
};
use crate::workload::{Rollout, pods};

/// The status of a Memcached: what was seen, if anything could be, and what is to be said of it.
pub(super) fn reported(
    cache: &Memcached,
    seen: Option<&Rollout>,
    conditions: Vec<Condition>,
) -> MemcachedStatus {
    let counts = seen.map(Rollout::counts).unwrap_or_default();
    let serving = seen.iter().flat_map(|seen| seen.pods.iter()).filter(|pod| pods::is_ready(pod));
    MemcachedStatus {
        nodes: pods::names(serving),
        observed_generation: cache.metadata.generation,
        replicas: counts.replicas.unwrap_or(0),
        ready_replicas: counts.ready_replicas.unwrap_or(0),
        updated_replicas: counts.updated_replicas.unwrap_or(0),
        available_replicas: counts.available_replicas.unwrap_or(0),
        selector: build::selector(cache),
        conditions,
    }
}
