//! Which objects a quota with scopes is about.

use serde_json::Value;

/// Whether an object is in all scopes of a quota's spec.
pub fn in_scope(spec: &Value, group: &str, plural: &str, object: &Value) -> bool {
    let named = spec["scopes"].as_array().into_iter().flatten();
    let named = named.filter_map(Value::as_str).map(|scope| (scope, "Exists", &Value::Null));
    let selected = spec.pointer("/scopeSelector/matchExpressions").and_then(Value::as_array);
    let selected = selected.into_iter().flatten().map(|one| {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        (text("scopeName"), text("operator"), &one["values"])
    });
    let holds = |(scope, operator, values): (&str, &str, &Value)| match (group, plural) {
        ("", "pods") => pod(object, scope, operator, values),
        ("", "persistentvolumeclaims") => claim(object, scope, operator, values),
        _ => false,
    };
    named.chain(selected).all(holds)
}

fn pod(pod: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    let spec = &pod["spec"];
    let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => asks_for_nothing(spec),
        "NotBestEffort" => !asks_for_nothing(spec),
        "PriorityClass" => selects(operator, values, spec["priorityClassName"].as_str()),
        "CrossNamespacePodAffinity" => looks_elsewhere(&spec["affinity"]),
        _ => false,
    }
}

fn asks_for_nothing(spec: &Value) -> bool {
    let whole = std::iter::once(&spec["resources"]);
    let lists = ["containers", "initContainers"].into_iter();
    let containers = lists.flat_map(|list| spec[list].as_array().into_iter().flatten());
    whole.chain(containers.map(|container| &container["resources"])).all(|resources| {
        ["requests", "limits"].iter().all(|kind| {
            super::amounts(&resources[*kind])
                .iter()
                .all(|(name, amount)| !matches!(name.as_str(), "cpu" | "memory") || amount.is_zero())
        })
    })
}

fn claim(claim: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    if scope != "VolumeAttributesClass" {
        return false;
    }
    let places = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    let names: Vec<&str> =
        places.iter().filter_map(|place| claim.pointer(place).and_then(Value::as_str)).collect();
    if names.is_empty() {
        return selects(operator, values, None);
    }
    names.into_iter().any(|name| selects(operator, values, Some(name)))
}

fn selects(operator: &str, values: &Value, name: Option<&str>) -> bool {
    let name = name.filter(|name| !name.is_empty());
    let among = |name: &str| values.as_array().is_some_and(|list| list.iter().any(|one| one == name));
    match operator {
        "Exists" => name.is_some(),
        "DoesNotExist" => name.is_none(),
        "In" => name.is_some_and(among),
        "NotIn" => !name.is_some_and(among),
        _ => false,
    }
}

/// Whether a Pod's place depends on Pods of other namespaces.
fn looks_elsewhere(affinity: &Value) -> bool {
    let beyond = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|list| !list.is_empty())
            || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |list: &str| affinity[*kind][list].as_array().cloned().unwrap_or_default();
        terms("requiredDuringSchedulingIgnoredDuringExecution").iter().any(beyond)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|term| beyond(&term["podAffinityTerm"]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_choose_pods() {
        let plain = json!({"spec": {"containers": [{"name": "a"}]}});
        let scoped = |scope: &str| in_scope(&json!({"scopes": [scope]}), "", "pods", &plain);
        assert!(scoped("NotTerminating") && scoped("BestEffort"));
        assert!(!scoped("Terminating") && !scoped("NotBestEffort") && !scoped("PriorityClass"));
        assert!(!scoped("CrossNamespacePodAffinity"));
        assert!(!in_scope(&json!({"scopes": ["BestEffort"]}), "", "services", &json!({})));
    }

    #[test]
    fn a_selector_names_priority_classes() {
        let spec = |operator: &str| {
            json!({"scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}]}})
        };
        let high = json!({"spec": {"priorityClassName": "high"}});
        assert!(in_scope(&spec("In"), "", "pods", &high) && in_scope(&spec("Exists"), "", "pods", &high));
        assert!(!in_scope(&spec("NotIn"), "", "pods", &high));
        assert!(in_scope(&spec("NotIn"), "", "pods", &json!({"spec": {}})));
    }
}
