//! Node selectors and node affinity. Pure.

use std::collections::BTreeSet;

use windlass::{
    apimachinery::labels::Operator,
    k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec},
};

use crate::selector;

/// Whether the Pod's selector and its required affinity allow the node.
pub(crate) fn allows(spec: &PodSpec, node: &Node) -> bool {
    if !selector::contains(spec.node_selector.as_ref(), node.metadata.labels.as_ref()) {
        return false;
    }
    required(spec).is_none_or(|required| selects(required, node))
}

/// Whether one of the terms of a selector matches a node.
pub(crate) fn selects(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| matches(term, node))
}

fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

/// The weights of the preferred terms that match a node, together.
pub(crate) fn preference(spec: &PodSpec, node: &Node) -> i64 {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = affinity.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref());
    let matching = terms.into_iter().flatten().filter(|term| matches(&term.preference, node));
    matching.map(|term| i64::from(term.weight)).sum()
}

/// The nodes that every term of the required affinity names; `None` if one of them names none.
pub(crate) fn names(spec: &PodSpec) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    let required = required(spec).filter(|required| !required.node_selector_terms.is_empty())?;
    for term in &required.node_selector_terms {
        let fields = term.match_fields.iter().flatten();
        let named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
        let sets = named.map(|field| field.values.iter().flatten().cloned().collect::<BTreeSet<_>>());
        all.extend(sets.reduce(|one, other| &one & &other)?);
    }
    Some(all)
}

/// All requirements of a term must hold; a term without any matches nothing.
fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let label =
        |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let field = |key: &str| match key {
        "metadata.name" => node.metadata.name.as_deref(),
        _ => None,
    };
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|requirement| holds(requirement, label(&requirement.key)))
        && fields.iter().all(|requirement| holds(requirement, field(&requirement.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let operator = Operator::of_node_selector(&requirement.operator);
    operator.is_some_and(|operator| operator.matches(value, values))
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;

    fn node() -> Node {
        from_value(json!({"metadata": {"name": "n1", "labels": {"zone": "a", "size": "4"}}})).unwrap()
    }

    fn requiring(term: Value) -> PodSpec {
        from_value(json!({"containers": [], "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}))
        .unwrap()
    }

    #[test]
    fn required_affinity_decides() {
        let label = |operator: &str, key: &str, values: Value| {
            allows(
                &requiring(
                    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}),
                ),
                &node(),
            )
        };
        assert!(label("In", "zone", json!(["a", "b"])));
        assert!(!label("NotIn", "zone", json!(["a"])));
        assert!(label("Gt", "size", json!(["3"])) && !label("Gt", "size", json!(["4"])));
        assert!(label("Lt", "size", json!(["5"])));
        assert!(label("Exists", "zone", json!([])) && label("DoesNotExist", "none", json!([])));
        let named = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]});
        assert!(allows(&requiring(named), &node()));
        assert!(!allows(&requiring(json!({})), &node()));
    }
}
