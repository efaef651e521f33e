//! What is reported about an ImoocPod. Pure.

use windlass::jiff::Timestamp;

use super::{
    api::{ImoocPod, ImoocPodStatus},
    build,
};
use crate::workload::{
    fleet::{Counts, Observed},
    known, pods,
};

/// The status of an ImoocPod whose Pods are these.
pub(super) fn observed(imooc: &ImoocPod, seen: &Observed<'_>, now: Timestamp) -> ImoocPodStatus {
    let counts = Counts::of(seen.owned, seen.hash);
    ImoocPodStatus {
        observed_generation: imooc.metadata.generation,
        replicas: counts.active,
        ready_replicas: counts.ready,
        updated_replicas: counts.updated,
        pod_names: pods::names(seen.owned.iter().filter(|pod| pods::is_active(pod))),
        selector: build::selector(imooc),
        conditions: seen.observe(imooc, known(imooc), now),
    }
}
