//! Services: defaults, rules, rows, and the addresses that the server assigns.

mod addresses;
mod outside;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

pub(in crate::registry) use self::addresses::Shared as Addresses;
use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default,
    pod::container::port_name_errors,
    text,
};
use crate::{
    error::Cause,
    registry::{metadata::NameRule, strategy::Selectable},
};

/// Service.
pub(super) static SERVICE: Strategy = Strategy {
    name_rule: NameRule::Label,
    selectable: &[
        Selectable::new("spec.clusterIP", "/spec/clusterIP"),
        Selectable::new("spec.type", "/spec/type"),
    ],
    defaults,
    prepare_update: keep_addresses,
    complete_create: |service, _| complete(service),
    complete_update: |service, _| complete(service),
    validate,
    warnings: |service, _| {
        let spec = &service["spec"];
        let unused = text(spec, "/type") != "ExternalName" && !text(spec, "/externalName").is_empty();
        let told = || "spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned();
        unused.then(told).into_iter().collect()
    },
    creates_on_update: true,
    returns_deleted: true,
    row: Some(row),
    reserve: Some(addresses::reserve),
    after_removal: addresses::release,
    ..Strategy::PLAIN
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
/// Three hours: how long a client stays with one Pod.
const AFFINITY: i64 = 10_800;

/// Defaults of a Service, apart from its addresses, which are assigned when it is committed.
fn defaults(service: &mut Value) {
    default(service, "spec", || json!({}));
    let spec = &mut service["spec"];
    default(spec, "type", || json!("ClusterIP"));
    default(spec, "sessionAffinity", || json!("None"));
    let kind = text(spec, "/type").to_owned();
    match text(spec, "/sessionAffinity") {
        "ClientIP" => {
            default(spec, "sessionAffinityConfig", || json!({"clientIP": {"timeoutSeconds": AFFINITY}}));
        }
        "None" => drop(spec.as_object_mut().and_then(|spec| spec.remove("sessionAffinityConfig"))),
        _ => {}
    }
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", || json!("Cluster"));
    }
    if outside::is_reachable(spec) {
        default(spec, "externalTrafficPolicy", || json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", || json!(true));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", || json!("TCP"));
        let number = port["port"].clone();
        if port.get("targetPort").is_none_or(|target| target == &json!(0) || target == "") {
            port["targetPort"] = number;
        }
    }
    default(service, "status", || json!({}));
    default(&mut service["status"], "loadBalancer", || json!({}));
    let places = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for place in places.into_iter().flatten() {
        if place.get("ip").is_some() {
            default(place, "ipMode", || json!("VIP"));
        }
    }
}

/// What the server decides about addresses before it assigns any, and nobody owns.
fn complete(service: &mut Value) {
    let spec = &mut service["spec"];
    if text(spec, "/type") == "ExternalName" {
        return;
    }
    let headless = text(spec, "/clusterIP") == "None";
    let alone = check::entries(spec, "selector").next().is_none();
    if headless && alone && spec.get("ipFamilyPolicy").is_none() && spec.get("ipFamilies").is_none() {
        // Somebody else will say where it leads, in whichever family.
        spec["ipFamilyPolicy"] = json!("RequireDualStack");
        spec["ipFamilies"] = json!(["IPv4", "IPv6"]);
    }
    default(spec, "ipFamilyPolicy", || json!("SingleStack"));
    if headless {
        default(spec, "clusterIPs", || json!(["None"]));
        default(spec, "ipFamilies", || json!(["IPv4"]));
    }
}

/// A writer that does not speak of addresses keeps those that the Service has.
fn keep_addresses(new: &mut Value, old: &Value) {
    if text(new, "/spec/type") == "ExternalName" {
        if text(old, "/spec/type") != "ExternalName" {
            drop_addresses(new, old);
        }
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let Some(value) = old["spec"].get(field).cloned() {
            default(&mut new["spec"], field, || value);
        }
    }
    let inside = matches!(text(new, "/spec/type"), "ClusterIP" | "");
    if inside && matches!(text(old, "/spec/type"), "NodePort" | "LoadBalancer") {
        drop_node_ports(new, old);
        return;
    }
    fn identity(port: &Value) -> (Option<i64>, &str) {
        (port["port"].as_i64(), text(port, "/protocol"))
    }
    // Of several that are the same, the first counts.
    let before = old.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten().rev();
    let before: BTreeMap<_, _> = before.map(|port| (identity(port), port.get("nodePort"))).collect();
    let ports = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if let Some(Some(number)) = before.get(&identity(port)) {
            default(port, "nodePort", || (*number).clone());
        }
    }
}

/// A Service that becomes a mere name gives up its addresses, unless the writer changed those too.
fn drop_addresses(new: &mut Value, old: &Value) {
    drop_node_ports(new, old);
    let Some(spec) = new["spec"].as_object_mut() else { return };
    let same = |field: &str| spec.get(field).is_none_or(|value| Some(value) == old["spec"].get(field));
    if same("clusterIP") && same("clusterIPs") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    spec.remove("ipFamilies");
    spec.remove("ipFamilyPolicy");
    if spec.get("internalTrafficPolicy") == old["spec"].get("internalTrafficPolicy") {
        spec.remove("internalTrafficPolicy");
    }
}

