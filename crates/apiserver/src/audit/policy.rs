//! An audit policy: which requests are written down, and how much of them.

use std::collections::BTreeSet;

use serde::Deserialize;

/// How much is written of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Level {
    /// Nothing.
    None,
    /// Who, what and when.
    Metadata,
    /// What was sent, as well.
    Request,
    /// What was answered, as well.
    RequestResponse,
}

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// When something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Stage {
    /// Before the request is answered.
    RequestReceived,
    /// When an answer that lasts begins.
    ResponseStarted,
    /// When the answer is complete.
    ResponseComplete,
    /// When there was a panic.
    Panic,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It is not YAML, or not of this form.
    #[error("failed to read the audit policy: {0}")]
    Read(String),
    /// It says what makes no sense.
    #[error("the audit policy is wrong: {0}")]
    Wrong(String),
}

/// A policy, as `audit.k8s.io/v1` has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    api_version: String,
    kind: String,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: BTreeSet<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    paths: Vec<String>,
    #[serde(default)]
    omit_stages: BTreeSet<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupResources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// What a rule asks about a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    /// Nobody, if it is not known who asks.
    pub(crate) user: Option<&'a crate::auth::Identity>,
    pub(crate) verb: &'a str,
    pub(crate) target: Target<'a>,
}

/// What a request is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    Resource { group: &'a str, resource: &'a str, subresource: &'a str, namespace: &'a str, name: &'a str },
    Path(&'a str),
}

/// What is written of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) level: Level,
    pub(crate) omit_stages: BTreeSet<Stage>,
    pub(crate) omit_managed_fields: bool,
}

impl Policy {
    /// The policy of a file.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = serde_saphyr::from_str(text)
            .map_err(|error| PolicyError::Read(error.without_snippet().to_string()))?;
        let wrong = |why: String| Err(PolicyError::Wrong(why));
        if policy.kind != "Policy" || policy.api_version != "audit.k8s.io/v1" {
            return wrong(format!(
                "it is a {} of {}, not a Policy of audit.k8s.io/v1",
                policy.kind, policy.api_version
            ));
        }
        if policy.rules.is_empty() {
            return wrong("it has no rules; `- level: Metadata` is one".into());
        }
        for (number, rule) in policy.rules.iter().enumerate() {
            if let Some(why) = rule.problem() {
                return wrong(format!("rules[{number}]: {why}"));
            }
        }
        Ok(policy)
    }

    /// What the first rule that fits says. What no rule is about is not written down.
    pub(crate) fn decide(&self, request: &Attributes<'_>) -> Decision {
        let Some(rule) = self.rules.iter().find(|rule| rule.fits(request)) else {
            let omit_stages = self.omit_stages.clone();
            return Decision {
                level: Level::None,
                omit_stages,
                omit_managed_fields: self.omit_managed_fields,
            };
        };
        Decision {
            level: rule.level,
            omit_stages: self.omit_stages.union(&rule.omit_stages).copied().collect(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn problem(&self) -> Option<String> {
        let inside = !self.resources.is_empty() || !self.namespaces.is_empty();
        if !self.paths.is_empty() && inside {
            return Some("rules cannot apply to both regular resources and non-resource URLs".into());
        }
        for path in self.paths.iter().filter(|path| *path != "*") {
            if !path.starts_with('/') {
                return Some(format!("nonResourceURLs: {path:?} must begin with a '/' character"));
            }
            if path[..path.len() - 1].contains('*') {
                return Some(format!("nonResourceURLs: {path:?}: '*' may only be the last character"));
            }
        }
        for one in &self.resources {
            if one.group.contains('/') {
                return Some(format!("resources: the group {:?} must be named without a version", one.group));
            }
            if one.resources.is_empty() && !one.resource_names.is_empty() {
                return Some("resources: using resourceNames requires at least one resource".into());
            }
        }
        None
    }

    fn fits(&self, request: &Attributes<'_>) -> bool {
        let has = |list: &[String], value: &str| list.iter().any(|one| one == value);
        if !self.users.is_empty() && !request.user.is_some_and(|user| has(&self.users, &user.name)) {
            return false;
        }
        let groups = request.user.map_or(&[][..], |user| &user.groups);
        if !self.user_groups.is_empty() && !groups.iter().any(|group| has(&self.user_groups, group)) {
            return false;
        }
        if !self.verbs.is_empty() && !has(&self.verbs, request.verb) {
            return false;
        }
        match request.target {
            Target::Resource { namespace, .. }
                if !self.namespaces.is_empty() || !self.resources.is_empty() =>
            {
                (self.namespaces.is_empty() || has(&self.namespaces, namespace))
                    && (self.resources.is_empty()
                        || self.resources.iter().any(|one| one.covers(request.target)))
            }
            Target::Path(_) if !self.namespaces.is_empty() || !self.resources.is_empty() => false,
            Target::Path(path) if !self.paths.is_empty() => {
                self.paths.iter().any(|pattern| covers_path(pattern, path))
            }
            Target::Resource { .. } => self.paths.is_empty(),
            Target::Path(_) => true,
        }
    }
}

fn covers_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => pattern == path,
    }
}

