//! Points for Pods that are rather near or rather apart, in both directions. Pure.

use std::collections::BTreeMap;

use super::{
    super::{
        host::{Host, Resident},
        terms::{Labels, Term},
    },
    Contest, MOST,
};

/// What the required affinity of a Pod that is there weighs for an incoming one that it means.
const REQUIRED_WEIGHT: i64 = 1;

/// Weights by topology: a label of nodes and its value.
type Weights = BTreeMap<(String, String), i64>;

/// The points of every node that will do.
pub(super) fn points(contest: &Contest<'_>) -> Vec<i64> {
    let own = &contest.incoming.own;
    let prefers = !own.terms.rather_near.is_empty() || !own.terms.rather_apart.is_empty();
    let mut weights = Weights::new();
    for host in contest.hosts {
        let others = if prefers { &host.residents } else { &host.social };
        others.iter().for_each(|other| weigh(&mut weights, contest, other, host));
    }
    if weights.is_empty() {
        return vec![0; contest.fitting.len()];
    }
    let number = |host: &&Host| -> i64 {
        let here = weights.iter().filter(|((key, value), _)| host.label(key) == Some(value.as_str()));
        here.map(|(_, weight)| weight).sum()
    };
    let numbers: Vec<i64> = contest.fitting.iter().map(number).collect();
    let (least, most) =
        (numbers.iter().copied().min().unwrap_or(0), numbers.iter().copied().max().unwrap_or(0));
    let points = |number: &i64| if most > least { MOST * (number - least) / (most - least) } else { 0 };
    numbers.iter().map(points).collect()
}

fn weigh(weights: &mut Weights, contest: &Contest<'_>, other: &Resident, host: &Host) {
    let own = &contest.incoming.own;
    let labels = |pod: &Resident| -> Option<&Labels> {
        pod.pod.metadata.namespace.as_ref().and_then(|name| contest.namespaces.get(name))
    };
    let mut note = |term: &Term, weight: i64, meant: &Resident| {
        if term.means(&meant.pod, labels(meant))
            && let Some(value) = host.label(&term.topology)
        {
            *weights.entry((term.topology.clone(), value.to_owned())).or_default() += weight;
        }
    };
    own.terms.rather_near.iter().for_each(|(weight, term)| note(term, *weight, other));
    own.terms.rather_apart.iter().for_each(|(weight, term)| note(term, -weight, other));
    other.terms.near.iter().for_each(|term| note(term, REQUIRED_WEIGHT, own));
    other.terms.rather_near.iter().for_each(|(weight, term)| note(term, *weight, own));
    other.terms.rather_apart.iter().for_each(|(weight, term)| note(term, -weight, own));
}
