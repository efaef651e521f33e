//! Whether a node will do for a Pod: every required rule, in kube-scheduler's order and words. Pure.
//!
//! [`Incoming`] is a Pod with all that has to be counted once for all nodes; [`Incoming::check`] asks one node. What
//! the Pods on other nodes mean is counted in [`inter_pod`] and [`spread`], and both can be told that a Pod came or
//! went, so that preemption can try what would be.

use std::{collections::BTreeSet, sync::Arc};

use windlass::k8s_openapi::api::core::v1::{Pod, PodSpec, Toleration};

use super::{
    host::{Host, Resident},
    taints,
    terms::Namespaces,
};
use crate::node_affinity;

pub(super) mod inter_pod;
pub(crate) mod ports;
pub(super) mod resources;
pub(super) mod spread;
pub(super) mod volumes;

use volumes::Needs;

/// Why a node refuses a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reasons: Vec<String>,
    /// Whether the node might take the Pod if others made room.
    pub(super) could_make_room: bool,
}

impl Refusal {
    pub(super) fn for_good(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], could_make_room: false }
    }

    pub(super) fn for_now(reason: &str) -> Self {
        Self { could_make_room: true, ..Self::for_good(reason) }
    }
}

/// A Pod that wants a node.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) own: Arc<Resident>,
    spec: Arc<PodSpec>,
    neighbours: inter_pod::Neighbours,
    spread: spread::Spread,
    needs: Needs,
    /// The only nodes that its affinity names, if it names some.
    named: Option<BTreeSet<String>>,
}

impl Incoming {
    pub(super) fn new(pod: &Arc<Pod>, hosts: &[Host], namespaces: &Namespaces, needs: Needs) -> Self {
        let own = Arc::new(Resident::new(pod.clone()));
        let spec = Arc::new(pod.spec.clone().unwrap_or_default());
        let neighbours = inter_pod::Neighbours::count(&own, hosts, namespaces);
        let spread = spread::Spread::count(&own.pod, &spec, hosts);
        let named = node_affinity::names(&spec);
        Self { own, spec, neighbours, spread, needs, named }
    }

    pub(super) fn spec(&self) -> &PodSpec {
        &self.spec
    }

    pub(super) fn tolerations(&self) -> &[Toleration] {
        self.spec.tolerations.as_deref().unwrap_or_default()
    }

    /// Whether the Pod can run on the node beside what already runs there.
    pub(super) fn check(&self, host: &Host) -> Result<(), Refusal> {
        if self.named.as_ref().is_some_and(|names| !names.contains(host.name())) {
            return Err(Refusal::for_good("node(s) didn't satisfy plugin(s) [NodeAffinity]"));
        }
        if taints::is_cordoned(&host.node, self.tolerations()) {
            return Err(Refusal::for_good("node(s) were unschedulable"));
        }
        if taints::repel(&host.node, self.tolerations()) {
            return Err(Refusal::for_good("node(s) had untolerated taint(s)"));
        }
        if !node_affinity::allows(&self.spec, &host.node) {
            return Err(Refusal::for_good("node(s) didn't match Pod's node affinity/selector"));
        }
        if ports::are_wanted(&self.spec) {
            let others = host.residents.iter().map(|one| &one.pod);
            if ports::conflict(&self.spec, others) {
                return Err(Refusal::for_now("node(s) didn't have free ports for the requested pod ports"));
            }
        }
        resources::check(&self.own.demand, host)?;
        self.needs.check(host)?;
        self.spread.check(host)?;
        self.neighbours.check(host)
    }

    /// A Pod comes to a node, as far as the counts are concerned.
    pub(super) fn arrives(&mut self, other: &Resident, host: &Host) {
        self.neighbours.change(other, host, 1);
        self.spread.change(&other.pod, host, 1);
        self.needs.arrives(other);
    }

    /// A Pod leaves a node.
    pub(super) fn leaves(&mut self, other: &Resident, host: &Host) {
        self.neighbours.change(other, host, -1);
        self.spread.change(&other.pod, host, -1);
        self.needs.leaves(other);
    }
}

#[cfg(test)]
pub(super) mod tests;
