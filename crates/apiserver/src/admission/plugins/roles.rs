//! Roles and bindings: nobody gives away what they do not have, unless they may `escalate` or `bind`.

use serde_json::{Value, json};

use crate::{
    admission::Attributes,
    auth::{
        MASTERS,
        escalation::{missing, quoted},
        rbac::{Action, GROUP, Rule},
    },
    error::{Error, Result},
    registry::Registry,
    store::{Key, TableName},
};

fn rules_of(role: &Value) -> Vec<Rule> {
    serde_json::from_value(role["rules"].clone()).unwrap_or_default()
}

/// Checks a role or a binding that is about to be written.
pub(super) fn check(
    registry: &Registry,
    request: &Attributes<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<()> {
    let masters = request.user.groups.iter().any(|group| group == MASTERS);
    if masters || old.is_some_and(|old| differs_only_for_deletion(new, old)) {
        return Ok(());
    }
    match &*request.target.resource.plural {
        "roles" | "clusterroles" => check_role(registry, request, new),
        _ => check_binding(registry, request, new),
    }
}

/// Finalizers and owners may change on objects whose rules nobody could write any more.
fn differs_only_for_deletion(new: &Value, old: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
        object
    };
    stripped(new) == stripped(old)
}

fn allowed(registry: &Registry, request: &Attributes<'_>, verb: &str, resource: &str, name: &str) -> bool {
    let namespace = request.target.namespace;
    let action = Action::Resource { verb, group: GROUP, resource, namespace, name };
    registry.allows(request.user, action)
}

fn check_role(registry: &Registry, request: &Attributes<'_>, role: &Value) -> Result<()> {
    let plural = &request.target.resource.plural;
    if allowed(registry, request, "escalate", plural, &request.name) {
        return Ok(());
    }
    let all: Vec<Rule> = serde_json::from_value(json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]))
    .expect("these rules must decode");
    let held = registry.rules_for(request.user, request.target.namespace);
    if role["aggregationRule"].is_object() && !missing(&held, &all).is_empty() {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(Error::forbidden(request.target.resource.named(), &request.name, why));
    }
    refuse_missing(registry, request, &rules_of(role))
}

fn check_binding(registry: &Registry, request: &Attributes<'_>, binding: &Value) -> Result<()> {
    let reference = &binding["roleRef"];
    let name = reference["name"].as_str().unwrap_or_default();
    let (plural, namespace) = match reference["kind"].as_str() {
        Some("ClusterRole") => ("clusterroles", ""),
        _ => ("roles", request.target.namespace),
    };
    if allowed(registry, request, "bind", plural, name) {
        return Ok(());
    }
    let table = TableName { group: GROUP.into(), plural: plural.into() };
    let role = registry.store().get(&table, &Key::new(namespace, name));
    let role = role.and_then(|role| serde_json::from_slice::<Value>(&role.bytes).ok());
    let missing_role = || Error::not_found(request.target.resource.named(), name);
    refuse_missing(registry, request, &rules_of(&role.ok_or_else(missing_role)?))
}

fn refuse_missing(registry: &Registry, request: &Attributes<'_>, wanted: &[Rule]) -> Result<()> {
    let held = registry.rules_for(request.user, request.target.namespace);
    let beyond = missing(&held, wanted);
    if beyond.is_empty() {
        return Ok(());
    }
    let why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        request.user.name,
        quoted(&request.user.groups),
        beyond.join("\n")
    );
    Err(Error::forbidden(request.target.resource.named(), &request.name, why))
}
