//! What objects use of a namespace's quotas. Pure.
//!
//! Enters: an object of any kind. Leaves: amounts by the names that a ResourceQuota gives them. Admission
//! charges by these functions and whoever recounts a namespace should count by them too, so that the two
//! never disagree.

mod pods;
mod scopes;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

pub use self::scopes::in_scope;
pub(crate) use self::{pods::missing, pods::pod_total};
pub use crate::schema::quantity::Amount;

/// Amounts by resource name.
pub type Usage = BTreeMap<String, Amount>;

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// The names of objects that are counted under a short name besides `count/…`.
const COUNTED: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// The name under which objects of a kind are counted, such as `count/deployments.apps`.
pub fn count_name(group: &str, plural: &str) -> String {
    if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") }
}

/// Whether objects of the kind use anything of what `name` stands for.
pub fn tracks(group: &str, plural: &str, name: &str) -> bool {
    if name == count_name(group, plural) {
        return true;
    }
    match (group, plural) {
        ("", "pods") => pods::tracks(name),
        ("", "services") => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
        ("", "persistentvolumeclaims") => {
            let plain = name.split_once(STORAGE_CLASS).map_or(name, |(_, what)| what);
            matches!(plain, "persistentvolumeclaims" | "requests.storage")
        }
        ("", _) => COUNTED.contains(&plural) && name == plural,
        _ => false,
    }
}

/// What the object uses.
pub fn usage(group: &str, plural: &str, object: &Value, now: Timestamp) -> Usage {
    let mut usage = Usage::from([(count_name(group, plural), Amount::ONE)]);
    match (group, plural) {
        ("", "pods") => usage.extend(pods::usage(object, now)),
        ("", "services") => usage.extend(service(object)),
        ("", "persistentvolumeclaims") => usage.extend(claim(object)),
        ("", _) if COUNTED.contains(&plural) => drop(usage.insert(plural.to_owned(), Amount::ONE)),
        _ => {}
    }
    usage
}

/// Adds what is in `other`.
pub fn add(usage: &mut Usage, other: Usage) {
    for (name, amount) in other {
        let sum = usage.get(&name).map_or(amount, |known| *known + amount);
        usage.insert(name, sum);
    }
}

/// Reads a map of quantities.
pub fn amounts(value: &Value) -> Usage {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), Amount::from_json(amount)?))).collect()
}

fn service(service: &Value) -> Usage {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let (balancers, nodes) = match spec["type"].as_str() {
        Some("NodePort") => (0_usize, ports.len()),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (1, chosen),
        Some("LoadBalancer") => (1, ports.len()),
        _ => (0, 0),
    };
    Usage::from([
        ("services".into(), Amount::ONE),
        ("services.loadbalancers".into(), Amount::from(balancers)),
        ("services.nodeports".into(), Amount::from(nodes)),
    ])
}

fn claim(claim: &Value) -> Usage {
    let asked = claim.pointer("/spec/resources/requests/storage").and_then(Amount::from_json);
    let given = claim.pointer("/status/allocatedResources/storage").and_then(Amount::from_json);
    let storage = asked.map(|asked| given.map_or(asked, |given| asked.max(given)).rounded_up());
    let mut usage = Usage::from([("persistentvolumeclaims".into(), Amount::ONE)]);
    if let Some(storage) = storage {
        usage.insert("requests.storage".into(), storage);
    }
    let class = storage_class(claim);
    if !class.is_empty() {
        let of_class: Usage =
            usage.iter().map(|(name, amount)| (format!("{class}{STORAGE_CLASS}{name}"), *amount)).collect();
        usage.extend(of_class);
    }
    usage
}

/// The class that a claim names, in its spec or in the annotation of old.
pub(crate) fn storage_class(claim: &Value) -> &str {
    let old = claim.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    old.or_else(|| claim.pointer("/spec/storageClassName")).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(group: &str, plural: &str, object: &Value) -> BTreeMap<String, String> {
        let usage = usage(group, plural, object, Timestamp::UNIX_EPOCH);
        usage.into_iter().map(|(name, amount)| (name, amount.to_string())).collect()
    }

    #[test]
    fn everything_counts_as_one() {
        assert_eq!(shown("apps", "deployments", &json!({}))["count/deployments.apps"], "1");
        assert_eq!(shown("", "secrets", &json!({})).len(), 2);
        assert!(tracks("", "secrets", "secrets") && !tracks("", "events", "events"));
    }

    #[test]
    fn claims_are_counted_by_class_too() {
        let claim =
            json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1.5"}}}});
        let usage = shown("", "persistentvolumeclaims", &claim);
        assert_eq!(usage["gold.storageclass.storage.k8s.io/requests.storage"], "2");
        assert_eq!(usage["requests.storage"], "2");
        assert!(tracks("", "persistentvolumeclaims", "x.storageclass.storage.k8s.io/persistentvolumeclaims"));
    }

    #[test]
    fn balancers_without_node_ports_use_none() {
        let mut service = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}});
        assert_eq!(shown("", "services", &service)["services.nodeports"], "2");
        service["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
        assert_eq!(shown("", "services", &service)["services.nodeports"], "0");
    }
}
