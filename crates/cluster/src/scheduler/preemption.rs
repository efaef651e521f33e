//! Which Pods make room for a more important one, and on which node. Pure.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget},
};

use super::{
    decision::Nominated,
    filters::{Incoming, Refusal},
    host::{Host, Resident, priority},
    message::{self, Preemption},
};
use crate::{pods, selector};

/// The Pods that would have to go from a node.
pub(super) struct Eviction {
    pub(super) node: String,
    /// The most important first.
    pub(super) victims: Vec<Arc<Resident>>,
    /// How many of them a budget protects.
    violations: usize,
}

/// Why a Pod may not make others go now; `None` if it may.
pub(super) fn hindrance(
    incoming: &Incoming,
    hosts: &[Host],
    nominated: Option<&Refusal>,
) -> Option<&'static str> {
    if incoming.spec().preemption_policy.as_deref() == Some("Never") {
        return Some(message::NEVER);
    }
    let pod = &incoming.own.pod;
    let name = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref())?;
    // The node that was freed for it will not do any more: it may look for another one.
    if nominated.is_some_and(|refusal| !refusal.could_make_room) {
        return None;
    }
    let host = hosts.iter().find(|host| host.name() == name)?;
    let going =
        |one: &&Arc<Resident>| one.priority() < incoming.own.priority() && is_going_by_preemption(&one.pod);
    host.residents.iter().find(going).map(|_| message::TERMINATING)
}

fn is_going_by_preemption(pod: &Pod) -> bool {
    pods::is_terminating(&pod.metadata)
        && pods::condition(pod, "DisruptionTarget").is_some_and(|condition| {
            condition.status == "True" && condition.reason.as_deref() == Some("PreemptionByScheduler")
        })
}

/// The best way to make room, or what each node says that was tried.
pub(super) fn find(
    incoming: &Incoming,
    candidates: &[&Host],
    nominated: &Nominated,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Result<Eviction, Preemption> {
    let mut tried = Vec::new();
    let mut found = Vec::new();
    for host in candidates {
        match victims(incoming, host, nominated, budgets) {
            Ok(eviction) => found.push(eviction),
            Err(refusal) => tried.push(refusal),
        }
    }
    found.into_iter().min_by_key(Eviction::cost).ok_or(Preemption::Hopeless(tried))
}

impl Eviction {
    /// Fewer broken budgets, then victims that matter less, then fewer of them, then those that started last.
    fn cost(&self) -> (usize, i32, i64, usize, Reverse<Option<Timestamp>>) {
        let highest = self.victims.first().map_or(0, |one| one.priority());
        let sum = self.victims.iter().map(|one| i64::from(one.priority()) + i64::from(i32::MAX) + 1).sum();
        let important = self.victims.iter().filter(|one| one.priority() == highest);
        let started = important.filter_map(|one| started(&one.pod)).min();
        (self.violations, highest, sum, self.victims.len(), Reverse(started))
    }
}

fn started(pod: &Pod) -> Option<Timestamp> {
    pod.status.as_ref()?.start_time.as_ref().map(|time| time.0)
}

/// The smallest number of Pods that have to leave a node: all that matter less leave, and then as many come back as can,
/// the protected ones first and the most important ones first.
fn victims(
    incoming: &Incoming,
    host: &Host,
    nominated: &Nominated,
    budgets: &[Arc<PodDisruptionBudget>],
) -> Result<Eviction, Refusal> {
    let own = incoming.own.priority();
    let mut lesser: Vec<Arc<Resident>> =
        host.residents.iter().filter(|one| one.priority() < own).cloned().collect();
    if lesser.is_empty() {
        return Err(Refusal::for_good(message::NO_VICTIMS));
    }
    let (mut incoming, mut host) = (incoming.clone(), host.clone());
    for one in &lesser {
        host.remove(one);
        incoming.leaves(one, &host);
    }
    nominated.check(&incoming, &host)?;
    lesser.sort_by_key(|one| importance(one));
    let (protected, free) = split(lesser, budgets);
    let mut violations = 0;
    let mut gone = Vec::new();
    let tried = protected.into_iter().map(|one| (one, true)).chain(free.into_iter().map(|one| (one, false)));
    for (one, protected) in tried {
        host.add(one.clone());
        incoming.arrives(&one, &host);
        if nominated.check(&incoming, &host).is_err() {
            host.remove(&one);
            incoming.leaves(&one, &host);
            violations += usize::from(protected);
            gone.push(one);
        }
    }
    gone.sort_by_key(|one| importance(one));
    if gone.is_empty() {
        return Err(Refusal::for_good(message::NO_VICTIMS));
    }
    Ok(Eviction { node: host.name().to_owned(), victims: gone, violations })
}

/// The higher the priority and the longer it runs, the more a Pod matters.
fn importance(one: &Resident) -> (Reverse<i32>, bool, Option<Timestamp>, String) {
    let started = started(&one.pod);
    (Reverse(priority(&one.pod)), started.is_none(), started, one.uid().to_owned())
}

/// Those whose going would break a budget, and the others. Each budget is used up by the first Pods that it selects.
fn split(
    all: Vec<Arc<Resident>>,
    budgets: &[Arc<PodDisruptionBudget>],
) -> (Vec<Arc<Resident>>, Vec<Arc<Resident>>) {
    let mut left: BTreeMap<usize, i32> = BTreeMap::new();
    all.into_iter().partition(|one| {
        let mut breaks = false;
        for (index, budget) in budgets.iter().enumerate().filter(|(_, budget)| protects(budget, &one.pod)) {
            let status = budget.status.as_ref();
            let name = one.pod.metadata.name.as_deref().unwrap_or_default();
            // Its going has been counted already.
            let counted = status.and_then(|status| status.disrupted_pods.as_ref());
            if counted.is_some_and(|counted| counted.contains_key(name)) {
                continue;
            }
            let allowed = status.and_then(|status| status.disruptions_allowed).unwrap_or(0);
            let left = left.entry(index).or_insert(allowed);
            *left = left.saturating_sub(1);
            breaks |= *left < 0;
        }
        breaks
    })
}

fn protects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    budget.metadata.namespace == pod.metadata.namespace
        && pod.metadata.labels.as_ref().is_some_and(|labels| !labels.is_empty())
        && selector.is_some_and(|selector| {
            !selector::is_empty(selector) && selector::matches(selector, pod.metadata.labels.as_ref())
        })
}
