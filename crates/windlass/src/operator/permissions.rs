//! What an operator may do, computed from what it declares, and which line of its code asked for it.
//!
//! Enters: the calls of the builders, each with its place in the author's code. Leaves: RBAC rules, and for each of them
//! the calls that made it.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Serialize;
use serde_json::Value;

use super::Operator;
use crate::{
    object::Kind,
    rbac::{Access, Call, Declared, Reach, Rules},
    webhook::Webhook,
};

/// A rule of one of an operator's roles, and why it is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExplainedRule {
    /// The kind and name of the role, such as `ClusterRole my-operator`.
    pub role: String,
    /// The namespaces of the role; none for a ClusterRole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The rule.
    pub rule: PolicyRule,
    /// The calls that asked for it.
    pub reasons: Vec<Reason>,
}

/// A call that asked for a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// The function that was called, such as `Controller::owns`, or what needs the rule if no call of the author's does.
    pub call: String,
    /// The kind that it was called with, or about whose objects events are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// The file of the call, as the compiler was given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Reason {
    fn of(call: &Call) -> Self {
        let file = Some(call.at.file().to_owned());
        Self { call: call.name.into(), kind: None, controller: None, file, line: Some(call.at.line()) }
    }

    fn plain(text: &str) -> Self {
        Self { call: text.into(), kind: None, controller: None, file: None, line: None }
    }
}

/// What one call asks for.
struct Source {
    reason: Reason,
    rules: Vec<PolicyRule>,
}

impl Source {
    /// Whether a rule holds something of it.
    fn is_part_of(&self, whole: &PolicyRule) -> bool {
        let any = |ours: &Option<Vec<String>>, theirs: &Option<Vec<String>>| {
            ours.iter().flatten().any(|one| theirs.iter().flatten().any(|other| one == other))
        };
        self.rules.iter().any(|rule| {
            rule == whole
                || (any(&rule.api_groups, &whole.api_groups)
                    && any(&rule.resources, &whole.resources)
                    && rule.resource_names == whole.resource_names
                    && rule.verbs.iter().any(|verb| whole.verbs.contains(verb)))
        })
    }
}

impl Operator {
    /// The permissions that the controllers need, computed from what they declare.
    pub fn rbac(&self) -> Vec<PolicyRule> {
        self.rules(Reach::Everything)
    }

    /// Every rule that the operator is given in a cluster, with the calls that asked for it.
    ///
    /// `namespace` is that of the operator. What people are given, and the operator is not, is left out.
    pub fn explain_rbac(&self, namespace: &str) -> Vec<ExplainedRule> {
        let parts: Vec<(&str, Vec<String>, Reach)> = match self.watched_namespaces() {
            None => vec![("ClusterRole", Vec::new(), Reach::Everything)],
            Some(namespaces) => vec![
                ("Role", namespaces.into_iter().collect(), Reach::Namespaced),
                ("ClusterRole", Vec::new(), Reach::Cluster),
            ],
        };
        let mut explained = Vec::new();
        for (kind, namespaces, reach) in parts {
            let (role, sources) = (format!("{kind} {}-manager-role", self.name), self.sources(reach));
            for rule in self.rules(reach) {
                let reasons = sources.iter().filter(|source| source.is_part_of(&rule));
                let reasons = reasons.map(|source| source.reason.clone()).collect();
                explained.push(ExplainedRule {
                    role: role.clone(),
                    namespaces: namespaces.clone(),
                    rule,
                    reasons,
                });
            }
        }
        explained.extend(self.explain_rest(namespace));
        explained
    }

    /// The roles beside that of the controllers.
    fn explain_rest(&self, namespace: &str) -> Vec<ExplainedRule> {
        let hooks: Vec<Reason> = self.hook_calls.iter().map(Reason::of).collect();
        let mut explained = Vec::new();
        for role in self.rbac_manifests(namespace) {
            let text = |path: &str| role.pointer(path).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            let reasons = match name.strip_prefix(self.name.as_str()) {
                _ if !kind.ends_with("Role") => continue,
                Some("-leader-election-role") => vec![Reason::plain("leader election (--leader-elect)")],
                Some("-metrics-auth-role") => {
                    vec![Reason::plain("metrics are served to whom may read them (--metrics-secure)")]
                }
                Some("-webhook-certificates-role") => hooks.clone(),
                _ => continue,
            };
            let rules: Vec<PolicyRule> = serde_json::from_value(role["rules"].clone()).unwrap_or_default();
            let namespaces: Vec<String> =
                role["metadata"]["namespace"].as_str().map(ToOwned::to_owned).into_iter().collect();
            for rule in rules {
                let (role, namespaces) = (format!("{kind} {name}"), namespaces.clone());
                explained.push(ExplainedRule { role, namespaces, rule, reasons: reasons.clone() });
            }
        }
        explained
    }

