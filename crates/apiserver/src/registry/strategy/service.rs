//! Services.

use serde_json::{Value, json};

use super::{Resource, default, is_service, text};
use crate::error::Cause;

/// Defaults of a Service, apart from its addresses, which are assigned when it is committed.
pub(super) fn defaults(service: &mut Value) {
    default(service, "spec", || json!({}));
    let spec = &mut service["spec"];
    default(spec, "type", || json!("ClusterIP"));
    default(spec, "sessionAffinity", || json!("None"));
    let kind = text(spec, "/type").to_owned();
    if kind != "ExternalName" {
        default(spec, "ipFamilyPolicy", || json!("SingleStack"));
        default(spec, "internalTrafficPolicy", || json!("Cluster"));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default(spec, "externalTrafficPolicy", || json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", || json!(true));
    }
    if text(spec, "/clusterIP") == "None" {
        default(spec, "clusterIPs", || json!(["None"]));
        default(spec, "ipFamilies", || json!(["IPv4"]));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", || json!("TCP"));
        let number = port["port"].clone();
        default(port, "targetPort", || number);
    }
    default(service, "status", || json!({}));
    default(&mut service["status"], "loadBalancer", || json!({}));
}

/// A writer that does not speak of addresses keeps those that the Service has.
pub(super) fn keep_addresses(resource: &Resource, new: &mut Value, old: &Value) {
    if !is_service(resource) || text(new, "/spec/type") == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let Some(value) = old["spec"].get(field).cloned() {
            default(&mut new["spec"], field, || value);
        }
    }
    let before = old.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let ports = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let same = before.iter().find(|known| {
            known["port"] == port["port"] && text(known, "/protocol") == text(port, "/protocol")
        });
        if let Some(number) = same.and_then(|known| known.get("nodePort")).cloned() {
            default(port, "nodePort", || number);
        }
    }
}

/// What is wrong with a Service.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let kind = text(spec, "/type");
    if ports.is_empty() && kind != "ExternalName" && text(spec, "/clusterIP") != "None" {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65_535).contains(&number) {
            let field = format!("spec.ports[{index}].port");
            causes.push(Cause::invalid(field, &json!(number), "must be between 1 and 65535, inclusive"));
        }
        if ports.len() > 1 && text(port, "/name").is_empty() {
            causes.push(Cause::required(format!("spec.ports[{index}].name"), ""));
        }
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        causes.push(Cause::not_supported("spec.type", kind, &kinds));
    }
    let before = old.map_or("", |old| text(old, "/spec/clusterIP"));
    let now = text(spec, "/clusterIP");
    if !before.is_empty() && before != now && kind != "ExternalName" {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!([now]), "may not change once set"));
    }
    causes
}
