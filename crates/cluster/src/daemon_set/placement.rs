//! Which nodes may have a daemon, and what its Pod looks like. Pure.

use windlass::k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetSpec},
    core::v1::{
        Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec,
        Toleration,
    },
};

use crate::{history, pod_control, scheduler};

/// Troubles of a node that a daemon does not mind.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

const GENERATION: &str = "deprecated.daemonset.template.generation";

/// The template with what every daemon has.
pub(super) fn template(set: &DaemonSet, hash: &str) -> PodTemplateSpec {
    let mut template = set.spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(history::HASH.into(), hash.to_owned());
    let generation = set.metadata.annotations.as_ref().and_then(|annotations| annotations.get(GENERATION));
    if let Some(generation) = generation {
        labels.insert("pod-template-generation".into(), generation.clone());
    }
    tolerate(template.spec.get_or_insert_default());
    template
}

fn tolerate(spec: &mut PodSpec) {
    let tolerations = spec.tolerations.get_or_insert_default();
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let network = (spec.host_network == Some(true)).then_some(network);
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let toleration = Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}

/// The Pod for a node: the scheduler can put it nowhere else.
pub(super) fn pod(template: &PodTemplateSpec, prefix: &str, node: &str) -> Pod {
    let mut pod = pod_control::from_template(template, prefix);
    let affinity = pod.spec.get_or_insert_default().affinity.get_or_insert_default();
    let only = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![only]), ..NodeSelectorTerm::default() };
    affinity.node_affinity.get_or_insert_default().required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    pod
}

/// The node that a Pod is on, or is meant for.
pub(super) fn node(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|node| !node.is_empty()) {
        return Some(node);
    }
    let required = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &required.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let fields = terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let mut named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    named.next()?.values.as_ref()?.first().map(String::as_str)
}

/// Whether a daemon may start on a node, and whether one that is there may stay.
pub(super) fn allows(spec: &DaemonSetSpec, node: &Node) -> (bool, bool) {
    let mut pod = spec.template.spec.clone().unwrap_or_default();
    tolerate(&mut pod);
    let name = node.metadata.name.as_deref();
    let elsewhere = pod.node_name.as_deref().is_some_and(|wanted| !wanted.is_empty() && Some(wanted) != name);
    if elsewhere || !crate::node_affinity::allows(&pod, node) {
        return (false, false);
    }
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let taints = || node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let repelled = |effects: &[&str]| {
        taints().any(|taint| {
            effects.contains(&taint.effect.as_str()) && !scheduler::taints::tolerates(tolerations, taint)
        })
    };
    (!repelled(&["NoSchedule", "NoExecute"]), !repelled(&["NoExecute"]))
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;

    fn spec(pod: Value) -> DaemonSetSpec {
        from_value(json!({"selector": {}, "template": {"spec": pod}})).unwrap()
    }

    fn tainted(key: &str, effect: &str) -> Node {
        from_value(json!({
            "metadata": {"name": "n1", "labels": {"disk": "fast"}},
            "spec": {"taints": [{"key": key, "effect": effect}]},
        }))
        .unwrap()
    }

    #[test]
    fn a_daemon_puts_up_with_a_nodes_troubles_but_not_with_foreign_taints() {
        let plain = spec(json!({"containers": []}));
        assert_eq!(allows(&plain, &tainted("node.kubernetes.io/unreachable", "NoExecute")), (true, true));
        assert_eq!(allows(&plain, &tainted("node.kubernetes.io/unschedulable", "NoSchedule")), (true, true));
        assert_eq!(allows(&plain, &tainted("gpu", "NoSchedule")), (false, true));
        assert_eq!(allows(&plain, &tainted("gpu", "NoExecute")), (false, false));
        let elsewhere = spec(json!({"containers": [], "nodeSelector": {"disk": "slow"}}));
        assert_eq!(allows(&elsewhere, &Node::default()), (false, false));
    }

    #[test]
    fn a_pod_is_meant_for_its_node() {
        let template = PodTemplateSpec::default();
        let pod = pod(&template, "d-", "n7");
        assert_eq!(node(&pod), Some("n7"));
    }
}
