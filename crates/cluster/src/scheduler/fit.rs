//! Whether a Pod fits a node, and the message when it fits none. Pure.

use std::{collections::BTreeMap, sync::Arc};

use windlass::k8s_openapi::{
    api::core::v1::{Node, Pod, PodSpec, Taint, Toleration},
    apimachinery::pkg::api::resource::Quantity,
};

use super::{affinity, ports};
use crate::{pods, quantity};

/// Why a node refuses a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    reason: String,
    /// Whether the node would take the Pod if others made room.
    could_make_room: bool,
}

impl Refusal {
    fn for_good(reason: &str) -> Self {
        Self { reason: reason.to_owned(), could_make_room: false }
    }
}

/// Whether the Pod can run on the node beside what already runs there.
pub(super) fn check(pod: &Pod, node: &Node, running: &[Arc<Pod>]) -> Result<(), Refusal> {
    let nothing = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&nothing);
    let node_spec = node.spec.clone().unwrap_or_default();
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    if node_spec.unschedulable == Some(true) && !tolerates_cordon(tolerations) {
        return Err(Refusal::for_good("node(s) were unschedulable"));
    }
    if !affinity::allows(spec, node) {
        return Err(Refusal::for_good("node(s) didn't match Pod's node affinity/selector"));
    }
    let repels = |taint: &&Taint| taint.effect != "PreferNoSchedule" && !tolerates(tolerations, taint);
    if node_spec.taints.iter().flatten().any(|taint| repels(&taint)) {
        return Err(Refusal::for_good("node(s) had untolerated taint(s)"));
    }
    if ports::conflict(spec, running) {
        let reason = "node(s) didn't have free ports for the requested pod ports".to_owned();
        return Err(Refusal { reason, could_make_room: true });
    }
    check_resources(spec, node, running)
}

fn tolerates_cordon(tolerations: &[Toleration]) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    tolerates(tolerations, &cordon)
}

/// Whether one of the tolerations covers a taint.
pub(crate) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (key, effect) = (text(&toleration.key), text(&toleration.effect));
        let value_fits = match toleration.operator.as_deref().unwrap_or("Equal") {
            "Exists" => true,
            _ => text(&toleration.value) == text(&taint.value),
        };
        (effect.is_empty() || effect == taint.effect)
            && (key.is_empty() && toleration.operator.as_deref() == Some("Exists") || key == taint.key)
            && value_fits
    })
}

fn check_resources(spec: &PodSpec, node: &Node, running: &[Arc<Pod>]) -> Result<(), Refusal> {
    let offered = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let amount = |name: &str| offered.get(name).and_then(quantity::thousandths).unwrap_or(0);
    let active = running.iter().filter(|pod| !pods::is_finished(pod));
    let count = active.clone().count() as i128;
    if (count + 1) * 1000 > amount("pods") {
        return Err(Refusal { reason: "Too many pods".into(), could_make_room: amount("pods") >= 1000 });
    }
    for (name, wanted) in requests(spec).into_iter().filter(|(_, wanted)| *wanted > 0) {
        let share =
            |pod: &Arc<Pod>| pod.spec.as_ref().map_or(0, |spec| requests(spec).remove(&name).unwrap_or(0));
        let taken: i128 = active.clone().map(share).sum();
        if taken + wanted > amount(&name) {
            let reason = format!("Insufficient {name}");
            return Err(Refusal { reason, could_make_room: wanted <= amount(&name) });
        }
    }
    Ok(())
}

/// What a Pod asks for: its containers together, or its hungriest init container if that asks for more.
fn requests(spec: &PodSpec) -> BTreeMap<String, i128> {
    let of = |requests: Option<&BTreeMap<String, Quantity>>| -> BTreeMap<String, i128> {
        let parsed =
            |(name, amount): (&String, &Quantity)| Some((name.clone(), quantity::thousandths(amount)?));
        requests.into_iter().flatten().filter_map(parsed).collect()
    };
    let mut sum: BTreeMap<String, i128> = BTreeMap::new();
    let sidecars =
        spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    for container in spec.containers.iter().chain(sidecars) {
        for (name, amount) in of(container.resources.as_ref().and_then(|r| r.requests.as_ref())) {
            *sum.entry(name).or_default() += amount;
        }
    }
    for container in spec.init_containers.iter().flatten() {
        for (name, amount) in of(container.resources.as_ref().and_then(|r| r.requests.as_ref())) {
            let entry = sum.entry(name).or_default();
            *entry = amount.max(*entry);
        }
    }
    for (name, amount) in of(spec.overhead.as_ref()) {
        *sum.entry(name).or_default() += amount;
    }
    sum
}

