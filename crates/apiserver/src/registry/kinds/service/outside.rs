//! What a Service says about the world outside: node ports, balancers, traffic.

use serde_json::{Value, json};

use super::super::{
    check::{self, Causes, at, list},
    text,
};
use crate::error::Cause;

/// Whether anybody outside of the cluster can reach it.
pub(super) fn is_reachable(spec: &Value) -> bool {
    match text(spec, "/type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" | "" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

/// Checks for how long a client keeps to one endpoint.
pub(super) fn affinity(causes: &mut Causes, spec: &Value) {
    let (path, config) = ("spec.sessionAffinityConfig", spec.get("sessionAffinityConfig"));
    let when = "when session affinity type is ClientIP";
    match (text(spec, "/sessionAffinity"), config) {
        ("None", Some(_)) => {
            causes.push(Cause::forbidden(path, "must not be set when session affinity is None"));
        }
        ("ClientIP", None) => causes.push(Cause::required(path, when)),
        ("ClientIP", Some(config)) => match config.get("clientIP") {
            None => causes.push(Cause::required(at(path, "clientIP"), when)),
            Some(client) => match client.get("timeoutSeconds").and_then(Value::as_i64) {
                None => causes.push(Cause::required(at(path, "clientIP.timeoutSeconds"), when)),
                Some(seconds) if !(1..=86_400).contains(&seconds) => {
                    let why = "must be greater than 0 and less than 86400";
                    causes.push(Cause::invalid(at(path, "clientIP.timeoutSeconds"), &json!(seconds), why));
                }
                Some(_) => {}
            },
        },
        _ => {}
    }
}

/// Checks the addresses that others lead to the Service.
pub(super) fn external_addresses(causes: &mut Causes, spec: &Value) {
    for (index, address) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let place = format!("spec.externalIPs[{index}]");
        let wrong = causes.len();
        check::address(causes, address, place.clone());
        if causes.len() == wrong {
            endpoint(causes, address, place);
        }
    }
}

/// An address that one can reach from elsewhere.
fn endpoint(causes: &mut Causes, address: &str, place: String) {
    let Ok(parsed) = address.parse::<std::net::IpAddr>() else { return };
    let mut refuse = |why: &str| causes.push(Cause::invalid(place.clone(), &json!(address), why));
    let (link_local, link_local_multicast) = match parsed {
        std::net::IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        std::net::IpAddr::V6(v6) => {
            (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02)
        }
    };
    if parsed.is_unspecified() {
        refuse("may not be unspecified");
    }
    if parsed.is_loopback() {
        refuse("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_local_multicast {
        refuse("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// Checks the ports of nodes.
pub(super) fn node_ports(causes: &mut Causes, spec: &Value) {
    for (index, port) in list(spec, "ports").iter().enumerate() {
        let taken = port["nodePort"].as_i64().is_some_and(|number| number != 0);
        if text(spec, "/type") == "ClusterIP" && taken {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("spec.ports[{index}].nodePort"), why));
        }
    }
}

/// Checks what only a balancer of load has.
pub(super) fn balancer(causes: &mut Causes, spec: &Value, old: Option<&Value>) {
    let balanced = text(spec, "/type") == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = list(spec, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        if !balanced {
            causes.push(Cause::forbidden("spec.LoadBalancerSourceRanges", only));
        }
        for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
            check::cidr(causes, range.trim(), format!("spec.LoadBalancerSourceRanges[{index}]"));
        }
    }
    if !balanced && spec.get("allocateLoadBalancerNodePorts").is_some() {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", only));
    }
    if let Some(class) = spec.get("loadBalancerClass").and_then(Value::as_str) {
        if balanced {
            check::qualified(causes, class, "spec.loadBalancerClass");
        } else {
            causes.push(Cause::forbidden("spec.loadBalancerClass", only));
        }
    }
    if let Some(old) = old
        && balanced
        && text(old, "/type") == "LoadBalancer"
        && old.get("loadBalancerClass") != spec.get("loadBalancerClass")
    {
        let value = spec.get("loadBalancerClass").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("spec.loadBalancerClass", value, "may not change once set"));
    }
}

/// Checks where traffic may go.
pub(super) fn traffic(causes: &mut Causes, spec: &Value) {
    let policy = text(spec, "/externalTrafficPolicy");
    if !is_reachable(spec) {
        if !policy.is_empty() {
            let why = "may only be set for externally-accessible services";
            causes.push(Cause::invalid("spec.externalTrafficPolicy", &json!(policy), why));
        }
    } else {
        check::required_one_of(causes, spec, "spec", "externalTrafficPolicy", &["Cluster", "Local"]);
    }
    let checked = text(spec, "/type") == "LoadBalancer" && policy == "Local";
    if let Some(port) = spec["healthCheckNodePort"].as_i64().filter(|port| *port != 0 && !checked) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        causes.push(Cause::invalid("spec.healthCheckNodePort", &json!(port), why));
    }
    check::one_of(causes, spec, "spec", "internalTrafficPolicy", &["Cluster", "Local"]);
    if let Some(wish) = spec.get("trafficDistribution").and_then(Value::as_str) {
        let allowed = ["PreferClose", "PreferSameNode", "PreferSameZone"];
        if !allowed.contains(&wish) {
            causes.push(Cause::not_supported("spec.trafficDistribution", wish, &allowed));
        }
    }
}
