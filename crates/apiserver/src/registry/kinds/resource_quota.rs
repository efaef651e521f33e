//! ResourceQuotas.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{Causes, entries, list},
};
use crate::error::Cause;

/// ResourceQuota.
pub(super) static RESOURCE_QUOTA: Strategy = Strategy {
    validate: |new, _| validate(&new["spec"]),
    returns_deleted: true,
    row: Some(row),
    ..Strategy::PLAIN
};

/// Resources that a quota can bound without a prefix.
const RESOURCES: [&str; 14] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "requests.cpu",
    "limits.cpu",
];

fn validate(spec: &Value) -> Causes {
    let mut causes = Vec::new();
    for (name, amount) in entries(spec, "hard") {
        let field = format!("spec.hard[{name}]");
        let known = RESOURCES.contains(&name.as_str())
            || ["requests.", "limits.", "count/"].iter().any(|prefix| name.starts_with(prefix));
        if !known && !name.contains('/') {
            let why = "must be a standard resource type or fully qualified";
            causes.push(Cause::invalid(&*field, &json!(name), why));
            causes.push(Cause::invalid(&*field, &json!(name), "must be a standard resource for quota"));
        }
        let amount = cells::plain(Some(amount));
        if amount.starts_with('-') {
            causes.push(Cause::invalid(field, &json!(amount), "must be greater than or equal to 0"));
        }
    }
    let scopes = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    ];
    if list(spec, "scopes").iter().any(|scope| !scopes.contains(&scope.as_str().unwrap_or_default())) {
        causes.push(Cause::invalid("spec.scopes", &spec["scopes"], "unsupported scope"));
    }
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let hard = object.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, most) in hard {
        let used = object.pointer("/status/used").and_then(|used| used.get(resource));
        let used = used.map_or("0".to_owned(), |used| cells::plain(Some(used)));
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {used}/{}", cells::plain(Some(most))));
    }
    vec![cells::name(object), json!(requests.join(", ")), json!(limits.join(", ")), cells::age(object, now)]
}
