//! Where a Pod may be, and what it knows of the network there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at, list},
        metadata::NameRule,
        resource::text,
    },
};

/// Checks to which nodes and to which other Pods a Pod is drawn.
pub(super) fn affinity(causes: &mut Causes, affinity: &Value, path: &str) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(node) = affinity.get("nodeAffinity") {
        let path = at(path, "nodeAffinity");
        if let Some(selector) = node.get(required) {
            node_selector(causes, selector, &at(&path, required));
        }
        for (index, term) in list(node, preferred).iter().enumerate() {
            let place = format!("{path}.{preferred}[{index}]");
            weight(causes, term, &place);
            node_term(causes, &term["preference"], &at(&place, "preference"), false);
        }
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(field) else { continue };
        let path = at(path, field);
        for (index, term) in list(pods, required).iter().enumerate() {
            pod_term(causes, term, &format!("{path}.{required}[{index}]"));
        }
        for (index, term) in list(pods, preferred).iter().enumerate() {
            let place = format!("{path}.{preferred}[{index}]");
            weight(causes, term, &place);
            pod_term(causes, &term["podAffinityTerm"], &at(&place, "podAffinityTerm"));
        }
    }
}

fn weight(causes: &mut Causes, term: &Value, place: &str) {
    let weight = term["weight"].as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        causes.push(Cause::invalid(at(place, "weight"), &json!(weight), "must be in the range 1-100"));
    }
}

/// Checks a selector of nodes.
pub(in crate::registry::kinds) fn node_selector(causes: &mut Causes, selector: &Value, path: &str) {
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        let why = "must have at least one node selector term";
        causes.push(Cause::required(at(path, "nodeSelectorTerms"), why));
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(causes, term, &format!("{path}.nodeSelectorTerms[{index}]"), true);
    }
}

fn node_term(causes: &mut Causes, term: &Value, path: &str, strict: bool) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        node_requirement(causes, requirement, &format!("{path}.matchExpressions[{index}]"), strict);
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        let place = format!("{path}.matchFields[{index}]");
        let operator = text(requirement, "/operator");
        match operator {
            "In" | "NotIn" if list(requirement, "values").len() != 1 => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                causes.push(Cause::required(at(&place, "values"), why));
            }
            "In" | "NotIn" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(at(&place, "operator"), &json!(other), why));
            }
        }
        if text(requirement, "/key") == "metadata.name" {
            for (index, value) in list(requirement, "values").iter().enumerate() {
                let field = format!("{place}.values[{index}]");
                check::name(causes, value.as_str().unwrap_or_default(), field, NameRule::Subdomain);
            }
        } else {
            let why = "not a valid field selector key";
            causes.push(Cause::invalid(at(&place, "key"), &json!(text(requirement, "/key")), why));
        }
    }
}

fn node_requirement(causes: &mut Causes, requirement: &Value, place: &str, strict: bool) {
    let values = list(requirement, "values");
    match text(requirement, "/operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(at(place, "values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(at(place, "values"), why));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            causes.push(Cause::required(at(place, "values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            let why = "not a valid selector operator";
            causes.push(Cause::invalid(at(place, "operator"), &json!(other), why));
        }
    }
    check::qualified(causes, text(requirement, "/key"), at(place, "key"));
    if strict {
        for (index, value) in values.iter().enumerate() {
            let field = format!("{place}.values[{index}]");
            check::label_value(causes, value.as_str().unwrap_or_default(), field);
        }
    }
}

fn pod_term(causes: &mut Causes, term: &Value, place: &str) {
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.get(field) {
            check::selector(causes, selector, &at(place, field));
        }
    }
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        check::name(causes, name, at(place, "namespace"), NameRule::Label);
    }
    let key = text(term, "/topologyKey");
    if key.is_empty() {
        causes.push(Cause::required(at(place, "topologyKey"), "can not be empty"));
    }
    check::qualified(causes, key, at(place, "topologyKey"));
}

