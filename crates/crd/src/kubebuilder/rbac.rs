//! What a project's role permits, and what of it Windlass would not compute by itself.

use std::path::Path;

use serde_json::Value;

use super::{Error, GoKind, Project, documents};

/// What may be done to one resource, or to some URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The namespace of the Role; none for the whole cluster.
    pub namespace: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource, such as `pods` or `pods/exec`; empty for URLs.
    pub resource: String,
    /// The names of objects; all of them where this is empty.
    pub names: Vec<String>,
    /// URLs that are no resources.
    pub urls: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

const READ: [&str; 3] = ["get", "list", "watch"];
const OWN: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];
/// Finalizers are written by patches of the object.
const RECONCILE: [&str; 5] = ["get", "list", "watch", "update", "patch"];

pub(super) fn read(path: &Path) -> Result<Vec<Permission>, Error> {
    let mut found: Vec<Permission> = Vec::new();
    for document in documents(path)? {
        if !matches!(document["kind"].as_str(), Some("ClusterRole" | "Role")) {
            continue;
        }
        let namespace = (document["kind"] == "Role").then(|| {
            document.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default().to_owned()
        });
        for rule in document["rules"].as_array().into_iter().flatten() {
            let list = |key: &str| -> Vec<String> {
                rule[key]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            };
            let (names, verbs) = (list("resourceNames"), list("verbs"));
            if !list("nonResourceURLs").is_empty() {
                let urls = list("nonResourceURLs");
                found.push(Permission { urls, verbs: verbs.clone(), ..Permission::default() });
            }
            for group in list("apiGroups") {
                for resource in list("resources") {
                    found.push(Permission {
                        namespace: namespace.clone(),
                        group: group.clone(),
                        resource,
                        names: names.clone(),
                        urls: Vec::new(),
                        verbs: verbs.clone(),
                    });
                }
            }
        }
    }
    Ok(found)
}

/// The permissions, without the verbs that follow from the controllers.
pub(super) fn beyond(project: &Project) -> Vec<Permission> {
    let mut left = Vec::new();
    for permission in &project.permissions {
        let mut permission = permission.clone();
        permission.verbs.retain(|verb| !is_computed(project, &permission.group, &permission.resource, verb));
        if !permission.verbs.is_empty() {
            left.push(permission);
        }
    }
    left
}

fn is_computed(project: &Project, group: &str, resource: &str, verb: &str) -> bool {
    let events =
        resource == "events" && ["", "events.k8s.io"].contains(&group) && ["create", "patch"].contains(&verb);
    let leases = resource == "leases" && group == "coordination.k8s.io";
    if events || leases {
        return true;
    }
    let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let mut controllers = project.resources.iter().filter(|resource| resource.has_controller);
    controllers.any(|own| {
        if own.plural == name && own.api_group() == group {
            return matches!(subresource, "status" | "finalizers")
                || (subresource.is_empty() && RECONCILE.contains(&verb));
        }
        let is = |kind: &GoKind| {
            subresource.is_empty()
                && plural(&kind.kind) == name
                && kind.group().is_none_or(|known| known == group)
        };
        own.controller.as_ref().is_some_and(|file| {
            (OWN.contains(&verb) && file.owns.iter().any(is))
                || (READ.contains(&verb) && file.watches.iter().any(is))
        })
    })
}

/// The plural as Kubernetes' own code guesses it.
pub(super) fn plural(kind: &str) -> String {
    let name = kind.to_lowercase();
    if name == "endpoints" {
        return name;
    }
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| name.ends_with(end)) {
        return name + "es";
    }
    match name.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => name + "s",
    }
}
