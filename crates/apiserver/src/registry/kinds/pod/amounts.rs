//! How much a container may ask for, and of what.

use serde_json::{Value, json};

use crate::{
    error::Cause,
    registry::kinds::check::{self, Causes, at, entries},
    schema::quantity,
};

/// Resources that Kubernetes itself knows by a name without a domain.
const STANDARD: [&str; 18] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
];

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether Kubernetes itself counts the resource.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.")
}

/// Checks requests and limits of a container.
pub(in crate::registry::kinds) fn resources(causes: &mut Causes, resources: &Value, place: &str) {
    let amount = |kind: &str, name: &str| {
        resources.get(kind).and_then(|all| all.get(name)).and_then(|amount| quantity::parse(&plain(amount)))
    };
    let (mut computes, mut huge) = (false, false);
    for (name, limit) in entries(resources, "limits") {
        resource(causes, name, limit, &format!("{place}.limits[{name}]"));
        huge |= is_huge_page(name);
        computes |= matches!(name.as_str(), "cpu" | "memory");
    }
    for (name, request) in entries(resources, "requests") {
        resource(causes, name, request, &format!("{place}.requests[{name}]"));
        huge |= is_huge_page(name);
        computes |= matches!(name.as_str(), "cpu" | "memory");
        let overcommits = is_native(name) && !is_huge_page(name);
        let Some(most) = amount("limits", name) else {
            if !overcommits && resources["limits"].get(name).is_none() {
                let why = "Limit must be set for non overcommitable resources";
                causes.push(Cause::required(at(place, "limits"), why));
            }
            continue;
        };
        let Some(wanted) = amount("requests", name) else { continue };
        let limit = plain(&resources["limits"][name]);
        let why = if wanted != most && !overcommits {
            format!("must be equal to {name} limit of {limit}")
        } else if wanted > most {
            format!("must be less than or equal to {name} limit of {limit}")
        } else {
            continue;
        };
        causes.push(Cause::invalid(format!("{place}.requests"), &json!(plain(request)), why));
    }
    if huge && !computes {
        causes.push(Cause::forbidden(place, "HugePages require cpu or memory"));
    }
}

fn resource(causes: &mut Causes, name: &str, amount: &Value, place: &str) {
    check::qualified(causes, name, place);
    let mut refuse = |why: &str| causes.push(Cause::invalid(place, &json!(name), why));
    if name.contains('/') {
        if !is_native(name) && name.starts_with("requests.") {
            refuse("doesn't follow extended resource name standard");
        }
    } else {
        if !STANDARD.contains(&name) && !is_huge_page(name) {
            refuse("must be a standard resource type or fully qualified");
        }
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            refuse("must be a standard resource for containers");
        }
    }
    let shown = plain(amount);
    if quantity::parse(&shown) < quantity::parse("0") {
        causes.push(Cause::invalid(place, &json!(shown), "must be greater than or equal to 0"));
    }
    let whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) || text.ends_with('i');
    if is_extended(name) && !whole(&shown) && shown.ends_with('m') {
        causes.push(Cause::invalid(place, &json!(shown), "must be an integer"));
    }
}

/// A quantity as text; clients also write plain numbers.
fn plain(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}
