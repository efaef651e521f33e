//! Topology spread constraints: how evenly Pods of a kind lie over the values of a label of nodes. Pure.

use std::{collections::BTreeMap, sync::Arc};

use windlass::k8s_openapi::{
    api::core::v1::{Pod, PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{
    super::{host::Host, taints, terms},
    Refusal,
};
use crate::{node_affinity, pods, selector};

/// One constraint, with its selector complete and its defaults set.
#[derive(Clone, Debug)]
pub(in super::super) struct Constraint {
    pub(in super::super) topology: String,
    pub(in super::super) max_skew: i64,
    selector: Option<LabelSelector>,
    min_domains: usize,
    by_affinity: bool,
    by_taints: bool,
}

impl Constraint {
    fn of(constraint: &TopologySpreadConstraint, pod: &Pod) -> Self {
        let mut selector = constraint.label_selector.clone();
        if let Some(selector) = &mut selector {
            terms::like(selector, pod, constraint.match_label_keys.as_deref(), "In");
        }
        let min_domains = constraint.min_domains.unwrap_or(1);
        Self {
            topology: constraint.topology_key.clone(),
            max_skew: constraint.max_skew.into(),
            selector,
            min_domains: usize::try_from(min_domains).unwrap_or(1),
            by_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            by_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    /// The constraints of a Pod for one of the two cases: `DoNotSchedule`, `ScheduleAnyway`.
    pub(in super::super) fn all(pod: &Pod, spec: &PodSpec, case: &str) -> Vec<Self> {
        let all = spec.topology_spread_constraints.iter().flatten();
        all.filter(|one| one.when_unsatisfiable == case).map(|one| Self::of(one, pod)).collect()
    }

    /// Whether the Pods of a node count.
    pub(in super::super) fn includes(&self, spec: &PodSpec, host: &Host) -> bool {
        let tolerations = spec.tolerations.as_deref().unwrap_or_default();
        (!self.by_affinity || node_affinity::allows(spec, &host.node))
            && (!self.by_taints || !taints::repel(&host.node, tolerations))
    }

    fn means(&self, labels: Option<&terms::Labels>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector::matches(selector, labels))
    }

    /// Whether a Pod that is there counts. A selector that means every Pod counts none of them.
    fn counts(&self, pod: &Pod, namespace: Option<&String>) -> bool {
        pod.metadata.namespace.as_ref() == namespace
            && !pods::is_terminating(&pod.metadata)
            && !self.selector.as_ref().is_some_and(selector::is_empty)
            && self.means(pod.metadata.labels.as_ref())
    }

    /// How many Pods of a node count.
    pub(in super::super) fn on(&self, host: &Host, namespace: Option<&String>) -> i64 {
        let counted = host.residents.iter().filter(|one| self.counts(&one.pod, namespace)).count();
        i64::try_from(counted).unwrap_or(i64::MAX)
    }
}

/// Whether a node has the labels of all constraints.
pub(in super::super) fn has_labels(constraints: &[Constraint], host: &Host) -> bool {
    constraints.iter().all(|one| host.label(&one.topology).is_some())
}

/// What an incoming Pod must keep.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Spread {
    constraints: Arc<Vec<Constraint>>,
    pod: Arc<Pod>,
    spec: Arc<PodSpec>,
    /// For each constraint, the Pods that count by the value of its label.
    counts: Vec<BTreeMap<String, i64>>,
}

impl Spread {
    pub(super) fn count(pod: &Arc<Pod>, spec: &Arc<PodSpec>, hosts: &[Host]) -> Self {
        let constraints = Constraint::all(pod, spec, "DoNotSchedule");
        if constraints.is_empty() {
            return Self::default();
        }
        let mut counts = vec![BTreeMap::new(); constraints.len()];
        for host in hosts.iter().filter(|host| has_labels(&constraints, host)) {
            for (one, counts) in constraints.iter().zip(&mut counts) {
                if let Some(value) = host.label(&one.topology).filter(|_| one.includes(spec, host)) {
                    *counts.entry(value.to_owned()).or_default() +=
                        one.on(host, pod.metadata.namespace.as_ref());
                }
            }
        }
        Self { constraints: Arc::new(constraints), pod: pod.clone(), spec: spec.clone(), counts }
    }

    /// A Pod comes to a node, or leaves it.
    pub(super) fn change(&mut self, other: &Pod, host: &Host, by: i64) {
        if !has_labels(&self.constraints, host) {
            return;
        }
        let namespace = self.pod.metadata.namespace.as_ref();
        for (one, counts) in self.constraints.iter().zip(&mut self.counts) {
            if one.counts(other, namespace)
                && one.includes(&self.spec, host)
                && let Some(value) = host.label(&one.topology)
            {
                *counts.entry(value.to_owned()).or_default() += by;
            }
        }
    }

    pub(super) fn check(&self, host: &Host) -> Result<(), Refusal> {
        const REASON: &str = "node(s) didn't match pod topology spread constraints";
        for (one, counts) in self.constraints.iter().zip(&self.counts) {
            let Some(value) = host.label(&one.topology) else {
                return Err(Refusal::for_good(&format!("{REASON} (missing required label)")));
            };
            let least = counts.values().copied().min().unwrap_or(0);
            let least = if counts.len() < one.min_domains { 0 } else { least };
            let own = i64::from(one.means(self.pod.metadata.labels.as_ref()));
            let there = counts.get(value).copied().unwrap_or(0);
            if there + own - least > one.max_skew {
                return Err(Refusal::for_now(REASON));
            }
        }
        Ok(())
    }
}
