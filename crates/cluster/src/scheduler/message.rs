//! What `kubectl describe pod` shows when no node will do, in kube-scheduler's words. Pure.

use std::collections::BTreeMap;

use super::filters::Refusal;

/// What came of looking for Pods that could make room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Preemption {
    /// Nobody was asked, for this reason.
    NotEligible(&'static str),
    /// No node can be freed: what each of those says that were tried.
    Hopeless(Vec<Refusal>),
    /// Some Pods make room on a node.
    Found { node: String, victims: usize },
}

pub(super) const NEVER: &str = "not eligible due to preemptionPolicy=Never.";
pub(super) const TERMINATING: &str = "not eligible due to a terminating pod on the nominated node.";
pub(super) const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// Why no node will do.
pub(super) fn of(refusals: &[Refusal], preemption: &Preemption) -> String {
    if refusals.is_empty() {
        return "no nodes available to schedule pods".into();
    }
    let nodes = refusals.len();
    format!("0/{nodes} nodes are available: {}. {}", histogram(refusals, 0), told(preemption, nodes))
}

/// The message when it is not the nodes that will not do. Kubernetes' preemption then misses what it knows about nodes,
/// and says so.
pub(super) fn refused_by_all(reason: &str, nodes: usize) -> String {
    format!("0/{nodes} nodes are available: {reason}. not found")
}

fn told(preemption: &Preemption, nodes: usize) -> String {
    match preemption {
        Preemption::NotEligible(why) => format!("preemption: {why}"),
        Preemption::Hopeless(tried) => format!(
            "preemption: 0/{nodes} nodes are available: {}.",
            histogram(tried, nodes.saturating_sub(tried.len()))
        ),
        Preemption::Found { node, victims } => format!(
            "preemption: found a potential placement for pod on node {node}, preempting {victims} victims"
        ),
    }
}

/// How many nodes give each reason; the rest of them cannot be helped.
fn histogram(refusals: &[Refusal], rest: usize) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in refusals.iter().flat_map(|refusal| &refusal.reasons) {
        *reasons.entry(reason).or_default() += 1;
    }
    if rest > 0 {
        *reasons.entry(NOT_HELPFUL).or_default() += rest;
    }
    let mut lines: Vec<String> = reasons.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    lines.sort();
    lines.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_number_of_nodes() {
        let refusals = [
            Refusal::for_now("Insufficient cpu"),
            Refusal::for_good("node(s) had untolerated taint(s)"),
            Refusal {
                reasons: vec!["Insufficient cpu".into(), "Insufficient memory".into()],
                could_make_room: true,
            },
        ];
        let tried = vec![Refusal::for_good(NO_VICTIMS), Refusal::for_now("Insufficient cpu")];
        assert_eq!(
            of(&refusals, &Preemption::Hopeless(tried)),
            "0/3 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu. \
             preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, \
             1 Preemption is not helpful for scheduling."
        );
        assert_eq!(
            of(&refusals[1..2], &Preemption::NotEligible(NEVER)),
            "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: not eligible due to \
             preemptionPolicy=Never."
        );
    }
}
