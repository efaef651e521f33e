//! Ingresses and their classes, network policies and endpoint slices.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Resource,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    error::Cause,
    registry::metadata::{NameRule, name_error},
};

/// Defaults of an object of this room.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    match &*resource.plural {
        "networkpolicies" => default_policy(object),
        "endpointslices" => {
            for port in object.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                default(port, "name", || json!(""));
                default(port, "protocol", || json!("TCP"));
            }
        }
        "ingressclasses" => {
            if let Some(parameters) = object.pointer_mut("/spec/parameters") {
                default(parameters, "scope", || json!("Cluster"));
            }
        }
        _ => {}
    }
}

fn default_policy(policy: &mut Value) {
    default(policy, "spec", || json!({}));
    let spec = &mut policy["spec"];
    let outgoing = !list(spec, "egress").is_empty();
    default(spec, "policyTypes", || if outgoing { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    for direction in ["ingress", "egress"] {
        for rule in spec.get_mut(direction).and_then(Value::as_array_mut).into_iter().flatten() {
            for port in rule.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                default(port, "protocol", || json!("TCP"));
            }
        }
    }
}

/// What is wrong with an object of this room.
pub(super) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    match &*resource.plural {
        "ingresses" => ingress(&mut causes, &new["spec"]),
        "ingressclasses" => ingress_class(&mut causes, new, old),
        "networkpolicies" => policy(&mut causes, &new["spec"]),
        "endpointslices" => slice(&mut causes, new, old),
        "ipaddresses" => ip_address(&mut causes, new),
        _ => {}
    }
    causes
}

/// An address is named by itself, written in the one way that there is, and belongs to somebody.
fn ip_address(causes: &mut Causes, address: &Value) {
    let name = text(address, "/metadata/name");
    let why = match name.parse::<std::net::IpAddr>() {
        Err(_) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()),
        Ok(parsed) if parsed.to_string() != name => Some(format!("must be in canonical form (\"{parsed}\")")),
        Ok(_) => None,
    };
    if let Some(why) = why {
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    let Some(parent) = address.pointer("/spec/parentRef") else {
        causes.push(Cause::required("spec.parentRef", ""));
        return;
    };
    for field in ["resource", "name"] {
        if parent.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
            causes.push(Cause::required(format!("spec.parentRef.{field}"), ""));
        }
    }
}

fn ingress(causes: &mut Causes, spec: &Value) {
    let rules = list(spec, "rules");
    if rules.is_empty() && spec.get("defaultBackend").is_none() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &Value::Null, why));
    }
    if let Some(backend) = spec.get("defaultBackend") {
        self::backend(causes, backend, "spec.defaultBackend");
    }
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("spec.rules[{index}]");
        host(causes, text(rule, "/host"), at(&place, "host"));
        let paths = rule.pointer("/http/paths").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if rule.get("http").is_some() && paths.is_empty() {
            causes.push(Cause::required(format!("{place}.http.paths"), ""));
        }
        for (index, path) in paths.iter().enumerate() {
            ingress_path(causes, path, &format!("{place}.http.paths[{index}]"));
        }
    }
    let class = text(spec, "/ingressClassName");
    if !class.is_empty() {
        check::name(causes, class, "spec.ingressClassName", NameRule::Subdomain);
    }
}

fn host(causes: &mut Causes, host: &str, field: String) {
    if host.is_empty() {
        return;
    }
    if host.parse::<std::net::IpAddr>().is_ok() {
        causes.push(Cause::invalid(&*field, &json!(host), "must be a DNS name, not an IP address"));
    }
    let plain = host.strip_prefix("*.").unwrap_or(host);
    if host.contains('*') {
        if plain.contains('*') || name_error(plain, NameRule::Subdomain).is_some() {
            let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                       consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character \
                       (e.g. '*.example.com', regex used for validation is \
                       '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            causes.push(Cause::invalid(field, &json!(host), why));
        }
        return;
    }
    check::name(causes, host, field, NameRule::Subdomain);
}

fn ingress_path(causes: &mut Causes, path: &Value, place: &str) {
    let (kind, value) = (text(path, "/pathType"), text(path, "/path"));
    let field = at(place, "path");
    match kind {
        "" => causes.push(Cause::required(at(place, "pathType"), "pathType must be specified")),
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                causes.push(Cause::invalid(&*field, &json!(value), "must be an absolute path"));
            }
            if !value.is_empty() {
                for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| value.contains(**part)) {
                    let why = format!("must not contain '{part}'");
                    causes.push(Cause::invalid(&*field, &json!(value), why));
                }
            }
        }
        "ImplementationSpecific" => {
            if !value.is_empty() && !value.starts_with('/') {
                causes.push(Cause::invalid(field, &json!(value), "must be an absolute path"));
            }
        }
        other => {
            let allowed = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.push(Cause::not_supported(at(place, "pathType"), other, &allowed));
        }
    }
    backend(causes, &path["backend"], &at(place, "backend"));
}