/// Checks how a Pod and its like are spread.
pub(super) fn spread(causes: &mut Causes, spec: &Value, path: &str) {
    let constraints = list(spec, "topologySpreadConstraints");
    let identity =
        |one: &Value| (text(one, "/topologyKey").to_owned(), text(one, "/whenUnsatisfiable").to_owned());
    let mut later = BTreeSet::new();
    let mut repeated: Vec<bool> = constraints.iter().rev().map(|one| !later.insert(identity(one))).collect();
    repeated.reverse();
    for (index, constraint) in constraints.iter().enumerate() {
        let place = format!("{path}.topologySpreadConstraints[{index}]");
        let skew = constraint["maxSkew"].as_i64().unwrap_or(0);
        if skew <= 0 {
            causes.push(Cause::invalid(at(&place, "maxSkew"), &json!(skew), "must be greater than zero"));
        }
        let (key, action) = (text(constraint, "/topologyKey"), text(constraint, "/whenUnsatisfiable"));
        if key.is_empty() {
            causes.push(Cause::required(at(&place, "topologyKey"), "can not be empty"));
        }
        let allowed = ["DoNotSchedule", "ScheduleAnyway"];
        if !allowed.contains(&action) {
            causes.push(Cause::not_supported(at(&place, "whenUnsatisfiable"), action, &allowed));
        }
        if repeated[index] {
            let field = at(&place, "{topologyKey, whenUnsatisfiable}");
            causes.push(check::duplicate(field, &format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = constraint.get("minDomains").and_then(Value::as_i64) {
            let field = at(&place, "minDomains");
            if domains <= 0 {
                causes.push(Cause::invalid(field.clone(), &json!(domains), "must be greater than zero"));
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                causes.push(Cause::invalid(field, &json!(domains), why));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            check::one_of(causes, constraint, &place, field, &["Honor", "Ignore"]);
        }
        if let Some(selector) = constraint.get("labelSelector") {
            check::selector(causes, selector, &at(&place, "labelSelector"));
        }
    }
}

/// Checks who is asked for names.
pub(super) fn dns(causes: &mut Causes, spec: &Value, path: &str) {
    let (config, path) = (spec.get("dnsConfig"), at(path, "dnsConfig"));
    if text(spec, "/dnsPolicy") == "None" {
        let Some(config) = config else {
            causes.push(Cause::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        };
        if list(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.push(Cause::required(at(&path, "nameservers"), why));
            return;
        }
    }
    let Some(config) = config else { return };
    let (servers, searches) = (list(config, "nameservers"), list(config, "searches"));
    if servers.len() > 3 {
        let why = "must not have more than 3 nameservers";
        causes.push(Cause::invalid(at(&path, "nameservers"), &json!(servers), why));
    }
    for (index, server) in servers.iter().enumerate() {
        check::address(causes, server.as_str().unwrap_or_default(), format!("{path}.nameservers[{index}]"));
    }
    if searches.len() > 32 {
        let why = "must not have more than 32 search paths";
        causes.push(Cause::invalid(at(&path, "searches"), &json!(searches), why));
    }
    for (index, search) in searches.iter().filter_map(Value::as_str).enumerate() {
        let plain = search.strip_suffix('.').unwrap_or(search);
        let label = |label: &str| {
            let (first, last) = (label.as_bytes().first(), label.as_bytes().last());
            let inner =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
            let outer = |byte: Option<&u8>| {
                byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_')
            };
            outer(first) && outer(last) && label.bytes().all(inner)
        };
        if search != "." && !plain.split('.').all(label) {
            let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                       must start and end with an alphanumeric character or underscore (e.g. 'example.com', regex used for \
                       validation is '[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*')";
            causes.push(Cause::invalid(format!("{path}.searches[{index}]"), &json!(plain), why));
        }
    }
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.options[{index}]"), "must not be empty"));
        }
    }
}

/// Checks names that a Pod knows of itself, what it waits for, and what it is ready by.
pub(super) fn aliases_and_gates(causes: &mut Causes, spec: &Value, path: &str) {
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let place = format!("{path}.hostAliases[{index}]");
        check::address(causes, text(alias, "/ip"), at(&place, "ip"));
        for (index, name) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            check::name(causes, name, format!("{place}.hostnames[{index}]"), NameRule::Subdomain);
        }
    }
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let place = format!("{path}.readinessGates[{index}].conditionType");
        check::qualified(causes, text(gate, "/conditionType"), place);
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let (name, place) = (text(gate, "/name"), format!("{path}.schedulingGates[{index}]"));
        check::qualified(causes, name, place.clone());
        if !seen.insert(name) {
            causes.push(check::duplicate(place, name));
        }
    }
}
