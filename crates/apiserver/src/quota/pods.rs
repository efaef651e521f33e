//! What Pods use, and what they must say about it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Amount, Usage, amounts};

/// What a quota can bound of Pods besides extended resources and huge pages.
const TRACKED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// What every container must say something about once a quota bounds it.
const MUST_SAY: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What can be set for a Pod as a whole.
fn of_whole_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Resources that only their vendor knows have a domain that is not Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
        || name.starts_with("deviceclass.resource.kubernetes.io/")
}

pub(super) fn tracks(name: &str) -> bool {
    TRACKED.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
        || name.strip_prefix("requests.").is_some_and(is_extended)
}

/// Pods that have ended, or should have long ago, use nothing.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Usage {
    if has_ended(pod, now) {
        return Usage::new();
    }
    of_amounts(&pod_total(pod, "requests", true), &pod_total(pod, "limits", true))
}

fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed")) {
        return true;
    }
    let metadata = &pod["metadata"];
    let end: Option<Timestamp> = metadata["deletionTimestamp"].as_str().and_then(|text| text.parse().ok());
    match (end, metadata["deletionGracePeriodSeconds"].as_i64()) {
        (Some(end), Some(grace)) => {
            end.saturating_add(SignedDuration::from_secs(grace)).is_ok_and(|last| now > last)
        }
        _ => false,
    }
}

fn of_amounts(requests: &Usage, limits: &Usage) -> Usage {
    let mut usage = Usage::from([("pods".into(), Amount::ONE)]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            usage.insert(name.into(), *amount);
            usage.insert(format!("requests.{name}"), *amount);
        }
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), *amount);
        }
    }
    for (name, amount) in requests {
        let huge = name.starts_with("hugepages-");
        if huge {
            usage.insert(name.clone(), *amount);
        }
        if huge || is_extended(name) {
            usage.insert(format!("requests.{name}"), *amount);
        }
    }
    usage
}

/// What the containers of a Pod together request, or are limited to. Containers that only prepare the others
/// run one after the other; those of them that stay run beside all that come later.
pub(crate) fn pod_total(pod: &Value, kind: &str, whole: bool) -> Usage {
    let containers = |list: &str| pod["spec"][list].as_array().cloned().unwrap_or_default();
    let mut total = Usage::new();
    for container in containers("containers") {
        super::add(&mut total, own(pod, &container, kind));
    }
    let (mut staying, mut preparing) = (Usage::new(), Usage::new());
    for container in containers("initContainers") {
        let amounts = own(pod, &container, kind);
        let mut at_once = staying.clone();
        super::add(&mut at_once, amounts.clone());
        if container["restartPolicy"] == "Always" {
            super::add(&mut total, amounts);
            staying.clone_from(&at_once);
        }
        at_least(&mut preparing, at_once);
    }
    at_least(&mut total, preparing);
    let stated = amounts(&pod["spec"]["resources"][kind]);
    total.extend(stated.into_iter().filter(|(name, _)| of_whole_pods(name)));
    if whole {
        let overhead = amounts(&pod["spec"]["overhead"]);
        let counted = |name: &String| kind == "requests" || total.contains_key(name);
        let overhead: Usage = overhead.into_iter().filter(|(name, _)| counted(name)).collect();
        super::add(&mut total, overhead);
    }
    total
}

/// What a container asks for, or has been given where that is more.
fn own(pod: &Value, container: &Value, kind: &str) -> Usage {
    let mut usage = amounts(&container["resources"][kind]);
    for list in ["containerStatuses", "initContainerStatuses"] {
        let statuses = pod["status"][list].as_array().into_iter().flatten();
        for status in statuses.filter(|status| status["name"] == container["name"]) {
            at_least(&mut usage, amounts(&status["resources"][kind]));
            if kind == "requests" {
                at_least(&mut usage, amounts(&status["allocatedResources"]));
            }
        }
    }
    usage
}

fn at_least(usage: &mut Usage, other: Usage) {
    for (name, amount) in other {
        let more = usage.get(&name).is_none_or(|known| amount > *known);
        if more {
            usage.insert(name, amount);
        }
    }
}

/// What containers leave unsaid that a quota bounds, as a sentence.
pub(crate) fn missing(pod: &Value, bounded: &[String]) -> Option<String> {
    let whole = &pod["spec"]["resources"];
    let said = |kind: &str| amounts(&whole[kind]).keys().any(|name| of_whole_pods(name));
    if said("requests") || said("limits") {
        return None;
    }
    let mut silent: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            let says = of_amounts(&amounts(&resources["requests"]), &amounts(&resources["limits"]));
            let needed = bounded.iter().filter(|name| MUST_SAY.contains(&name.as_str()));
            for name in needed.filter(|name| !says.contains_key(*name)) {
                silent.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    if silent.is_empty() {
        return None;
    }
    let parts = silent.into_iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    Some(format!("must specify {}", parts.collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn preparing_counts_where_it_needs_more_than_running() {
        let pod = json!({"spec": {
            "initContainers": [
                {"name": "stays", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "prepares", "resources": {"requests": {"cpu": "2"}}}],
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}],
            "overhead": {"cpu": "10m"},
        }});
        assert_eq!(pod_total(&pod, "requests", true)["cpu"].to_string(), "2110m");
        assert_eq!(pod_total(&pod, "requests", false)["cpu"].to_string(), "2100m");
    }

    #[test]
    fn ended_pods_use_nothing() {
        let mut pod = json!({"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Failed"}});
        assert!(usage(&pod, Timestamp::UNIX_EPOCH).is_empty());
        pod["status"]["phase"] = json!("Running");
        assert_eq!(usage(&pod, Timestamp::UNIX_EPOCH).len(), 1);
        pod["metadata"] =
            json!({"deletionTimestamp": "2020-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30});
        assert_eq!(usage(&pod, "2020-01-01T00:00:59Z".parse().unwrap()).len(), 1);
        assert!(usage(&pod, "2020-01-01T00:01:01Z".parse().unwrap()).is_empty());
    }

    #[test]
    fn extended_resources_are_bounded_by_requests() {
        let pod = json!({"spec": {"containers": [
            {"name": "a", "resources": {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}}]}});
        assert_eq!(usage(&pod, Timestamp::UNIX_EPOCH)["requests.example.com/gpu"].to_string(), "2");
        assert!(tracks("requests.example.com/gpu") && !tracks("limits.example.com/gpu"));
    }
}
