//! Required inter-Pod affinity and anti-affinity, in both directions. Pure.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    super::{
        host::{Host, Resident},
        terms::{Labels, Namespaces, Term},
    },
    Refusal,
};

/// How many Pods count in a topology: a label of nodes and its value.
type Counts = BTreeMap<(String, String), i64>;

/// What the Pods on all nodes mean to an incoming one.
#[derive(Clone, Debug)]
pub(in super::super) struct Neighbours {
    own: Arc<Resident>,
    namespace: Option<Labels>,
    namespaces: Arc<Namespaces>,
    /// Pods that the affinity of the incoming one means; each of them by all of its terms.
    near: Counts,
    /// Pods that its anti-affinity means.
    apart: Counts,
    /// Pods whose anti-affinity means the incoming one.
    repelling: Counts,
}

impl Neighbours {
    pub(super) fn count(own: &Arc<Resident>, hosts: &[Host], namespaces: &Namespaces) -> Self {
        let name = own.pod.metadata.namespace.as_deref().unwrap_or_default();
        let terms = &own.terms;
        let looks = terms.near.iter().chain(&terms.apart).any(Term::looks_at_namespaces);
        let mut all = Self {
            own: own.clone(),
            namespace: namespaces.get(name).cloned(),
            namespaces: Arc::new(if looks { namespaces.clone() } else { Namespaces::new() }),
            near: Counts::new(),
            apart: Counts::new(),
            repelling: Counts::new(),
        };
        // Without terms of its own only those matter that have some.
        let alone = terms.near.is_empty() && terms.apart.is_empty();
        for host in hosts {
            let others = if alone { &host.social } else { &host.residents };
            others.iter().for_each(|other| all.change(other, host, 1));
        }
        all
    }

    /// Pods come to a node, or leave it.
    pub(super) fn change(&mut self, other: &Resident, host: &Host, by: i64) {
        for term in &other.terms.apart {
            if term.means(&self.own.pod, self.namespace.as_ref()) {
                note(&mut self.repelling, host, &term.topology, by);
            }
        }
        let (near, apart) = (&self.own.terms.near, &self.own.terms.apart);
        if near.is_empty() && apart.is_empty() {
            return;
        }
        let labels = other.pod.metadata.namespace.as_ref().and_then(|name| self.namespaces.get(name));
        if !near.is_empty() && near.iter().all(|term| term.means(&other.pod, labels)) {
            for term in near {
                note(&mut self.near, host, &term.topology, by);
            }
        }
        for term in apart {
            if term.means(&other.pod, labels) {
                note(&mut self.apart, host, &term.topology, by);
            }
        }
    }

    pub(super) fn check(&self, host: &Host) -> Result<(), Refusal> {
        if !self.is_near(host) {
            return Err(Refusal::for_good("node(s) didn't match pod affinity rules"));
        }
        let meets = |term: &Term| {
            host.label(&term.topology).is_some_and(|value| has(&self.apart, &term.topology, value))
        };
        if self.own.terms.apart.iter().any(meets) {
            return Err(Refusal::for_now("node(s) didn't match pod anti-affinity rules"));
        }
        let repelled = self
            .repelling
            .iter()
            .any(|((key, value), count)| *count > 0 && host.label(key).is_some_and(|label| label == value));
        if repelled {
            return Err(Refusal::for_now("node(s) didn't satisfy existing pods anti-affinity rules"));
        }
        Ok(())
    }

    /// A Pod that is meant by its own affinity may be the first of its kind.
    fn is_near(&self, host: &Host) -> bool {
        let mut found = true;
        for term in &self.own.terms.near {
            let Some(value) = host.label(&term.topology) else { return false };
            found &= has(&self.near, &term.topology, value);
        }
        found || (self.near.values().all(|count| *count <= 0) && self.means_itself())
    }

    fn means_itself(&self) -> bool {
        self.own.terms.near.iter().all(|term| term.means(&self.own.pod, self.namespace.as_ref()))
    }
}

fn note(counts: &mut Counts, host: &Host, topology: &str, by: i64) {
    if let Some(value) = host.label(topology) {
        *counts.entry((topology.to_owned(), value.to_owned())).or_default() += by;
    }
}

fn has(counts: &Counts, topology: &str, value: &str) -> bool {
    counts.get(&(topology.to_owned(), value.to_owned())).is_some_and(|count| *count > 0)
}
