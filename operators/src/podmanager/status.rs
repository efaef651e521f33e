//! What is reported about a PodManager. Pure.

use windlass::jiff::Timestamp;

use super::{
    api::{PodManager, PodManagerStatus},
    build,
};
use crate::workload::{
    fleet::{Counts, Observed},
    known,
};

/// The status of a PodManager whose Pods are these.
pub(super) fn observed(manager: &PodManager, seen: &Observed<'_>, now: Timestamp) -> PodManagerStatus {
    let counts = Counts::of(seen.owned, seen.hash);
    PodManagerStatus {
        observed_generation: manager.metadata.generation,
        ready_replicas: counts.ready,
        current_replicas: counts.active,
        updated_replicas: counts.updated,
        selector: build::selector(manager),
        conditions: seen.observe(manager, known(manager), now),
    }
}
