//! Nodes with the Pods that are on them, and what is remembered about both from one Pod to the next.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use windlass::k8s_openapi::api::core::v1::{Node, Pod, PodSpec};

use super::{
    requests::{self, Amounts, Demand, Used},
    terms::Terms,
};
use crate::pods;

/// A Pod on a node, with what it means to others.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) pod: Arc<Pod>,
    pub(super) demand: Demand,
    pub(super) terms: Terms,
}

impl Resident {
    pub(super) fn new(pod: Arc<Pod>) -> Self {
        let nothing = PodSpec::default();
        let demand = Demand::of(pod.spec.as_ref().unwrap_or(&nothing));
        let terms = Terms::of(&pod);
        Self { pod, demand, terms }
    }

    pub(super) fn uid(&self) -> &str {
        pods::uid(&self.pod)
    }

    pub(super) fn priority(&self) -> i32 {
        priority(&self.pod)
    }
}

/// The priority of a Pod, 0 without one.
pub(super) fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)
}

/// A node with the Pods that are on it and have not ended.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) node: Arc<Node>,
    pub(super) residents: Arc<Vec<Arc<Resident>>>,
    /// Those that have terms of affinity or anti-affinity.
    pub(super) social: Arc<Vec<Arc<Resident>>>,
    pub(super) used: Arc<Used>,
    /// What the node has in all.
    pub(super) offered: Arc<Amounts>,
}

impl Host {
    pub(super) fn new(node: Arc<Node>, residents: Vec<Arc<Resident>>) -> Self {
        let mut used = Used::default();
        for one in &residents {
            used.add(&one.demand);
        }
        let social = residents.iter().filter(|one| !one.terms.is_empty()).cloned().collect();
        let offered = Arc::new(offered(&node));
        Self { node, residents: Arc::new(residents), social: Arc::new(social), used: Arc::new(used), offered }
    }

    /// How much of a resource the node has in all.
    pub(super) fn offer(&self, resource: &str) -> i128 {
        self.offered.get(resource).copied().unwrap_or(0)
    }

    pub(super) fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    /// The value of a label of the node.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.node.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub(super) fn add(&mut self, resident: Arc<Resident>) {
        Arc::make_mut(&mut self.used).add(&resident.demand);
        if !resident.terms.is_empty() {
            Arc::make_mut(&mut self.social).push(resident.clone());
        }
        Arc::make_mut(&mut self.residents).push(resident);
    }

    pub(super) fn remove(&mut self, resident: &Resident) {
        Arc::make_mut(&mut self.used).remove(&resident.demand);
        let other = |one: &Arc<Resident>| one.uid() != resident.uid();
        if !resident.terms.is_empty() {
            Arc::make_mut(&mut self.social).retain(other);
        }
        Arc::make_mut(&mut self.residents).retain(other);
    }
}

/// What is known of every node's Pods from the last look, so that only what has changed is read again.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<String, Host>>);

impl Memory {
    /// The node with these Pods, which are in the order of their keys.
    pub(super) fn host(&self, node: Arc<Node>, mut pods: Vec<Arc<Pod>>) -> Host {
        pods.retain(|pod| !pods::is_finished(pod));
        let name = node.metadata.name.clone().unwrap_or_default();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let host = match known.remove(&name) {
            Some(old) if is_same(&old.residents, &pods) && Arc::ptr_eq(&old.node, &node) => old,
            Some(old) if is_same(&old.residents, &pods) => {
                let offered = Arc::new(offered(&node));
                Host { node, offered, ..old }
            }
            Some(old) => Host::new(node, merge(&old.residents, pods)),
            None => Host::new(node, merge(&[], pods)),
        };
        known.insert(name, host.clone());
        host
    }

    /// Forgets the nodes that are not among these.
    pub(super) fn keep(&self, hosts: &[Host]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > hosts.len() {
            known.retain(|name, _| hosts.iter().any(|host| host.name() == name));
        }
    }
}

fn offered(node: &Node) -> Amounts {
    requests::amounts(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
}

fn is_same(known: &[Arc<Resident>], pods: &[Arc<Pod>]) -> bool {
    known.len() == pods.len() && known.iter().zip(pods).all(|(one, pod)| Arc::ptr_eq(&one.pod, pod))
}

/// Reads the Pods that are not known yet, or no longer as they were. Both lists are in the order of keys.
fn merge(known: &[Arc<Resident>], pods: Vec<Arc<Pod>>) -> Vec<Arc<Resident>> {
    let key = |pod: &Pod| (pod.metadata.namespace.clone(), pod.metadata.name.clone());
    let mut known = known.iter().peekable();
    let mut resident = |pod: Arc<Pod>| {
        while known.next_if(|one| !Arc::ptr_eq(&one.pod, &pod) && key(&one.pod) <= key(&pod)).is_some() {}
        match known.next_if(|one| Arc::ptr_eq(&one.pod, &pod)) {
            Some(same) => same.clone(),
            None => Arc::new(Resident::new(pod)),
        }
    };
    pods.into_iter().map(&mut resident).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::PodFixture;

    #[test]
    fn only_what_has_changed_is_read_again() {
        let memory = Memory::default();
        let node = Arc::new(Node::default());
        let [a, b, c] = ["a", "b", "c"].map(|name| Arc::new(Pod::test(name)));
        let first = memory.host(node.clone(), vec![a.clone(), b.clone()]);
        let again = memory.host(node.clone(), vec![a.clone(), b.clone()]);
        assert!(Arc::ptr_eq(&first.residents, &again.residents));
        let changed = Arc::new(Pod::test("a").labelled("app", "web"));
        let more = memory.host(node.clone(), vec![changed.clone(), b, c]);
        assert!(Arc::ptr_eq(&more.residents[1], &first.residents[1]));
        assert!(Arc::ptr_eq(&more.residents[0].pod, &changed));
        assert_eq!(more.used.pods, 3);
        let ended = memory.host(node, vec![changed, Arc::new(Pod::test("b").phase("Failed"))]);
        assert_eq!(ended.used.pods, 1);
    }
}