    /// The permissions for what lies in namespaces, for what lies in none, or for both.
    pub(super) fn rules(&self, reach: Reach) -> Vec<PolicyRule> {
        let mut rules = Rules::default();
        for source in self.sources(reach) {
            rules.permit(&source.rules);
        }
        rules.finish()
    }

    /// What every call asks for within reach, in the order of the calls.
    fn sources(&self, reach: Reach) -> Vec<Source> {
        let chosen = |kind: &Kind| match reach {
            Reach::Everything => true,
            Reach::Namespaced => kind.namespaced,
            Reach::Cluster => !kind.namespaced,
        };
        let known = self.cluster_scoped();
        let (mut sources, mut events) = (Vec::new(), Vec::new());
        for controller in &self.controllers {
            let (declared, permits) = controller.access();
            let named = |call: &Call, kind: Option<&Kind>| Reason {
                kind: kind.map(|kind| kind.kind.clone()),
                controller: Some(controller.name().to_owned()),
                ..Reason::of(call)
            };
            for Declared { access, call } in declared.iter().filter(|it| chosen(it.access.kind())) {
                let reason = named(call, Some(access.kind()));
                if matches!(access, Access::Reconciles(_)) {
                    events.push(Reason { call: format!("{}: events", call.name), ..reason.clone() });
                }
                sources.push(Source { reason, rules: granted(access) });
            }
            let permitted =
                permits.iter().map(|(permit, call)| (permit.within(reach, &known), named(call, None)));
            sources.extend(permitted.map(|(rules, reason)| Source { reason, rules }));
        }
        for (permit, call) in &self.permits {
            sources.push(Source { reason: Reason::of(call), rules: permit.within(reach, &known) });
        }
        let read = self.webhooks.admission.iter().flat_map(Webhook::declared);
        for Declared { access, call } in read.filter(|it| chosen(it.access.kind())) {
            let reason = Reason { kind: Some(access.kind().kind.clone()), ..Reason::of(call) };
            sources.push(Source { reason, rules: granted(access) });
        }
        // Every object that is reconciled may have events.
        if events.is_empty() && reach != Reach::Cluster {
            events.push(Reason::plain("events"));
        }
        let event = crate::rbac::rule("events.k8s.io", ["events"], ["create", "patch"]);
        sources.extend(events.into_iter().map(|reason| Source { reason, rules: vec![event.clone()] }));
        sources
    }

    /// What the controllers have declared about kinds, in their order.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &Access> {
        self.controllers.iter().flat_map(|controller| controller.access().0).map(|declared| &declared.access)
    }

    /// The group and plural of the kinds of this operator's that live in no namespace.
    fn cluster_scoped(&self) -> BTreeSet<(String, String)> {
        let declared = self.declared().map(Access::kind).filter(|kind| !kind.namespaced);
        let installed = self.crds.iter().filter(|crd| crd.spec.scope == "Cluster");
        let installed = installed.map(|crd| (crd.spec.group.clone(), crd.spec.names.plural.clone()));
        declared.map(|kind| (kind.group.clone(), kind.plural.clone())).chain(installed).collect()
    }
}