/// A Service that moves back inside gives up what it had on the nodes, unless the writer changed that too.
fn drop_node_ports(new: &mut Value, old: &Value) {
    let before = old.pointer("/spec/ports").cloned().unwrap_or_default();
    for (index, port) in
        new.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        if port.get("nodePort") == before.get(index).and_then(|port| port.get("nodePort"))
            && let Some(port) = port.as_object_mut()
        {
            port.remove("nodePort");
        }
    }
    if let Some(spec) = new["spec"].as_object_mut() {
        for field in ["externalTrafficPolicy", "allocateLoadBalancerNodePorts", "healthCheckNodePort"] {
            if spec.get(field) == old["spec"].get(field) {
                spec.remove(field);
            }
        }
    }
}

/// What is wrong with a Service.
fn validate(new: &Value, old: Option<&Value>) -> Causes {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    let kind = text(spec, "/type");
    if list(spec, "ports").is_empty() && kind != "ExternalName" && text(spec, "/clusterIP") != "None" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if matches!(kind, "LoadBalancer" | "NodePort") && text(spec, "/clusterIP") == "None" {
        let why = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), why));
    }
    if kind == "ExternalName" {
        let refused = "may not be set for ExternalName services";
        if !list(spec, "clusterIPs").is_empty() || !text(spec, "/clusterIP").is_empty() {
            causes.push(Cause::forbidden("spec.clusterIPs", refused));
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if spec.get(field).is_some() {
                causes.push(Cause::forbidden(at("spec", field), refused));
            }
        }
        let name = text(spec, "/externalName");
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() {
            causes.push(Cause::required("spec.externalName", ""));
        } else {
            check::name(&mut causes, name, "spec.externalName", NameRule::Subdomain);
        }
    }
    ports(&mut causes, spec);
    check::labels(&mut causes, spec, "spec", "selector");
    check::required_one_of(&mut causes, spec, "spec", "sessionAffinity", &["ClientIP", "None"]);
    outside::affinity(&mut causes, spec);
    address(&mut causes, spec);
    outside::external_addresses(&mut causes, spec);
    check::one_of(&mut causes, spec, "spec", "type", &TYPES);
    outside::node_ports(&mut causes, spec);
    same_ports(&mut causes, spec);
    outside::balancer(&mut causes, spec, old.map(|old| &old["spec"]));
    outside::traffic(&mut causes, spec);
    let before = old.map_or("", |old| text(old, "/spec/clusterIP"));
    let now = text(spec, "/clusterIP");
    if !before.is_empty() && before != now && kind != "ExternalName" {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!([now]), "may not change once set"));
    }
    causes
}

fn address(causes: &mut Causes, spec: &Value) {
    let own = text(spec, "/clusterIP");
    if !own.is_empty() && own != "None" && own.parse::<std::net::IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!(own), why));
    }
}

fn ports(causes: &mut Causes, spec: &Value) {
    let ports = list(spec, "ports");
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let place = format!("spec.ports[{index}]");
        let name = text(port, "/name");
        if ports.len() > 1 && name.is_empty() {
            causes.push(Cause::required(at(&place, "name"), ""));
        } else if !name.is_empty() {
            check::name(causes, name, at(&place, "name"), NameRule::Label);
            if !names.insert(name) {
                causes.push(check::duplicate(at(&place, "name"), name));
            }
        }
        number(causes, &port["port"], at(&place, "port"));
        check::required_one_of(causes, port, &place, "protocol", &["SCTP", "TCP", "UDP"]);
        match &port["targetPort"] {
            Value::String(name) => {
                let wrong = port_name_errors(name).into_iter();
                causes.extend(wrong.map(|why| Cause::invalid(at(&place, "targetPort"), &json!(name), why)));
            }
            target => number(causes, target, at(&place, "targetPort")),
        }
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            check::qualified(causes, protocol, at(&place, "appProtocol"));
        }
    }
}

/// No two ports are one.
fn same_ports(causes: &mut Causes, spec: &Value) {
    let ports = list(spec, "ports");
    let mut seen: BTreeSet<(Option<i64>, &str)> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        if !seen.insert((port["port"].as_i64(), text(port, "/protocol"))) {
            let (protocol, number) = (&port["protocol"], &port["port"]);
            causes.push(Cause {
                reason: "FieldValueDuplicate".into(),
                message: format!(
                    "Duplicate value: {{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\
                     \"TargetPort\":0,\"NodePort\":0}}"
                ),
                field: format!("spec.ports[{index}]"),
            });
        }
    }
}

fn number(causes: &mut Causes, port: &Value, field: String) {
    let port = port.as_i64().unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        causes.push(Cause::invalid(field, &json!(port), "must be between 1 and 65535, inclusive"));
    }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = cells::list(object, "/spec/ports").iter().map(|port| {
        let (number, node) = (cells::number(port, "/port"), cells::number(port, "/nodePort"));
        let protocol = text(port, "/protocol");
        if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
    });
    let address = cells::list(object, "/spec/clusterIPs").first().and_then(Value::as_str);
    vec![
        cells::name(object),
        json!(text(object, "/spec/type")),
        cells::or_none(address.unwrap_or_default()),
        json!(external(object)),
        cells::or_none(&cells::joined(ports)),
        cells::age(object, now),
        json!(cells::labels(object.pointer("/spec/selector"))),
    ]
}

fn external(service: &Value) -> String {
    let own: Vec<String> =
        cells::list(service, "/spec/externalIPs").iter().map(|one| cells::plain(Some(one))).collect();
    match text(service, "/spec/type") {
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let mut all = cells::load_balancers(service);
            all.extend(own);
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        _ if own.is_empty() => "<none>".into(),
        _ => own.join(","),
    }
}
