//! Nobody may give away what they do not have: the check of roles and bindings.

use std::collections::BTreeSet;

use super::rbac::Rule;

/// What the rules `wanted` allow beyond the rules `held`, as the real server words it; empty if nothing.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let uncovered: Vec<Rule> =
        wanted.iter().flat_map(single).filter(|rule| !held.iter().any(|own| covers(own, rule))).collect();
    let texts: BTreeSet<String> = compact(uncovered).iter().map(describe).collect();
    texts.into_iter().collect()
}

/// A rule as rules for one verb, one resource and one name each.
fn single(rule: &Rule) -> Vec<Rule> {
    let mut out = Vec::new();
    let names: Vec<Vec<String>> = if rule.resource_names.is_empty() {
        vec![Vec::new()]
    } else {
        rule.resource_names.iter().map(|name| vec![name.clone()]).collect()
    };
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                out.extend(names.iter().map(|name| Rule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    resource_names: name.clone(),
                    paths: Vec::new(),
                }));
            }
        }
    }
    for path in &rule.paths {
        for verb in &rule.verbs {
            out.push(Rule { verbs: vec![verb.clone()], paths: vec![path.clone()], ..Rule::default() });
        }
    }
    out
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == value)
}

fn all_of(list: &[String], wanted: &[String], wildcard: &str) -> bool {
    has(list, wildcard) || wanted.iter().all(|one| has(list, one))
}

fn covers(own: &Rule, rule: &Rule) -> bool {
    let resource = |one: &String| {
        let part = one.split_once('/').map(|(_, part)| format!("*/{part}"));
        has(&own.resources, one) || part.is_some_and(|part| has(&own.resources, &part))
    };
    let path = |one: &String| {
        own.paths.iter().any(|known| {
            known == one || (known.ends_with('*') && one.starts_with(known.trim_end_matches('*')))
        })
    };
    let names = own.resource_names.is_empty()
        || (!rule.resource_names.is_empty()
            && rule.resource_names.iter().all(|one| has(&own.resource_names, one)));
    all_of(&own.verbs, &rule.verbs, "*")
        && all_of(&own.api_groups, &rule.api_groups, "*")
        && (has(&own.resources, "*") || rule.resources.iter().all(resource))
        && rule.paths.iter().all(path)
        && names
}

/// Joins the verbs of rules that are about the same.
fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut out: Vec<Rule> = Vec::new();
    for rule in rules {
        let same = |known: &&mut Rule| {
            rule.paths.is_empty()
                && known.api_groups == rule.api_groups
                && known.resources == rule.resources
                && known.resource_names == rule.resource_names
        };
        match out.iter_mut().find(same) {
            Some(known) => {
                let new: Vec<String> =
                    rule.verbs.into_iter().filter(|verb| !has(&known.verbs, verb)).collect();
                known.verbs.extend(new);
            }
            None => out.push(rule),
        }
    }
    out
}

fn describe(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// A list as Go prints it with `%q`.
pub(crate) fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", items.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: serde_json::Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_held_covers_what_is_given() {
        let held = [
            rule(json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/status"]})),
            rule(json!({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"], "resourceNames": ["a"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]})),
        ];
        let missing = |value| missing(&held, &[rule(value)]);
        assert!(
            missing(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes/status"]}))
                .is_empty()
        );
        assert!(
            missing(
                json!({"verbs": ["x"], "apiGroups": ["apps"], "resources": ["d"], "resourceNames": ["a"]})
            )
            .is_empty()
        );
        assert!(missing(json!({"verbs": ["get"], "nonResourceURLs": ["/apis/apps"]})).is_empty());
        assert_eq!(
            missing(json!({"verbs": ["get", "watch", "delete"], "apiGroups": [""], "resources": ["pods"]})),
            ["{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}"]
        );
        assert_eq!(
            missing(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["d"]})),
            ["{APIGroups:[\"apps\"], Resources:[\"d\"], Verbs:[\"get\"]}"],
            "every name is more than one name"
        );
        assert_eq!(
            missing(json!({"verbs": ["*"], "nonResourceURLs": ["*"]})),
            ["{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"]
        );
    }
}
