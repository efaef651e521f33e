//! On what condition an object of the operator is part of a release, and the values of these conditions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{settings::Settings, template::is_about};
use crate::{
    Objects,
    objects::{is_crd, items, kind, name, role_key, strings, text},
};

/// A custom kind that can be switched off.
#[derive(Clone, Debug)]
pub(super) struct CustomKind {
    /// The name of its switch.
    pub(super) key: String,
    /// The name of its CRD.
    pub(super) crd: String,
    group: String,
    plural: String,
}

/// What decides about the objects of one operator.
pub(super) struct Switches {
    pub(super) kinds: Vec<CustomKind>,
    account: String,
    bound: std::collections::BTreeSet<(String, Option<String>, String)>,
}

impl Switches {
    pub(super) fn new(objects: &Objects) -> Self {
        let account = objects.account().to_owned();
        let mut bound = Objects::bound(objects.all(), &account);
        if let Some(restricted) = objects.when_restricted() {
            bound.extend(Objects::bound(restricted, &account));
        }
        Self { kinds: kinds(objects), account, bound }
    }

    /// The condition of an object, with the values that it asks.
    pub(super) fn condition(
        &self,
        object: &Value,
        optional: bool,
        settings: &mut Settings,
    ) -> Option<String> {
        // On for what everybody has, off for what must be asked for.
        let choice = |settings: &mut Settings, path: &str, about: &str| {
            settings.switch_to(path, !optional, about);
            format!("$.Values.{path}")
        };
        let switch = |settings: &mut Settings, path: &str, about: &str| {
            settings.switch(path, about);
            format!("$.Values.{path}")
        };
        let metrics = "Serve metrics, with TLS, to those who may read them";
        Some(match kind(object) {
            "Namespace" => {
                settings.add(
                    "namespace.create",
                    json!(false),
                    "Render the namespace too, for `helm template`; `helm install --create-namespace` makes it by itself",
                );
                "$.Values.namespace.create".to_owned()
            }
            "CustomResourceDefinition" => {
                let install = switch(
                    settings,
                    "crds.install",
                    "Install and upgrade the CRDs; uninstalling never deletes them",
                );
                self.of_kind(&install, &self.kind_of_crd(object)?.key)
            }
            "ServiceAccount" if name(object) == self.account => {
                switch(settings, "serviceAccount.create", "Make the service account")
            }
            kind if kind.ends_with("Role") || kind.ends_with("RoleBinding") => {
                return Some(self.role(object, settings));
            }
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => switch(
                settings,
                "webhooks.admission",
                "Let the API server ask the operator about objects of its kinds",
            ),
            "Service" if items(&object["spec"]["ports"]).any(|port| port["targetPort"] == "metrics") => {
                switch(settings, "metrics.enabled", metrics)
            }
            "ServiceMonitor" => {
                let metrics = switch(settings, "metrics.enabled", metrics);
                let on = choice(
                    settings,
                    "metrics.serviceMonitor",
                    "Let the Prometheus Operator collect the metrics",
                );
                format!("and {metrics} {on}")
            }
            "PrometheusRule" => {
                let metrics = switch(settings, "metrics.enabled", metrics);
                let on = choice(
                    settings,
                    "metrics.prometheusRule",
                    "Alerts about the operator, for the Prometheus Operator",
                );
                format!("and {metrics} {on}")
            }
            "ConfigMap" if object.pointer("/metadata/labels/grafana_dashboard").is_some() => {
                choice(settings, "metrics.dashboard", "A dashboard of the operator's metrics, for Grafana")
            }
            "NetworkPolicy" => {
                choice(settings, "networkPolicy.create", "Let nobody reach the operator but who must")
            }
            "PodDisruptionBudget" => {
                choice(settings, "podDisruptionBudget.create", "Keep one replica when nodes are drained")
            }
            kind if optional => {
                let kind = kind.to_lowercase();
                choice(settings, &format!("optional.{kind}"), "What not every cluster has a use for")
            }
            _ => return None,
        })
    }

    fn role(&self, object: &Value, settings: &mut Settings) -> String {
        settings.switch("rbac.create", "Make the roles of the operator and bind it to them");
        let create = "$.Values.rbac.create";
        if kind(object).ends_with("Binding") || self.bound.contains(&role_key(object)) {
            return create.to_owned();
        }
        let of = self.kinds.iter().find(|kind| {
            let mut rules = items(&object["rules"]).peekable();
            rules.peek().is_some() && rules.all(|rule| is_about(rule, &kind.group, &kind.plural))
        });
        match of {
            Some(kind) => {
                settings.switch(
                    "rbac.userRoles",
                    "Roles to administer, edit and view the kinds, which nobody is bound to",
                );
                self.of_kind(&format!("and {create} $.Values.rbac.userRoles"), &kind.key)
            }
            None if items(&object["rules"])
                .all(|rule| strings(&rule["nonResourceURLs"]).any(|url| url == "/metrics")) =>
            {
                settings.switch("metrics.enabled", "Serve metrics, with TLS, to those who may read them");
                format!("and {create} $.Values.metrics.enabled")
            }
            None => create.to_owned(),
        }
    }

    #[expect(clippy::unused_self, reason = "beside what else makes conditions")]
    fn of_kind(&self, condition: &str, key: &str) -> String {
        let condition = condition.strip_prefix("and ").unwrap_or(condition);
        format!("and {condition} $.Values.kinds.{key}")
    }

    fn kind_of_crd(&self, crd: &Value) -> Option<&CustomKind> {
        self.kinds.iter().find(|kind| kind.crd == name(crd))
    }

    /// Whether a role is the operator's own.
    pub(super) fn is_bound(&self, role: &Value) -> bool {
        self.bound.contains(&role_key(role))
    }

    /// The kind that a rule of the operator's own roles is about, if it is about one alone.
    pub(super) fn kind_of_rule(&self, rule: &Value) -> Option<&CustomKind> {
        self.kinds.iter().find(|kind| is_about(rule, &kind.group, &kind.plural))
    }

    /// Adds the switch of every kind.
    pub(super) fn add(&self, objects: &Objects, settings: &mut Settings) {
        for kind in &self.kinds {
            let of =
                objects.crds().find(|crd| name(crd) == kind.crd).map(|crd| text(crd, "/spec/names/kind"));
            let about = format!("Work on objects of the kind {}, and install it", of.unwrap_or_default());
            settings.switch(&format!("kinds.{}", kind.key), &about);
        }
    }
}

/// The switch of a kind has its name in lower case; of two groups that share one, with the group.
fn kinds(objects: &Objects) -> Vec<CustomKind> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for crd in objects.all().iter().filter(|object| is_crd(object)) {
        *count.entry(text(crd, "/spec/names/kind").to_lowercase()).or_default() += 1;
    }
    let of = |crd: &Value| {
        let (group, plural) =
            (text(crd, "/spec/group").to_owned(), text(crd, "/spec/names/plural").to_owned());
        let kind = text(crd, "/spec/names/kind").to_lowercase();
        // A template cannot name a value with a dot or a dash in it.
        let word: String = group.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let key = if count[&kind] > 1 { format!("{kind}_{word}") } else { kind };
        CustomKind { key, crd: name(crd).to_owned(), group, plural }
    };
    objects.crds().map(of).collect()
}
