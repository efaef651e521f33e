//! The decision about one Pod: a node, Pods that make room, or the reason why not. Pure.

use std::{collections::BTreeMap, sync::Arc};

use windlass::k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};

use super::{
    filters::{Incoming, Refusal},
    host::{Host, Resident},
    message::{self, Preemption},
    preemption,
    scores::{Contest, Siblings},
    terms::Namespaces,
};

/// All that a decision depends on.
pub(super) struct Scene<'a> {
    pub(super) incoming: Incoming,
    pub(super) hosts: &'a [Host],
    pub(super) namespaces: &'a Namespaces,
    pub(super) nominated: Nominated,
    pub(super) siblings: Siblings,
    pub(super) budgets: &'a [Arc<PodDisruptionBudget>],
}

/// What becomes of a Pod.
pub(super) enum Decision {
    Place(String),
    Preempt {
        node: String,
        victims: Vec<Arc<Resident>>,
        message: String,
    },
    /// With `keeps`, it may go on waiting for the node that is being freed for it.
    Refuse {
        message: String,
        keeps: bool,
    },
}

/// Pods for which room was made on a node and that are not there yet. An incoming Pod that matters no more than they do
/// must fit beside them.
#[derive(Clone, Debug, Default)]
pub(super) struct Nominated(BTreeMap<String, Vec<Arc<Resident>>>);

impl Nominated {
    /// Of these Pods, those that matter at least as much as the incoming one.
    pub(super) fn beside(incoming: &Resident, all: Vec<Arc<Pod>>) -> Self {
        let mut by_node: BTreeMap<String, Vec<Arc<Resident>>> = BTreeMap::new();
        for pod in all {
            let node = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
            let resident = Resident::new(pod);
            if resident.uid() != incoming.uid()
                && resident.priority() >= incoming.priority()
                && let Some(node) = node
            {
                by_node.entry(node).or_default().push(Arc::new(resident));
            }
        }
        Self(by_node)
    }

    /// Whether a node will do, with those that are to come and without them: nobody may count on them either.
    pub(super) fn check(&self, incoming: &Incoming, host: &Host) -> Result<(), Refusal> {
        if let Some(coming) = self.0.get(host.name()) {
            let (mut incoming, mut full) = (incoming.clone(), host.clone());
            for one in coming {
                full.add(one.clone());
                incoming.arrives(one, &full);
            }
            incoming.check(&full)?;
        }
        incoming.check(host)
    }
}

impl Scene<'_> {
    pub(super) fn decide(&self) -> Decision {
        let mut fitting = Vec::new();
        let mut refusals = Vec::new();
        let mut candidates = Vec::new();
        let mut wanted = None;
        let nominated = self.incoming.own.pod.status.as_ref();
        let nominated = nominated.and_then(|status| status.nominated_node_name.as_deref());
        for host in self.hosts {
            match self.nominated.check(&self.incoming, host) {
                // Room was made here for this very Pod.
                Ok(()) if nominated == Some(host.name()) => return Decision::Place(host.name().to_owned()),
                Ok(()) => fitting.push(host),
                Err(refusal) => {
                    if refusal.could_make_room {
                        candidates.push(host);
                    }
                    if nominated == Some(host.name()) {
                        wanted = Some(refusal.clone());
                    }
                    refusals.push(refusal);
                }
            }
        }
        let contest = Contest {
            incoming: &self.incoming,
            hosts: self.hosts,
            fitting: &fitting,
            namespaces: self.namespaces,
            siblings: &self.siblings,
        };
        if let Some(host) = contest.winner() {
            return Decision::Place(host.name().to_owned());
        }
        if let Some(why) = preemption::hindrance(&self.incoming, self.hosts, wanted.as_ref()) {
            let message = message::of(&refusals, &Preemption::NotEligible(why));
            return Decision::Refuse { message, keeps: true };
        }
        match preemption::find(&self.incoming, &candidates, &self.nominated, self.budgets) {
            Ok(eviction) => {
                let (node, victims) = (eviction.node, eviction.victims);
                let found = Preemption::Found { node: node.clone(), victims: victims.len() };
                Decision::Preempt { message: message::of(&refusals, &found), node, victims }
            }
            Err(hopeless) => Decision::Refuse { message: message::of(&refusals, &hopeless), keeps: false },
        }
    }
}
