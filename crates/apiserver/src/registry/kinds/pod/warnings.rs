//! What is valid in a Pod or a template, and yet hardly what was meant.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{
    check::{at as join, list},
    text,
};
use crate::schema::quantity::Amount;

pub(in crate::registry::kinds) fn of_pod(pod: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let (spec, place) = (&pod["spec"], join(path, "spec"));
    for (index, spread) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        if spread.get("labelSelector").is_none() {
            let why = "a null labelSelector results in matching no pod";
            warnings.push(format!("{place}.topologySpreadConstraints[{index}].labelSelector: {why}"));
        }
    }
    for (key, field, gone) in [
        ("scheduler.alpha.kubernetes.io/critical-pod", "priorityClassName", "v1.16+"),
        ("security.alpha.kubernetes.io/sysctls", "sysctls", "v1.11+"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "sysctls", "v1.11+"),
    ] {
        if pod["metadata"]["annotations"].get(key).is_some() {
            let why = format!("non-functional in {gone}; use the \"{field}\" field instead");
            warnings.push(format!("{}[{key}]: {why}", join(path, "metadata.annotations")));
        }
    }
    for (field, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = BTreeSet::new();
        for (index, entry) in list(spec, field).iter().enumerate() {
            let own = text(entry, &format!("/{key}"));
            if !seen.insert(own) {
                warnings.push(format!("{place}.{field}[{index}].{key}: duplicate {key} \"{own}\""));
            }
        }
    }
    let containers = containers(spec, &place);
    for (container, place) in &containers {
        let resources = join(place, "resources");
        fractional(&mut warnings, &container["resources"], &resources, &["memory", "ephemeral-storage"]);
        hidden_variables(&mut warnings, container, place);
    }
    ports(&mut warnings, &containers);
    port_names(&mut warnings, &containers);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{place}.terminationGracePeriodSeconds: {why}"));
    }
    warnings
}

/// All containers with their paths, in the order in which the real server visits them.
fn containers<'a>(spec: &'a Value, place: &str) -> Vec<(&'a Value, String)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    lists
        .flat_map(|field| {
            let entries = list(spec, field).iter().enumerate();
            entries.map(move |(index, container)| (container, format!("{place}.{field}[{index}]")))
        })
        .collect()
}

/// Amounts of bytes that are no whole number.
pub(in crate::registry::kinds) fn fractional(
    warnings: &mut Vec<String>,
    resources: &Value,
    place: &str,
    names: &[&str],
) {
    for name in names {
        for kind in ["limits", "requests"] {
            let amount = resources[kind].get(*name).and_then(Amount::from_json);
            if let Some(amount) = amount.filter(|amount| amount.rounded_up() != *amount) {
                let why = format!("fractional byte value \"{amount}\" is invalid, must be an integer");
                warnings.push(format!("{place}.{kind}[{name}]: {why}"));
            }
        }
    }
}

/// A variable that is said twice, where the second does not build on the first.
fn hidden_variables(warnings: &mut Vec<String>, container: &Value, place: &str) {
    let mut seen = BTreeSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "/name");
        let value = text(variable, "/value");
        let reference = format!("$({name})");
        let builds = variable.get("valueFrom").is_none() && value != reference && value.contains(&reference);
        if !seen.insert(name) && !builds {
            let why =
                format!("hides previous definition of \"{name}\", which may be dropped when using apply");
            warnings.push(format!("{place}.env[{index}]: {why}"));
        }
    }
}

/// So many warnings about ports are made: one for each pair can be very many, and a client is told a few.
const PAIRS: usize = 1000;

/// Ports of one number and protocol, by the host's port and address: the places that they have in the order of all.
#[derive(Default)]
struct Alike<'a> {
    ports: Vec<(String, i64, &'a str)>,
    by_host: BTreeMap<i64, BTreeMap<&'a str, Vec<usize>>>,
}

impl<'a> Alike<'a> {
    fn add(&mut self, place: String, host: i64, address: &'a str) {
        self.by_host.entry(host).or_default().entry(address).or_default().push(self.ports.len());
        self.ports.push((place, host, address));
    }

    /// The ports that another one is in the way of, in order; of many, some.
    fn clashes(&self, host: i64, address: &str) -> Vec<usize> {
        let on = |host: i64| self.by_host.get(&host).into_iter().flatten();
        let same = on(host).filter(|(other, _)| other.is_empty() || address.is_empty() || **other == address);
        let mut found: Vec<usize> = if host == 0 {
            (0..self.ports.len()).take(PAIRS).collect()
        } else {
            on(0).chain(same).flat_map(|(_, places)| places).copied().take(PAIRS).collect()
        };
        found.sort_unstable();
        found
    }
}

/// Ports that several containers have.
fn ports(warnings: &mut Vec<String>, containers: &[(&Value, String)]) {
    let mut known: BTreeMap<(i64, &str), Alike<'_>> = BTreeMap::new();
    for (container, place) in containers {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let place = format!("{place}.ports[{index}]");
            let key = (port["containerPort"].as_i64().unwrap_or(0), text(port, "/protocol"));
            let (host, address) = (port["hostPort"].as_i64().unwrap_or(0), text(port, "/hostIP"));
            let others = known.entry(key).or_default();
            if warnings.len() < PAIRS {
                for other in others.clashes(host, address) {
                    let (other, first, its_address) = &others.ports[other];
                    let how = match host == *first {
                        true if address == *its_address => "duplicate",
                        _ if host == 0 || *first == 0 => "overlapping",
                        _ => "dangerously ambiguous",
                    };
                    warnings.push(format!("{place}: {how} port definition with {other}"));
                }
            }
            others.add(place, host, address);
        }
    }
}

/// Names of ports that mean the first of several.
fn port_names(warnings: &mut Vec<String>, containers: &[(&Value, String)]) {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    for (container, place) in containers {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let (name, place) = (text(port, "/name"), format!("{place}.ports[{index}]"));
            if name.is_empty() {
                continue;
            }
            match known.get(name) {
                Some(first) => warnings.push(format!(
                    "{place}: duplicate port name \"{name}\" with {first}, services and probes that select ports by \
                     name will use {first}"
                )),
                None => drop(known.insert(name, place)),
            }
        }
    }
}
