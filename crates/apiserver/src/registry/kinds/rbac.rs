//! Roles and bindings. Cluster roles may be made of others.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, small, text,
};
use crate::{error::Cause, registry::metadata::NameRule};

/// The group of this room.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Role.
static ROLE: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    defaults: |role| default(role, "rules", || Value::Null),
    validate: |new, _| rules(new, true),
    creates_on_update: true,
    ..Strategy::PLAIN
};

/// ClusterRole.
static CLUSTER_ROLE: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    defaults: ROLE.defaults,
    validate: |new, _| {
        let mut causes = rules(new, false);
        aggregation(&mut causes, new);
        causes
    },
    creates_on_update: true,
    after_write: |registry, _| registry.aggregate_roles(),
    after_removal: |registry, _, _| registry.aggregate_roles(),
    ..Strategy::PLAIN
};

/// RoleBinding.
static ROLE_BINDING: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    defaults: default_binding,
    validate: |new, old| binding(new, old, &["Role", "ClusterRole"]),
    creates_on_update: true,
    row: Some(row),
    ..Strategy::PLAIN
};

/// ClusterRoleBinding.
static CLUSTER_ROLE_BINDING: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    defaults: default_binding,
    validate: |new, old| binding(new, old, &["ClusterRole"]),
    creates_on_update: true,
    row: Some(row),
    ..Strategy::PLAIN
};

/// The kinds of the group.
pub(super) fn kind(plural: &str) -> &'static Strategy {
    match plural {
        "roles" => &ROLE,
        "clusterroles" => &CLUSTER_ROLE,
        "rolebindings" => &ROLE_BINDING,
        "clusterrolebindings" => &CLUSTER_ROLE_BINDING,
        _ => &small::PLAIN,
    }
}

fn default_binding(binding: &mut Value) {
    if text(binding, "/roleRef/apiGroup").is_empty() {
        binding["roleRef"]["apiGroup"] = json!(GROUP);
    }
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(text(subject, "/kind"), "User" | "Group") {
            default(subject, "apiGroup", || json!(GROUP));
        }
    }
}

/// A role that is made of others says of which.
fn aggregation(causes: &mut Causes, role: &Value) {
    let Some(rule) = role.get("aggregationRule") else { return };
    let path = "aggregationRule.clusterRoleSelectors";
    if list(rule, "clusterRoleSelectors").is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.push(Cause::required(path, why));
    }
    for (index, selector) in list(rule, "clusterRoleSelectors").iter().enumerate() {
        check::selector(causes, selector, &format!("{path}[{index}]"));
    }
}

fn rules(role: &Value, namespaced: bool) -> Causes {
    let mut causes = Vec::new();
    let all = list(role, "rules");
    for (index, rule) in all.iter().enumerate() {
        let place = format!("rules[{index}]");
        let urls = list(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let field = at(&place, "nonResourceURLs");
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(field, &rule["nonResourceURLs"], why));
            } else if ["apiGroups", "resources", "resourceNames"]
                .iter()
                .any(|name| !list(rule, name).is_empty())
            {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(field, &rule["nonResourceURLs"], why));
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            let why = "resource rules must supply at least one api group";
            causes.push(Cause::required(at(&place, "apiGroups"), why));
        }
        if list(rule, "resources").is_empty() {
            let why = "resource rules must supply at least one resource";
            causes.push(Cause::required(at(&place, "resources"), why));
        }
    }
    for (index, _) in all.iter().enumerate().filter(|(_, rule)| list(rule, "verbs").is_empty()) {
        causes.push(Cause::required(format!("rules[{index}].verbs"), ""));
    }
    causes
}

fn binding(new: &Value, old: Option<&Value>, kinds: &[&str]) -> Causes {
    let mut causes = Vec::new();
    let reference = &new["roleRef"];
    if text(reference, "/apiGroup") != GROUP {
        causes.push(Cause::not_supported("roleRef.apiGroup", text(reference, "/apiGroup"), &[GROUP]));
    }
    if !kinds.contains(&text(reference, "/kind")) {
        causes.push(Cause::not_supported("roleRef.kind", text(reference, "/kind"), kinds));
    }
    check::required(&mut causes, reference, "roleRef", "name");
    for (index, subject) in list(new, "subjects").iter().enumerate() {
        self::subject(&mut causes, subject, &format!("subjects[{index}]"), kinds.len() > 1);
    }
    if old.is_some_and(|old| old["roleRef"] != *reference) {
        let (group, kind, name) = (&reference["apiGroup"], &reference["kind"], &reference["name"]);
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}: field is immutable"
            ),
            field: "roleRef".into(),
        });
    }
    causes
}

fn subject(causes: &mut Causes, subject: &Value, place: &str, namespaced: bool) {
    let (kind, name, group) = (text(subject, "/kind"), text(subject, "/name"), text(subject, "/apiGroup"));
    let allowed: &[&str] = match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                check::name(causes, name, at(place, "name"), NameRule::Subdomain);
            }
            if !namespaced && text(subject, "/namespace").is_empty() {
                causes.push(Cause::required(at(place, "namespace"), ""));
            }
            &[""]
        }
        "User" | "Group" => &[GROUP],
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(at(place, "kind"), other, &kinds));
            return;
        }
    };
    if !allowed.contains(&group) {
        causes.push(Cause::not_supported(at(place, "apiGroup"), group, allowed));
    }
    if name.is_empty() {
        causes.push(Cause::required(at(place, "name"), ""));
    }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
    let subjects = |kind: &str| {
        let found = cells::list(object, "/subjects").iter().filter(|one| text(one, "/kind") == kind);
        let names: Vec<String> = found
            .map(|one| match (kind, text(one, "/namespace")) {
                ("ServiceAccount", namespace) => format!("{namespace}/{}", text(one, "/name")),
                _ => text(one, "/name").to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        cells::name(object),
        json!(role),
        cells::age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