fn backend(causes: &mut Causes, backend: &Value, place: &str) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service, resource) {
        (Some(_), Some(_)) => {
            let why = "cannot set both resource and service backends";
            causes.push(Cause::invalid(place, &json!(""), why));
        }
        (None, None) => {
            causes.push(Cause::invalid(place, &json!(""), "resource or service backend is required"));
        }
        (Some(service), None) => backend_service(causes, service, place),
        (None, Some(_)) => {}
    }
}

fn backend_service(causes: &mut Causes, service: &Value, place: &str) {
    let name = text(service, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{place}.service.name"), ""));
    } else {
        check::name(causes, name, format!("{place}.service.name"), NameRule::Label);
    }
    let number = service.pointer("/port/number").and_then(Value::as_i64).unwrap_or(0);
    match (text(service, "/port/name"), number) {
        ("", 0) => causes.push(Cause::required(place, "port name or number is required")),
        ("", number) if !(1..=65_535).contains(&number) => {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{place}.service.port.number"), &json!(number), why));
        }
        ("", _) | (_, 0) => {}
        _ => causes.push(Cause::invalid(place, &json!(""), "cannot set both port name & port number")),
    }
}

fn ingress_class(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let controller = text(new, "/spec/controller");
    if let Some(old) = old {
        check::immutable(causes, &new["spec"], &old["spec"], "spec", "controller");
        return;
    }
    let prefixed = controller
        .split_once('/')
        .is_some_and(|(domain, path)| name_error(domain, NameRule::Subdomain).is_none() && !path.is_empty());
    if controller.is_empty() {
        causes.push(Cause::required("spec.controller", ""));
    } else if !prefixed {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(Cause::invalid("spec.controller", &json!(controller), why));
    }
}

fn policy(causes: &mut Causes, spec: &Value) {
    check::selector(causes, &spec["podSelector"], "spec.podSelector");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let place = format!("spec.{direction}[{index}]");
            for (index, port) in list(rule, "ports").iter().enumerate() {
                policy_port(causes, port, &format!("{place}.ports[{index}]"));
            }
            for (index, peer) in list(rule, peers).iter().enumerate() {
                if peer.as_object().is_none_or(serde_json::Map::is_empty) {
                    causes.push(Cause::required(format!("{place}.{peers}[{index}]"), "must specify a peer"));
                }
            }
        }
    }
    let kinds = list(spec, "policyTypes");
    if kinds.len() > 2 {
        let why = "may not specify more than two policyTypes";
        causes.push(Cause::invalid("spec.policyTypes", &spec["policyTypes"], why));
        return;
    }
    for (index, kind) in kinds.iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !["Ingress", "Egress"].contains(&kind) {
            let field = format!("spec.policyTypes[{index}]");
            causes.push(Cause::not_supported(field, kind, &["Ingress", "Egress"]));
        }
    }
}

fn policy_port(causes: &mut Causes, port: &Value, place: &str) {
    check::one_of(causes, port, place, "protocol", &["TCP", "UDP", "SCTP"]);
    if let Some(number) = port["port"].as_i64().filter(|number| !(1..=65_535).contains(number)) {
        let why = "must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(at(place, "port"), &json!(number), why));
    }
}

fn slice(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old
        && new["addressType"] != old["addressType"]
    {
        causes.push(Cause::invalid("addressType", &Value::Null, "field is immutable"));
        return;
    }
    let kind = text(new, "/addressType");
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in list(new, "ports").iter().enumerate() {
        let place = format!("ports[{index}]");
        let name = text(port, "/name");
        if !names.insert(name) {
            causes.push(check::duplicate(at(&place, "name"), name));
        }
        check::one_of(causes, port, &place, "protocol", &["SCTP", "TCP", "UDP"]);
    }
    let endpoints = list(new, "endpoints");
    for (index, endpoint) in endpoints.iter().enumerate() {
        for (inner, address) in list(endpoint, "addresses").iter().enumerate() {
            let field = format!("endpoints[{index}].addresses[{inner}]");
            address_of(causes, address.as_str().unwrap_or_default(), kind, field);
        }
    }
    if kind.is_empty() {
        causes.push(Cause::required("addressType", ""));
    } else {
        check::one_of(causes, new, "", "addressType", &["FQDN", "IPv4", "IPv6"]);
    }
    for (index, _) in endpoints.iter().enumerate().filter(|(_, one)| list(one, "addresses").is_empty()) {
        causes.push(Cause::required(format!("endpoints[{index}].addresses"), ""));
    }
}

fn address_of(causes: &mut Causes, address: &str, kind: &str, field: String) {
    let why = match kind {
        "IPv4" | "IPv6" if address.parse::<std::net::IpAddr>().is_err() => {
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        }
        "IPv4" if address.parse::<std::net::Ipv4Addr>().is_err() => "must be a valid IPv4 address",
        "IPv6" if address.parse::<std::net::Ipv6Addr>().is_err() => "must be a valid IPv6 address",
        "FQDN" => {
            check::name(causes, address, field, NameRule::Subdomain);
            return;
        }
        _ => return,
    };
    causes.push(Cause::invalid(field, &json!(address), why));
}
