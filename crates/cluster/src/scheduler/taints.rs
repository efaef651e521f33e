//! Taints and who tolerates them. Pure.

use windlass::k8s_openapi::api::core::v1::{Node, Taint, Toleration};

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

pub(crate) fn of(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

/// Whether a taint keeps new Pods with these tolerations away.
pub(super) fn repel(node: &Node, tolerations: &[Toleration]) -> bool {
    of(node).any(|taint| taint.effect != "PreferNoSchedule" && !tolerates(tolerations, taint))
}

/// How many taints of a node ask such Pods to go elsewhere if they can.
pub(super) fn discouraging(node: &Node, tolerations: &[Toleration]) -> i64 {
    let counts = |taint: &&Taint| taint.effect == "PreferNoSchedule" && !tolerates(tolerations, taint);
    of(node).filter(counts).count().try_into().unwrap_or(i64::MAX)
}

/// Whether a node takes no new Pods.
pub(super) fn is_cordoned(node: &Node, tolerations: &[Toleration]) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) && !tolerates(tolerations, &cordon)
}
