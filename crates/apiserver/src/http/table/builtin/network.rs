//! Services and what leads to them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    age,
    cells::{joined, labels, list, name, number, or_none, plain, selector, some_of, text},
};

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = list(object, "/spec/ports").iter().map(|port| {
        let (number, node) = (number(port, "/port"), number(port, "/nodePort"));
        let protocol = text(port, "/protocol");
        if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
    });
    let address = list(object, "/spec/clusterIPs").first().and_then(Value::as_str);
    vec![
        name(object),
        json!(text(object, "/spec/type")),
        or_none(address.unwrap_or_default()),
        json!(external(object)),
        or_none(&joined(ports)),
        age(object, now),
        json!(labels(object.pointer("/spec/selector"))),
    ]
}

fn external(service: &Value) -> String {
    let own: Vec<String> = list(service, "/spec/externalIPs").iter().map(|one| plain(Some(one))).collect();
    match text(service, "/spec/type") {
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let mut all = balanced(service);
            all.extend(own);
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        _ if own.is_empty() => "<none>".into(),
        _ => own.join(","),
    }
}

/// Where a load balancer can be reached.
fn balanced(object: &Value) -> Vec<String> {
    let places = list(object, "/status/loadBalancer/ingress").iter().map(|one| match text(one, "/ip") {
        "" => text(one, "/hostname").to_owned(),
        address => address.to_owned(),
    });
    let mut places: Vec<String> = places.filter(|one| !one.is_empty()).collect();
    places.sort();
    places.dedup();
    places
}

pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut found = Vec::new();
    for subset in list(object, "/subsets") {
        let addresses = list(subset, "/addresses");
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            found.extend(addresses.iter().map(|one| text(one, "/ip").to_owned()));
        }
        for port in ports {
            let port = number(port, "/port");
            found.extend(addresses.iter().map(|one| match text(one, "/ip") {
                six if six.contains(':') => format!("[{six}]:{port}"),
                four => format!("{four}:{port}"),
            }));
        }
    }
    let none = list(object, "/subsets").is_empty();
    let shown = if none { "<none>".to_owned() } else { some_of(found, 3, ",") };
    vec![name(object), json!(shown), age(object, now)]
}

/// Up to three, or `<unset>`.
fn few(values: Vec<String>) -> Value {
    if values.is_empty() { json!("<unset>") } else { json!(some_of(values, 3, ",")) }
}

pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = list(object, "/ports").iter().map(|port| match (port.get("port"), port.get("name")) {
        (Some(number), _) if number.is_number() => number.to_string(),
        (_, Some(Value::String(name))) => name.clone(),
        _ => "*".into(),
    });
    let addresses = list(object, "/endpoints").iter().flat_map(|one| list(one, "/addresses"));
    vec![
        name(object),
        json!(text(object, "/addressType")),
        few(ports.collect()),
        few(addresses.map(|one| plain(Some(one))).collect()),
        age(object, now),
    ]
}

pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let rules = list(object, "/spec/rules");
    let hosts: Vec<String> =
        rules.iter().map(|rule| text(rule, "/host").to_owned()).filter(|host| !host.is_empty()).collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { some_of(hosts, 3, ",") };
    let ports = if list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![
        name(object),
        or_none(text(object, "/spec/ingressClassName")),
        json!(hosts),
        json!(balanced(object).join(",")),
        json!(ports),
        age(object, now),
    ]
}

pub(super) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let default =
        text(object, "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true";
    let shown = text(object, "/metadata/name");
    let parameters = object.pointer("/spec/parameters").map_or("<none>".to_owned(), |parameters| {
        let kind = match text(parameters, "/apiGroup") {
            "" => text(parameters, "/kind").to_owned(),
            group => format!("{}.{group}", text(parameters, "/kind")),
        };
        format!("{kind}/{}", text(parameters, "/name"))
    });
    vec![
        json!(if default { format!("{shown} (default)") } else { shown.to_owned() }),
        json!(text(object, "/spec/controller")),
        json!(parameters),
        age(object, now),
    ]
}

pub(super) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(selector(object.pointer("/spec/podSelector"))), age(object, now)]
}
