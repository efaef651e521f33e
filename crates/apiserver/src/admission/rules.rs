//! Rules: which requests a webhook or a policy is about.

use serde::Deserialize;

use super::{Attributes, LabelSelector};
use crate::registry::Resource;

/// Operations on resources.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    scope: Option<String>,
}

/// Which requests are meant: rules and selectors.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Match {
    #[serde(alias = "rules")]
    pub(crate) resource_rules: Vec<Rule>,
    pub(crate) exclude_resource_rules: Vec<Rule>,
    #[serde(rename = "matchPolicy")]
    policy: Option<String>,
    pub(crate) namespace_selector: LabelSelector,
    pub(crate) object_selector: LabelSelector,
}

impl Match {
    /// The same, for all resources where none is named: what a binding narrows down by selectors alone.
    pub(crate) fn or_everything(&self) -> Self {
        let mut wide = self.clone();
        if wide.resource_rules.is_empty() {
            let every = || vec!["*".to_owned()];
            wide.resource_rules = vec![Rule {
                operations: every(),
                api_groups: every(),
                api_versions: every(),
                resources: vec!["*/*".to_owned()],
                ..Rule::default()
            }];
        }
        wide
    }

    /// Whether other versions of a resource are meant too.
    pub(crate) fn equivalent(&self) -> bool {
        self.policy.as_deref() != Some("Exact")
    }
}

fn listed(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == "*" || one == value)
}

impl Rule {
    /// Whether the request is meant when its resource is this one.
    pub(crate) fn matches(&self, request: &Attributes<'_>, resource: &Resource) -> bool {
        self.in_scope(request)
            && listed(&self.operations, request.operation.name())
            && listed(&self.api_groups, &resource.group)
            && listed(&self.api_versions, &resource.version)
            && self.names_resource(&resource.plural, request.target.subresource)
            && (self.resource_names.is_empty() || self.resource_names.contains(&request.name))
    }

    fn in_scope(&self, request: &Attributes<'_>) -> bool {
        let cluster = request.is_namespace() || request.target.namespace.is_empty();
        match self.scope.as_deref() {
            Some("Namespaced") => !cluster,
            Some("Cluster") => cluster,
            _ => true,
        }
    }

    fn names_resource(&self, plural: &str, subresource: &str) -> bool {
        self.resources.iter().any(|one| {
            let (resource, part) = one.split_once('/').unwrap_or((one, ""));
            (resource == "*" || resource == plural) && (part == "*" || part == subresource)
        })
    }
}
