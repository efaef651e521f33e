//! EndpointSlices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    error::Cause,
    registry::{metadata::NameRule, strategy::Generation},
};

/// EndpointSlice.
pub(super) static ENDPOINT_SLICE: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults,
    validate: |new, old| {
        let mut causes = Vec::new();
        validate(&mut causes, new, old);
        causes
    },
    row: Some(row),
    ..Strategy::PLAIN
};

fn defaults(slice: &mut Value) {
    for port in slice.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "name", || json!(""));
        default(port, "protocol", || json!("TCP"));
    }
}

fn validate(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if let Some(old) = old
        && new["addressType"] != old["addressType"]
    {
        causes.push(Cause::invalid("addressType", &Value::Null, "field is immutable"));
        check::required(causes, new, "", "addressType");
        return;
    }
    let kind = text(new, "/addressType");
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in list(new, "ports").iter().enumerate() {
        let place = format!("ports[{index}]");
        let name = text(port, "/name");
        if !name.is_empty() {
            check::name(causes, name, at(&place, "name"), NameRule::Label);
        }
        if !names.insert(name) {
            causes.push(check::duplicate(at(&place, "name"), name));
        }
        check::one_of(causes, port, &place, "protocol", &["SCTP", "TCP", "UDP"]);
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            check::qualified(causes, protocol, at(&place, "appProtocol"));
        }
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

/// Up to three, or `<unset>`.
fn few(values: Vec<String>) -> Value {
    if values.is_empty() { json!("<unset>") } else { json!(cells::some_of(values, 3, ",")) }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = cells::list(object, "/ports").iter().map(|port| match (port.get("port"), port.get("name")) {
        (Some(number), _) if number.is_number() => number.to_string(),
        (_, Some(Value::String(name))) => name.clone(),
        _ => "*".into(),
    });
    let addresses = cells::list(object, "/endpoints").iter().flat_map(|one| cells::list(one, "/addresses"));
    vec![
        cells::name(object),
        json!(text(object, "/addressType")),
        few(ports.collect()),
        few(addresses.map(|one| cells::plain(Some(one))).collect()),
        cells::age(object, now),
    ]
}
