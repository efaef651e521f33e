//! NetworkPolicies.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default,
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        cells::name(object),
        json!(cells::selector(object.pointer("/spec/podSelector"))),
        cells::age(object, now),
    ]
}
