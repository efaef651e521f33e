//! FlowSchemas and PriorityLevelConfigurations.

mod level;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at, list},
    default, text,
};
use crate::{
    error::Cause,
    registry::{metadata::NameRule, strategy::Generation},
};

pub(super) use level::PRIORITY_LEVEL;

/// FlowSchema.
pub(super) static FLOW_SCHEMA: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |schema| {
        default(schema, "spec", || json!({}));
        if schema["spec"]["matchingPrecedence"].as_i64().is_none_or(|precedence| precedence == 0) {
            schema["spec"]["matchingPrecedence"] = json!(1000);
        }
    },
    validate: |new, _| {
        let mut causes = Vec::new();
        validate(&mut causes, new);
        conditions(&mut causes, new);
        causes
    },
    validate_status: |new| {
        let mut causes = Vec::new();
        conditions(&mut causes, new);
        causes
    },
    row: Some(flow_schema),
    ..Strategy::PLAIN
};

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

fn validate(causes: &mut Causes, schema: &Value) {
    let spec = &schema["spec"];
    let precedence = spec["matchingPrecedence"].as_i64().unwrap_or_default();
    let mut refuse =
        |why: &str| causes.push(Cause::invalid("spec.matchingPrecedence", &json!(precedence), why));
    match precedence {
        ..=0 => refuse("must be a positive value"),
        10_001.. => refuse("must not be greater than 10000"),
        1 if text(schema, "/metadata/name") != "exempt" => {
            refuse("only the schema named 'exempt' may have matchingPrecedence 1");
        }
        _ => {}
    }
    if let Some(method) = spec.get("distinguisherMethod") {
        let kind = text(method, "/type");
        if !["ByNamespace", "ByUser"].contains(&kind) {
            causes.push(Cause::not_supported(
                "spec.distinguisherMethod.type",
                &method.to_string(),
                &["ByNamespace", "ByUser"],
            ));
        }
    }
    let level = text(spec, "/priorityLevelConfiguration/name");
    if level.is_empty() {
        let why = "must reference a priority level";
        causes.push(Cause::required("spec.priorityLevelConfiguration.name", why));
    } else {
        check::name(causes, level, "spec.priorityLevelConfiguration.name", NameRule::Subdomain);
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        rule_errors(causes, rule, &format!("spec.rules[{index}]"));
    }
}

fn rule_errors(causes: &mut Causes, rule: &Value, path: &str) {
    if list(rule, "subjects").is_empty() {
        let why = "subjects must contain at least one value";
        causes.push(Cause::required(at(path, "subjects"), why));
    }
    for (index, subject) in list(rule, "subjects").iter().enumerate() {
        subject_errors(causes, subject, &format!("{path}.subjects[{index}]"));
    }
    let (resources, others) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.push(Cause::required(path, why));
    }
    for (index, rule) in resources.iter().enumerate() {
        resource_rule(causes, rule, &format!("{path}.resourceRules[{index}]"));
    }
    for (index, rule) in others.iter().enumerate() {
        let place = format!("{path}.nonResourceRules[{index}]");
        verbs(causes, rule, &place);
        members(
            causes,
            rule,
            &place,
            "nonResourceURLs",
            "nonResourceURLs must contain at least one value",
            "if '*' is present, must not specify other non-resource URLs",
        );
        if !wild(rule, "nonResourceURLs") {
            for (index, url) in list(rule, "nonResourceURLs").iter().enumerate() {
                let place = format!("{place}.nonResourceURLs[{index}]");
                url_errors(causes, url.as_str().unwrap_or_default(), place);
            }
        }
    }
}

fn subject_errors(causes: &mut Causes, subject: &Value, path: &str) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "/kind");
    let Some((_, own)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        causes.push(Cause::not_supported(at(path, "kind"), kind, &["Group", "ServiceAccount", "User"]));
        return;
    };
    let place = at(path, own);
    match subject.get(*own) {
        None => {
            causes.push(Cause::required(place, &format!("{own} is required when subject kind is '{kind}'")));
        }
        Some(named) => {
            let name = text(named, "/name");
            if name.is_empty() {
                causes.push(Cause::required(at(&place, "name"), ""));
            } else if *own == "serviceAccount" && name != "*" {
                check::name(causes, name, at(&place, "name"), NameRule::Subdomain);
            }
            if *own == "serviceAccount" {
                match text(named, "/namespace") {
                    "" => {
                        let why = "must specify namespace for service account";
                        causes.push(Cause::required(at(&place, "namespace"), why));
                    }
                    namespace => check::name(causes, namespace, at(&place, "namespace"), NameRule::Label),
                }
            }
        }
    }
    for (kind, field) in KINDS.iter().filter(|(known, field)| *known != kind && subject.get(field).is_some())
    {
        let why = format!("{field} is forbidden when subject kind is not '{kind}'");
        causes.push(Cause::forbidden(at(path, field), &why));
    }
}

