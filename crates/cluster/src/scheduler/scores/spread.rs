//! Points for even spreading: by constraints that may be broken, or else by what owns the Pod. Pure.

use std::collections::BTreeMap;

use super::{
    super::{
        filters::spread::{Constraint, has_labels},
        host::Host,
    },
    Contest, MOST,
};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// How far the Pods of one owner may lie apart without its mattering, where the Pod has no constraints of its own.
const DEFAULTS: [(&str, i64); 2] = [(HOSTNAME, 3), ("topology.kubernetes.io/zone", 5)];

/// The points of every node that will do.
pub(super) fn points(contest: &Contest<'_>) -> Vec<i64> {
    let spec = contest.incoming.spec();
    let own = spec.topology_spread_constraints.as_ref().is_some_and(|all| !all.is_empty());
    let constraints = Constraint::all(&contest.incoming.own.pod, spec, "ScheduleAnyway");
    if own && constraints.is_empty() || !own && contest.siblings.is_empty() {
        return vec![0; contest.fitting.len()];
    }
    let numbers: Vec<Option<f64>> =
        if own { by_constraints(contest, &constraints) } else { by_owner(contest) };
    let numbers: Vec<Option<i64>> =
        numbers.into_iter().map(|number| number.map(|number| number.round() as i64)).collect();
    let known = || numbers.iter().flatten().copied();
    let (least, most) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
    let points = |number: i64| if most == 0 { MOST } else { MOST * (most + least - number) / most };
    numbers.iter().map(|number| number.map_or(0, points)).collect()
}

/// A topology with few values counts less for each Pod in it.
fn weight(values: usize) -> f64 {
    (values as f64 + 2.0).ln()
}

fn by_constraints(contest: &Contest<'_>, constraints: &[Constraint]) -> Vec<Option<f64>> {
    let spec = contest.incoming.spec();
    let namespace = contest.incoming.own.pod.metadata.namespace.as_ref();
    let scored: Vec<&&Host> = contest.fitting.iter().filter(|host| has_labels(constraints, host)).collect();
    let mut sums: Vec<Option<f64>> =
        contest.fitting.iter().map(|host| has_labels(constraints, host).then_some(0.0)).collect();
    for constraint in constraints {
        let mut counts: BTreeMap<&str, i64> =
            scored.iter().filter_map(|host| Some((host.label(&constraint.topology)?, 0))).collect();
        for host in contest.hosts.iter().filter(|host| has_labels(constraints, host)) {
            if let Some(value) = host.label(&constraint.topology)
                && let Some(count) = counts.get_mut(value)
                && constraint.includes(spec, host)
            {
                *count += constraint.on(host, namespace);
            }
        }
        let weight = weight(counts.len());
        for (host, sum) in contest.fitting.iter().zip(&mut sums) {
            if let (Some(sum), Some(value)) = (sum, host.label(&constraint.topology)) {
                let count = counts.get(value).copied().unwrap_or(0);
                *sum += count as f64 * weight + (constraint.max_skew - 1) as f64;
            }
        }
    }
    sums
}

fn by_owner(contest: &Contest<'_>) -> Vec<Option<f64>> {
    let mut sums = vec![Some(0.0); contest.fitting.len()];
    for (topology, max_skew) in DEFAULTS {
        let mut counts: BTreeMap<&str, i64> =
            contest.fitting.iter().filter_map(|host| Some((host.label(topology)?, 0))).collect();
        for host in contest.hosts {
            if let Some(count) = host.label(topology).and_then(|value| counts.get_mut(value)) {
                *count += contest.siblings.get(host.name()).copied().unwrap_or(0);
            }
        }
        let weight = weight(counts.len());
        for (host, sum) in contest.fitting.iter().zip(&mut sums) {
            if let (Some(sum), Some(value)) = (sum, host.label(topology)) {
                let count = counts.get(value).copied().unwrap_or(0);
                *sum += count as f64 * weight + (max_skew - 1) as f64;
            }
        }
    }
    sums
}
