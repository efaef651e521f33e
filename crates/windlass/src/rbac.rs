//! RBAC rules computed from what the controllers declare, so that they cannot drift from the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::Location,
};

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

/// A call in the author's code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The function.
    pub(crate) name: &'static str,
    pub(crate) at: &'static Location<'static>,
}

impl Call {
    /// The call of the function that calls this, if all between it and the author's code are marked to say so.
    #[track_caller]
    pub(crate) fn here(name: &'static str) -> Self {
        Self { name, at: Location::caller() }
    }
}

/// What was declared, and where.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) access: Access,
    pub(crate) call: Call,
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

/// A permission for [`Controller::permits`](crate::Controller::permits): a rule, and where it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Permit {
    rule: PolicyRule,
    cluster_wide: bool,
}

impl From<PolicyRule> for Permit {
    fn from(rule: PolicyRule) -> Self {
        Self { rule, cluster_wide: false }
    }
}

/// A rule for the whole cluster, also for an operator that is restricted to namespaces: for kinds that live in no
/// namespace, unless Kubernetes itself or the operator defines them, which is known.
///
/// ```
/// use windlass::rbac::{cluster_wide, rule};
///
/// let permit = cluster_wide(rule("gateway.networking.k8s.io", ["gatewayclasses"], ["get"]));
/// ```
pub fn cluster_wide(rule: PolicyRule) -> Permit {
    Permit { rule, cluster_wide: true }
}

/// What a set of rules is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Everything,
    /// What lies in namespaces, for a Role in each.
    Namespaced,
    /// What lies in none, for a `ClusterRole`.
    Cluster,
}

impl Permit {
    /// The part of the rule that is within reach. `known` are kinds that live in no namespace.
    pub(crate) fn within(&self, reach: Reach, known: &BTreeSet<(String, String)>) -> Vec<PolicyRule> {
        let urls = self.rule.non_resource_urls.is_some();
        match reach {
            Reach::Everything => return vec![self.rule.clone()],
            Reach::Cluster if urls || self.cluster_wide => return vec![self.rule.clone()],
            Reach::Namespaced if urls || self.cluster_wide => return Vec::new(),
            Reach::Cluster | Reach::Namespaced => {}
        }
        let mut parts = Vec::new();
        for group in self.rule.api_groups.iter().flatten() {
            let wanted = |resource: &&String| {
                let name = resource.split('/').next().unwrap_or_default();
                let cluster =
                    is_cluster_scoped(group, name) || known.contains(&(group.clone(), name.to_owned()));
                cluster == (reach == Reach::Cluster)
            };
            let resources: Vec<String> =
                self.rule.resources.iter().flatten().filter(wanted).cloned().collect();
            if !resources.is_empty() {
                let (api_groups, resources) = (Some(vec![group.clone()]), Some(resources));
                parts.push(PolicyRule { api_groups, resources, ..self.rule.clone() });
            }
        }
        parts
    }
}

/// Kubernetes' own kinds that live in no namespace, by group.
const CLUSTER_SCOPED: [(&str, &[&str]); 16] = [
    ("", &["componentstatuses", "namespaces", "nodes", "persistentvolumes"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &["selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
    ("certificates.k8s.io", &["certificatesigningrequests", "clustertrustbundles"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("internal.apiserver.k8s.io", &["storageversions"]),
    ("networking.k8s.io", &["ingressclasses", "ipaddresses", "servicecidrs"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles"]),
    (
        "resource.k8s.io",
        &["deviceclasses", "devicetaintrules", "resourcepoolstatusrequests", "resourceslices"],
    ),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "storage.k8s.io",
        &["csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"],
    ),
    ("storagemigration.k8s.io", &["storageversionmigrations"]),
];

fn is_cluster_scoped(group: &str, resource: &str) -> bool {
    let known = CLUSTER_SCOPED.iter().find(|(of, _)| *of == group);
    known.is_some_and(|(_, resources)| resources.contains(&resource))
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

    /// The embedded API server knows the kinds of Kubernetes with their scopes from a real one.
    #[tokio::test]
    async fn the_scope_of_every_kind_of_kubernetes_is_known() {
        use windlass_apiserver::{ApiServer, auth::Identity, environment, registry::Registry, store::Store};
        let clock = environment::TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let environment = environment::Environment::new(clock, 7);
        let registry = Registry::new(std::sync::Arc::new(Store::default()), environment).unwrap();
        let server = ApiServer::new(std::sync::Arc::new(registry)).as_user(Identity::admin());
        let client = kube::Client::new(server, "default");
        let mut lists = vec![client.list_core_api_resources("v1").await.unwrap()];
        for group in client.list_api_groups().await.unwrap().groups {
            for version in group.versions {
                lists.push(client.list_api_group_resources(&version.group_version).await.unwrap());
            }
        }
        let mut seen = 0;
        for list in lists {
            let group = list.group_version.rsplit_once('/').map_or("", |(group, _)| group);
            for resource in list.resources.iter().filter(|resource| !resource.name.contains('/')) {
                seen += 1;
                assert_eq!(
                    is_cluster_scoped(group, &resource.name),
                    !resource.namespaced,
                    "{group} {resource:?}"
                );
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn a_rule_is_split_where_its_resources_differ_in_scope() {
        let known = BTreeSet::from([("example.com".to_owned(), "worlds".to_owned())]);
        let names = |permit: &Permit, reach| -> Vec<String> {
            let parts = permit.within(reach, &known);
            parts.iter().flat_map(|part| part.resources.clone().unwrap_or_default()).collect()
        };
        let mixed = rule("", ["nodes/proxy", "pods", "namespaces"], ["get"]).into();
        assert_eq!(names(&mixed, Reach::Namespaced), ["pods"]);
        assert_eq!(names(&mixed, Reach::Cluster), ["nodes/proxy", "namespaces"]);
        assert_eq!(names(&mixed, Reach::Everything).len(), 3);
        let own = rule("example.com", ["worlds", "towns"], ["get"]).into();
        assert_eq!(names(&own, Reach::Cluster), ["worlds"]);
        let said = cluster_wide(rule("example.com", ["towns"], ["get"]));
        assert_eq!((names(&said, Reach::Cluster).len(), names(&said, Reach::Namespaced).len()), (1, 0));
        let named = PolicyRule { resource_names: Some(vec!["n".into()]), ..rule("", ["nodes"], ["get"]) };
        let parts = Permit::from(named.clone()).within(Reach::Cluster, &known);
        assert_eq!(parts, [named]);
    }

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
