//! NetworkPolicies.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default,
    pod::container::port_name_errors,
};
use crate::{error::Cause, registry::strategy::Generation};

/// NetworkPolicy.
pub(super) static NETWORK_POLICY: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults,
    validate: |new, _| {
        let mut causes = Vec::new();
        validate(&mut causes, &new["spec"]);
        causes
    },
    row: Some(row),
    ..Strategy::PLAIN
};

fn defaults(policy: &mut Value) {
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

fn validate(causes: &mut Causes, spec: &Value) {
    check::selector(causes, &spec["podSelector"], "spec.podSelector");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let place = format!("spec.{direction}[{index}]");
            for (index, port) in list(rule, "ports").iter().enumerate() {
                policy_port(causes, port, &format!("{place}.ports[{index}]"));
            }
            for (index, peer) in list(rule, peers).iter().enumerate() {
                policy_peer(causes, peer, &format!("{place}.{peers}[{index}]"));
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
    let end = port.get("endPort").and_then(Value::as_i64);
    let refuse = |causes: &mut Causes, why: &str| {
        causes.extend(end.map(|end| Cause::invalid(at(place, "endPort"), &json!(end), why)));
    };
    match &port["port"] {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            check::port(causes, number, at(place, "port"));
            if end.is_some_and(|end| end < number) {
                refuse(causes, "must be greater than or equal to `port`");
            }
            if let Some(end) = end {
                check::port(causes, end, at(place, "endPort"));
            }
        }
        Value::String(name) => {
            refuse(causes, "may not be specified when `port` is non-numeric");
            let wrong = port_name_errors(name).into_iter();
            causes.extend(wrong.map(|why| Cause::invalid(at(place, "port"), &json!(name), why)));
        }
        _ => refuse(causes, "may not be specified when `port` is not specified"),
    }
}

/// Who may be on the other side: Pods, namespaces, or a range of addresses.
fn policy_peer(causes: &mut Causes, peer: &Value, place: &str) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.get(field) {
            peers += 1;
            check::selector(causes, selector, &at(place, field));
        }
    }
    match (peer.get("ipBlock"), peers) {
        (None, 0) => causes.push(Cause::required(place, "must specify a peer")),
        (None, _) => {}
        (Some(block), _) => {
            ip_block(causes, block, &at(place, "ipBlock"));
            if peers > 0 {
                causes.push(Cause::forbidden(place, "may not specify both ipBlock and another peer"));
            }
        }
    }
}

fn ip_block(causes: &mut Causes, block: &Value, place: &str) {
    let whole = match block.get("cidr").and_then(Value::as_str).unwrap_or_default() {
        "" => {
            causes.push(Cause::required(at(place, "cidr"), ""));
            return;
        }
        whole => whole,
    };
    let wrong = causes.len();
    check::cidr(causes, whole, at(place, "cidr"));
    let whole = if causes.len() == wrong { range(whole) } else { None };
    for (index, except) in list(block, "except").iter().enumerate() {
        let (text, place) = (except.as_str().unwrap_or_default(), format!("{place}.except[{index}]"));
        let wrong = causes.len();
        check::cidr(causes, text, place.clone());
        if causes.len() > wrong {
            continue;
        }
        let (Some((from, bits, v6)), Some((start, length, other))) = (whole, range(text)) else { continue };
        let size = if v6 { 128 } else { 32 };
        let mask = if bits == 0 { 0 } else { u128::MAX << (size - bits) };
        if v6 != other || length <= bits || start & mask != from & mask {
            let why = "must be a strict subset of `cidr`";
            causes.push(Cause::invalid(place, except, why));
        }
    }
}

/// A range as a number, a length and whether it is of the sixth version.
fn range(text: &str) -> Option<(u128, u32, bool)> {
    let (address, bits) = text.split_once('/')?;
    let number = match address.parse().ok()? {
        std::net::IpAddr::V4(address) => u128::from(u32::from(address)),
        std::net::IpAddr::V6(address) => u128::from(address),
    };
    Some((number, bits.parse().ok()?, address.contains(':')))
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        cells::name(object),
        json!(cells::selector(object.pointer("/spec/podSelector"))),
        cells::age(object, now),
    ]
}
