//! Terms of inter-Pod affinity and anti-affinity: which Pods they mean, and in which topology. Pure.

use std::collections::{BTreeMap, BTreeSet};

use windlass::k8s_openapi::{
    api::core::v1::{Pod, PodAffinityTerm, WeightedPodAffinityTerm},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

use crate::selector;

pub(super) type Labels = BTreeMap<String, String>;

/// Pods, and the label of nodes by which "near" is meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) topology: String,
    /// Without one it means no Pod at all.
    selector: Option<LabelSelector>,
    namespaces: BTreeSet<String>,
    /// Further namespaces, by their labels.
    among: Option<LabelSelector>,
}

impl Term {
    fn of(term: &PodAffinityTerm, pod: &Pod) -> Self {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.extend(pod.metadata.namespace.clone());
        }
        let mut selector = term.label_selector.clone();
        if let Some(selector) = &mut selector {
            like(selector, pod, term.match_label_keys.as_deref(), "In");
            like(selector, pod, term.mismatch_label_keys.as_deref(), "NotIn");
        }
        Self {
            topology: term.topology_key.clone(),
            selector,
            namespaces,
            among: term.namespace_selector.clone(),
        }
    }

    /// Whether a Pod is meant, which is in a namespace with these labels.
    pub(super) fn means(&self, pod: &Pod, namespace: Option<&Labels>) -> bool {
        let here = pod.metadata.namespace.as_ref().is_some_and(|name| self.namespaces.contains(name))
            || self.among.as_ref().is_some_and(|among| selector::matches(among, namespace));
        here && self
            .selector
            .as_ref()
            .is_some_and(|selector| selector::matches(selector, pod.metadata.labels.as_ref()))
    }

    /// Whether namespaces are chosen by their labels.
    pub(super) fn looks_at_namespaces(&self) -> bool {
        self.among.is_some()
    }
}

/// Adds that Pods have, or do not have, the values of some labels that this Pod has. Adding it twice changes nothing,
/// so it does not matter whether the API server has done it before.
pub(super) fn like(selector: &mut LabelSelector, pod: &Pod, keys: Option<&[String]>, operator: &str) {
    for key in keys.unwrap_or_default() {
        let Some(value) = pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)) else { continue };
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.to_owned(),
            values: Some(vec![value.clone()]),
        });
    }
}

/// All terms of a Pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Terms {
    pub(super) near: Vec<Term>,
    pub(super) apart: Vec<Term>,
    pub(super) rather_near: Vec<(i64, Term)>,
    pub(super) rather_apart: Vec<(i64, Term)>,
}

impl Terms {
    pub(super) fn of(pod: &Pod) -> Self {
        let Some(affinity) = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()) else {
            return Self::default();
        };
        let required = |terms: Option<&Vec<PodAffinityTerm>>| {
            terms.into_iter().flatten().map(|term| Term::of(term, pod)).collect()
        };
        let preferred = |terms: Option<&Vec<WeightedPodAffinityTerm>>| {
            let weighted = |one: &WeightedPodAffinityTerm| {
                (i64::from(one.weight), Term::of(&one.pod_affinity_term, pod))
            };
            terms.into_iter().flatten().map(weighted).collect()
        };
        let (near, apart) = (affinity.pod_affinity.as_ref(), affinity.pod_anti_affinity.as_ref());
        Self {
            near: required(near.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())),
            apart: required(
                apart.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref()),
            ),
            rather_near: preferred(
                near.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref()),
            ),
            rather_apart: preferred(
                apart.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref()),
            ),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty()
            && self.apart.is_empty()
            && self.rather_near.is_empty()
            && self.rather_apart.is_empty()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Term> {
        let weighted = self.rather_near.iter().chain(&self.rather_apart).map(|(_, term)| term);
        self.near.iter().chain(&self.apart).chain(weighted)
    }
}

/// The namespaces of a cluster with their labels; empty where nobody asks for them.
pub(super) type Namespaces = BTreeMap<String, Labels>;
