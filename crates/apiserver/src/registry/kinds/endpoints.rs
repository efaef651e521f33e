//! Endpoints, which EndpointSlices have replaced.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{Causes, list},
    default, text,
};
use crate::error::Cause;

/// Endpoints.
pub(super) static ENDPOINTS: Strategy = Strategy {
    defaults,
    validate: |new, _| validate(new),
    creates_on_update: true,
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    row: Some(row),
    ..Strategy::PLAIN
};

fn defaults(endpoints: &mut Value) {
    for subset in endpoints.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
        for port in subset.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            default(port, "protocol", || json!("TCP"));
        }
    }
}

fn validate(new: &Value) -> Causes {
    let mut causes = Vec::new();
    for (index, subset) in list(new, "subsets").iter().enumerate() {
        let place = format!("subsets[{index}]");
        let ports = list(subset, "ports");
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            let why = "must specify `addresses` or `notReadyAddresses`";
            causes.push(Cause::required(&*place, why));
        }
        for (index, port) in ports.iter().enumerate() {
            if ports.len() > 1 && text(port, "/name").is_empty() {
                causes.push(Cause::required(format!("{place}.ports[{index}].name"), ""));
            }
        }
    }
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut found = Vec::new();
    for subset in cells::list(object, "/subsets") {
        let addresses = cells::list(subset, "/addresses");
        let ports = cells::list(subset, "/ports");
        if ports.is_empty() {
            found.extend(addresses.iter().map(|one| text(one, "/ip").to_owned()));
        }
        for port in ports {
            let port = cells::number(port, "/port");
            found.extend(addresses.iter().map(|one| match text(one, "/ip") {
                six if six.contains(':') => format!("[{six}]:{port}"),
                four => format!("{four}:{port}"),
            }));
        }
    }
    let none = cells::list(object, "/subsets").is_empty();
    let shown = if none { "<none>".to_owned() } else { cells::some_of(found, 3, ",") };
    vec![cells::name(object), json!(shown), cells::age(object, now)]
}