fn wild(rule: &Value, field: &str) -> bool {
    list(rule, field).iter().any(|one| one == "*")
}

/// A list that must say something, and either everything or some things.
fn members(causes: &mut Causes, rule: &Value, path: &str, field: &str, empty: &str, both: &str) {
    let members = list(rule, field);
    if members.is_empty() {
        causes.push(Cause::required(at(path, field), empty));
    } else if members.len() > 1 && wild(rule, field) {
        causes.push(Cause::invalid(at(path, field), &rule[field], both));
    }
}

fn verbs(causes: &mut Causes, rule: &Value, path: &str) {
    let empty = "verbs must contain at least one value";
    members(causes, rule, path, "verbs", empty, "if '*' is present, must not specify other verbs");
    let known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if !wild(rule, "verbs") && !list(rule, "verbs").iter().all(known) {
        causes.push(Cause::unsupported_value(at(path, "verbs"), &rule["verbs"], &VERBS));
    }
}

fn resource_rule(causes: &mut Causes, rule: &Value, path: &str) {
    verbs(causes, rule, path);
    members(
        causes,
        rule,
        path,
        "apiGroups",
        "resource rules must supply at least one api group",
        "if '*' is present, must not specify other api groups",
    );
    members(
        causes,
        rule,
        path,
        "resources",
        "resource rules must supply at least one resource",
        "if '*' is present, must not specify other resources",
    );
    let namespaces = list(rule, "namespaces");
    if namespaces.is_empty() && rule["clusterScope"] != true {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        causes.push(Cause::required(at(path, "namespaces"), why));
    } else if wild(rule, "namespaces") {
        if namespaces.len() > 1 {
            let why = "if '*' is present, must not specify other namespaces";
            causes.push(Cause::invalid(at(path, "namespaces"), &rule["namespaces"], why));
        }
    } else {
        for (index, namespace) in namespaces.iter().enumerate() {
            let name = namespace.as_str().unwrap_or_default();
            if let Some(why) = crate::registry::metadata::name_error(name, NameRule::Label) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                causes.push(Cause::invalid(format!("{path}.namespaces[{index}]"), namespace, why));
            }
        }
    }
}

fn url_errors(causes: &mut Causes, url: &str, path: String) {
    let mut refuse = |why: &str| causes.push(Cause::invalid(path.clone(), &json!(url), why));
    if url.is_empty() {
        refuse("must not be empty");
    } else if url == "/" {
    } else if !url.starts_with('/') {
        refuse("must start with slash");
    } else if url.contains(' ') {
        refuse("must not contain white-space");
    } else if url.contains("//") {
        refuse("must not contain double slash");
    } else if url.split_once('*').is_some_and(|(before, after)| !after.is_empty() || !before.ends_with('/')) {
        refuse("wildcard can only do suffix matching");
    }
}

/// The conditions of either kind.
fn conditions(causes: &mut Causes, object: &Value) {
    let mut seen = BTreeSet::new();
    for (index, condition) in list(&object["status"], "conditions").iter().enumerate() {
        let (kind, place) = (text(condition, "/type"), format!("status.conditions[{index}].type"));
        if !seen.insert(kind) {
            causes.push(check::duplicate(place.clone(), kind));
        }
        if kind.is_empty() {
            causes.push(Cause::required(place, ""));
        }
    }
}

fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    let dangling =
        cells::list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Dangling");
    vec![
        cells::name(object),
        json!(text(object, "/spec/priorityLevelConfiguration/name")),
        json!(cells::number(object, "/spec/matchingPrecedence")),
        cells::or(text(object, "/spec/distinguisherMethod/type"), "<none>"),
        cells::age(object, now),
        json!(dangling.map_or("?", |one| text(one, "/status"))),
    ]
}
