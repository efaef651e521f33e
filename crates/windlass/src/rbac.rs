//! RBAC rules computed from what the controllers declare, so that they cannot drift from the code.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::object::Kind;

/// What a controller does with a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reconciles it: reads it, writes its status and its finalizers.
    Reconciles(Kind),
    /// Owns it: reads, creates, patches and deletes it.
    Owns(Kind),
    /// Only reads it.
    Reads(Kind),
}

impl Access {
    pub(crate) fn kind(&self) -> &Kind {
        match self {
            Self::Reconciles(kind) | Self::Owns(kind) | Self::Reads(kind) => kind,
        }
    }
}

const READ: [&str; 3] = ["get", "list", "watch"];

/// A rule for [`Controller::permits`](crate::Controller::permits).
///
/// ```
/// let rule = windlass::rbac::rule("", ["secrets"], ["get"]);
/// assert_eq!(rule.resources, Some(vec!["secrets".to_owned()]));
/// ```
pub fn rule<'a>(
    group: &str,
    resources: impl IntoIterator<Item = &'a str>,
    verbs: impl IntoIterator<Item = &'a str>,
) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources.into_iter().map(ToOwned::to_owned).collect()),
        verbs: verbs.into_iter().map(ToOwned::to_owned).collect(),
        ..PolicyRule::default()
    }
}

/// Gathers verbs per resource, and merges resources with equal verbs into one rule.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    verbs: BTreeMap<(String, String), BTreeSet<String>>,
    permits: Vec<PolicyRule>,
}

impl Rules {
    pub(crate) fn grant(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        let entry = self.verbs.entry((group.to_owned(), resource.to_owned())).or_default();
        entry.extend(verbs.iter().map(|verb| (*verb).to_owned()));
    }

    pub(crate) fn access(&mut self, access: &Access) {
        match access {
            Access::Reads(kind) => self.grant(&kind.group, &kind.plural, &READ),
            Access::Owns(kind) => {
                self.grant(&kind.group, &kind.plural, &READ);
                self.grant(&kind.group, &kind.plural, &["create", "patch", "delete"]);
            }
            Access::Reconciles(kind) => {
                self.grant(&kind.group, &kind.plural, &READ);
                // Finalizers are written to the object itself; its own subresource guards owner references.
                self.grant(&kind.group, &kind.plural, &["patch"]);
                self.grant(&kind.group, &format!("{}/status", kind.plural), &["patch"]);
                self.grant(&kind.group, &format!("{}/finalizers", kind.plural), &["update"]);
            }
        }
    }

    pub(crate) fn permit(&mut self, rules: &[PolicyRule]) {
        for rule in rules {
            let plain = rule.resource_names.is_none() && rule.non_resource_urls.is_none();
            match (&rule.api_groups, &rule.resources) {
                (Some(groups), Some(resources)) if plain => {
                    let verbs: Vec<&str> = rule.verbs.iter().map(String::as_str).collect();
                    for group in groups {
                        for resource in resources {
                            self.grant(group, resource, &verbs);
                        }
                    }
                }
                _ if self.permits.contains(rule) => {}
                _ => self.permits.push(rule.clone()),
            }
        }
    }

    /// The rules, ordered by group and resource; verbs in the usual order.
    pub(crate) fn finish(self) -> Vec<PolicyRule> {
        let mut merged: Vec<(String, Vec<String>, Vec<String>)> = Vec::new();
        for ((group, resource), verbs) in self.verbs {
            let verbs = ordered(verbs);
            match merged.iter_mut().find(|(g, _, v)| *g == group && *v == verbs) {
                Some((_, resources, _)) => resources.push(resource),
                None => merged.push((group, vec![resource], verbs)),
            }
        }
        let computed = merged.into_iter().map(|(group, resources, verbs)| PolicyRule {
            api_groups: Some(vec![group]),
            resources: Some(resources),
            verbs,
            ..PolicyRule::default()
        });
        computed.chain(self.permits).collect()
    }
}

fn ordered(verbs: BTreeSet<String>) -> Vec<String> {
    const ORDER: [&str; 8] =
        ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let place = |verb: &String| ORDER.iter().position(|known| known == verb).unwrap_or(ORDER.len());
    let mut verbs: Vec<String> = verbs.into_iter().collect();
    verbs.sort_by_key(place);
    verbs
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    };

    use super::*;

    #[test]
    fn rules_follow_from_what_is_declared() {
        let mut rules = Rules::default();
        rules.access(&Access::Reconciles(Kind::of::<Deployment>()));
        rules.access(&Access::Owns(Kind::of::<ReplicaSet>()));
        rules.access(&Access::Reads(Kind::of::<Pod>()));
        rules.permit(&[rule("", ["pods"], ["delete"])]);
        let lines: Vec<String> = rules
            .finish()
            .into_iter()
            .map(|r| {
                let (groups, resources) = (r.api_groups.unwrap(), r.resources.unwrap());
                format!("{} {} {}", groups.join(","), resources.join(","), r.verbs.join(","))
            })
            .collect();
        assert_eq!(
            lines,
            [
                " pods get,list,watch,delete",
                "apps deployments get,list,watch,patch",
                "apps deployments/finalizers update",
                "apps deployments/status patch",
                "apps replicasets get,list,watch,create,patch,delete",
            ]
        );
    }
}