/// What `kubectl describe pod` shows when no node will do.
pub(super) fn message(refusals: &[Refusal]) -> String {
    if refusals.is_empty() {
        return "no nodes available to schedule pods".into();
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for refusal in refusals {
        *reasons.entry(&refusal.reason).or_default() += 1;
    }
    let mut reasons: Vec<String> =
        reasons.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    reasons.sort();
    let all = refusals.len();
    let hopeless = refusals.iter().filter(|refusal| !refusal.could_make_room).count();
    let mut preemption = Vec::new();
    if all > hopeless {
        preemption.push(format!("{} No preemption victims found for incoming pod", all - hopeless));
    }
    if hopeless > 0 {
        preemption.push(format!("{hopeless} Preemption is not helpful for scheduling"));
    }
    preemption.sort();
    format!(
        "0/{all} nodes are available: {}. preemption: 0/{all} nodes are available: {}.",
        reasons.join(", "),
        preemption.join(", ")
    )
}

/// The message when it is not the nodes that will not do.
pub(super) fn refused_by_all(reason: &str, nodes: usize) -> String {
    format!(
        "0/{nodes} nodes are available: {reason}. preemption: 0/{nodes} nodes are available: {nodes} Preemption is \
         not helpful for scheduling."
    )
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::PodFixture;

    fn node(spec: windlass::serde_json::Value) -> Node {
        from_value(json!({
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": spec,
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}},
        }))
        .unwrap()
    }

    fn pod(spec: windlass::serde_json::Value) -> Pod {
        let mut spec = spec;
        if spec.get("containers").is_none() {
            spec["containers"] = json!([]);
        }
        Pod { spec: from_value(spec).unwrap(), ..Pod::test("p") }
    }

    fn asking(cpu: &str) -> Pod {
        pod(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}))
    }

    fn refusal(pod: &Pod, node: &Node, running: &[Arc<Pod>]) -> String {
        message(&[check(pod, node, running).unwrap_err()])
    }

    const UNHELPFUL: &str =
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";

    #[test]
    fn refusals_read_as_kube_scheduler_words_them() {
        let plain = node(json!({}));
        let selecting = pod(json!({"nodeSelector": {"a": "b"}}));
        assert_eq!(
            refusal(&selecting, &plain, &[]),
            format!(
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {UNHELPFUL}"
            )
        );
        assert_eq!(
            refusal(&asking("100"), &plain, &[]),
            format!("0/1 nodes are available: 1 Insufficient cpu. {UNHELPFUL}")
        );
        assert_eq!(message(&[]), "no nodes available to schedule pods");
    }

    #[test]
    fn requests_of_running_pods_count() {
        let busy = [Arc::new(asking("1500m"))];
        assert!(check(&asking("500m"), &node(json!({})), &busy).is_ok());
        assert!(refusal(&asking("501m"), &node(json!({})), &busy).contains("No preemption victims found"));
        let done = [Arc::new(asking("1500m").phase("Succeeded"))];
        assert!(check(&asking("2"), &node(json!({})), &done).is_ok());
    }

    #[test]
    fn a_full_node_takes_no_more_pods() {
        let full = [Arc::new(Pod::test("a")), Arc::new(Pod::test("b"))];
        assert!(refusal(&pod(json!({})), &node(json!({})), &full).contains("1 Too many pods"));
    }

    #[test]
    fn taints_need_tolerations() {
        let tainted = node(json!({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}));
        assert!(refusal(&pod(json!({})), &tainted, &[]).contains("had untolerated taint(s)"));
        for toleration in [
            json!({"key": "gpu", "operator": "Exists"}),
            json!({"key": "gpu", "value": "yes", "effect": "NoSchedule"}),
            json!({"operator": "Exists"}),
        ] {
            assert!(check(&pod(json!({"tolerations": [toleration]})), &tainted, &[]).is_ok());
        }
        let wrong = pod(json!({"tolerations": [{"key": "gpu", "value": "no"}]}));
        assert!(check(&wrong, &tainted, &[]).is_err());
    }

    #[test]
    fn a_cordoned_node_takes_nothing() {
        let cordoned = node(json!({"unschedulable": true}));
        assert!(refusal(&pod(json!({})), &cordoned, &[]).contains("node(s) were unschedulable"));
    }
}