impl GroupResources {
    fn covers(&self, target: Target<'_>) -> bool {
        let Target::Resource { group, resource, subresource, name, .. } = target else { return false };
        if self.group != group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.resource_names.is_empty() && !self.resource_names.iter().any(|one| one == name) {
            return false;
        }
        self.resources.iter().any(|pattern| {
            let whole = match pattern.split_once('/') {
                None => subresource.is_empty() && pattern == resource,
                Some((parent, part)) => parent == resource && part == subresource,
            };
            let any_parent = !subresource.is_empty() && pattern.strip_prefix("*/") == Some(subresource);
            whole || pattern == "*" || any_parent || pattern.strip_suffix("/*") == Some(resource)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Identity;

    fn policy(rules: &str) -> Policy {
        Policy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}")).unwrap()
    }

    fn level(policy: &Policy, target: Target<'_>) -> Level {
        let user = Identity::new("ann", ["shop".to_owned()]);
        policy.decide(&Attributes { user: Some(&user), verb: "get", target }).level
    }

    fn pods<'a>(subresource: &'a str, namespace: &'a str, name: &'a str) -> Target<'a> {
        Target::Resource { group: "", resource: "pods", subresource, namespace, name }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = policy(
            "- {level: None, users: [bob]}\n- {level: Request, userGroups: [shop], verbs: [get], namespaces: [a]}\n\
             - {level: RequestResponse, resources: [{group: '', resources: [pods], resourceNames: [x]}]}\n\
             - {level: Metadata, omitStages: [RequestReceived], omitManagedFields: true}\n",
        );
        assert_eq!(level(&policy, pods("", "a", "x")), Level::Request);
        assert_eq!(level(&policy, pods("", "b", "x")), Level::RequestResponse);
        assert_eq!(level(&policy, pods("", "b", "y")), Level::Metadata);
        assert_eq!(level(&policy, Target::Path("/api")), Level::Metadata);
        let nobody = policy.decide(&Attributes { user: None, verb: "get", target: pods("", "a", "x") });
        assert_eq!(nobody.level, Level::RequestResponse);
        let last = policy.decide(&Attributes { user: None, verb: "get", target: Target::Path("/api") });
        assert!(last.omit_managed_fields && last.omit_stages.contains(&Stage::RequestReceived));
    }

    #[test]
    fn resources_and_subresources_are_told_apart() {
        let fits = |pattern: &str, subresource: &str| {
            let rules =
                format!("- {{level: Metadata, resources: [{{group: '', resources: ['{pattern}']}}]}}\n");
            level(&policy(&rules), pods(subresource, "a", "x")) == Level::Metadata
        };
        for (pattern, parent, log) in [
            ("pods", true, false),
            ("pods/log", false, true),
            ("pods/*", true, true),
            ("*/log", false, true),
            ("*", true, true),
            ("pods/status", false, false),
        ] {
            assert_eq!((fits(pattern, ""), fits(pattern, "log")), (parent, log), "{pattern}");
        }
    }

    #[test]
    fn what_no_rule_is_about_is_not_written() {
        let policy = policy("- {level: Metadata, nonResourceURLs: ['/healthz*', /version]}\n");
        assert_eq!(level(&policy, Target::Path("/healthz/ping")), Level::Metadata);
        assert_eq!(level(&policy, Target::Path("/version")), Level::Metadata);
        assert_eq!(level(&policy, Target::Path("/versions")), Level::None);
        assert_eq!(level(&policy, pods("", "a", "x")), Level::None);
    }

    #[test]
    fn a_policy_that_makes_no_sense_is_refused() {
        for (text, why) in [
            ("apiVersion: v1\nkind: ConfigMap\n", "not a Policy of audit.k8s.io/v1"),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\n", "it has no rules"),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]\n", "Loud"),
            (
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [Soon]}]\n",
                "Soon",
            ),
            (
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [a]}]\n",
                "must begin with a '/'",
            ),
            (
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]\n",
                "both regular resources and non-resource URLs",
            ),
            (
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{resourceNames: [b]}]}]\n",
                "requires at least one resource",
            ),
            ("{", "failed to read"),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