fn granted(access: &Access) -> Vec<PolicyRule> {
    let mut rules = Rules::default();
    rules.access(access);
    rules.finish()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::{
        Controller, Watch,
        operator::manifests::tests::{Maps, hooked},
        rbac::rule,
    };

    /// One line for each rule and each reason; lines of this file are counted from `first`.
    fn told(explained: &[ExplainedRule], first: u32) -> Vec<String> {
        let mut lines = Vec::new();
        for one in explained {
            let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
            let rule = &one.rule;
            lines.push(format!(
                "{} {:?}: {}/{} {}",
                one.role,
                one.namespaces,
                list(&rule.api_groups),
                list(&rule.resources),
                rule.verbs.join(","),
            ));
            for reason in &one.reasons {
                let place = reason.file.as_ref().zip(reason.line).map(|(file, line)| {
                    assert!(file.ends_with("permissions.rs") || file.ends_with("tests.rs"), "{file}");
                    if file.ends_with("tests.rs") { "elsewhere".into() } else { format!("+{}", line - first) }
                });
                let (kind, controller) = (reason.kind.as_deref(), reason.controller.as_deref());
                lines.push(format!("  {} {kind:?} {controller:?} {place:?}", reason.call));
            }
        }
        lines
    }

    #[test]
    fn every_rule_names_the_calls_and_lines_that_asked_for_it() {
        let first = line!();
        let controller = Controller::new(Maps)
            .owns::<Deployment>()
            .reads_with(Watch::<Deployment>::new())
            .permits([rule("apps", ["deployments"], ["delete"]), rule("", ["nodes"], ["get"])]);
        let operator = Operator::new("op").permits([rule("", ["nodes"], ["get"])]).controller(controller);
        assert_eq!(
            told(&operator.explain_rbac("sys"), first),
            [
                "ClusterRole op-manager-role []: /configmaps get,list,watch,patch",
                "  Controller::new Some(\"ConfigMap\") Some(\"configmap\") Some(\"+1\")",
                "ClusterRole op-manager-role []: /configmaps/finalizers update",
                "  Controller::new Some(\"ConfigMap\") Some(\"configmap\") Some(\"+1\")",
                "ClusterRole op-manager-role []: /configmaps/status patch",
                "  Controller::new Some(\"ConfigMap\") Some(\"configmap\") Some(\"+1\")",
                "ClusterRole op-manager-role []: /nodes get",
                "  Controller::permits None Some(\"configmap\") Some(\"+4\")",
                "  Operator::permits None None Some(\"+5\")",
                "ClusterRole op-manager-role []: apps/deployments get,list,watch,create,patch,delete",
                "  Controller::owns Some(\"Deployment\") Some(\"configmap\") Some(\"+2\")",
                "  Controller::reads Some(\"Deployment\") Some(\"configmap\") Some(\"+3\")",
                "  Controller::permits None Some(\"configmap\") Some(\"+4\")",
                "ClusterRole op-manager-role []: events.k8s.io/events create,patch",
                "  Controller::new: events Some(\"ConfigMap\") Some(\"configmap\") Some(\"+1\")",
                "Role op-leader-election-role [\"sys\"]: coordination.k8s.io/leases get,list,watch,create,update",
                "  leader election (--leader-elect) None None None",
                "ClusterRole op-metrics-auth-role []: authentication.k8s.io/tokenreviews create",
                "  metrics are served to whom may read them (--metrics-secure) None None None",
                "ClusterRole op-metrics-auth-role []: authorization.k8s.io/subjectaccessreviews create",
                "  metrics are served to whom may read them (--metrics-secure) None None None",
            ]
        );
    }

    #[test]
    fn no_rule_is_without_a_reason_and_the_rules_are_those_of_the_roles() {
        for operator in [hooked(), hooked().namespaces(["a", "b"])] {
            let explained = operator.explain_rbac("sys");
            assert!(explained.iter().all(|one| !one.reasons.is_empty()), "{explained:#?}");
            for role in operator.rbac_manifests("sys") {
                let name = role["metadata"]["name"].as_str().unwrap();
                let people = ["admin-role", "editor-role", "viewer-role", "reader"]
                    .iter()
                    .any(|end| name.ends_with(end));
                for rule in role["rules"].as_array().into_iter().flatten().filter(|_| !people) {
                    let rule: PolicyRule = serde_json::from_value(rule.clone()).unwrap();
                    assert!(explained.iter().any(|one| one.rule == rule), "{name} {rule:?}");
                }
            }
        }
        let hooks = hooked().explain_rbac("sys");
        let certificates = hooks.iter().find(|one| one.role.ends_with("-webhook-certificates-role")).unwrap();
        let calls: Vec<&str> = certificates.reasons.iter().map(|reason| reason.call.as_str()).collect();
        assert_eq!(calls, ["Operator::webhook", "Operator::defaults", "Operator::converts"]);
    }

    #[test]
    fn what_is_explained_is_data() {
        let explained = Operator::new("op").controller(Controller::new(Maps)).explain_rbac("sys");
        let value = serde_json::to_value(&explained[0]).unwrap();
        assert_eq!(value["rule"]["resources"][0], "configmaps");
        assert_eq!(value["reasons"][0]["kind"], "ConfigMap");
    }
}
