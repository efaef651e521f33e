//! The conditions of a namespace that is being deleted, with Kubernetes' reasons and messages. Pure.

use std::collections::BTreeMap;

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{Namespace, NamespaceCondition, NamespaceStatus},
        apimachinery::pkg::apis::meta::v1::Time,
    },
};

use super::Meta;
use crate::resources::Resource;

/// What is left in a namespace.
#[derive(Default)]
pub(super) struct Content {
    remaining: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Content {
    pub(super) fn remain(&mut self, kind: &Resource, objects: &[Meta]) {
        if !objects.is_empty() {
            self.remaining.insert(format!("{}.{}", kind.api.plural, kind.api.group), objects.len());
        }
        for finalizer in objects.iter().flat_map(|object| object.metadata.finalizers.iter().flatten()) {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    pub(super) fn fail(&mut self, kind: &Resource, error: &windlass::kube::Error) {
        self.failures.push(format!("{kind}: {error}"));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.failures.is_empty()
    }

    pub(super) fn failure(&self) -> Option<String> {
        (!self.failures.is_empty()).then(|| self.failures.join(", "))
    }
}

/// A condition's type, and its reason and message when all is well.
const WELL: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// The status of a namespace with this content left.
pub(super) fn observed(namespace: &Namespace, content: &Content, now: Timestamp) -> NamespaceStatus {
    let old = namespace.status.clone().unwrap_or_default();
    let conditions = WELL.map(|(type_, reason, message)| {
        let trouble = trouble(type_, content);
        let status = if trouble.is_some() { "True" } else { "False" };
        let (reason, message) = trouble.unwrap_or((reason, message.to_owned()));
        let same = old.conditions.iter().flatten().find(|old| old.type_ == type_ && old.status == status);
        NamespaceCondition {
            type_: type_.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message),
            last_transition_time: same.and_then(|same| same.last_transition_time.clone()).or(Some(Time(now))),
        }
    });
    NamespaceStatus { conditions: Some(conditions.into()), ..old }
}

fn trouble(type_: &str, content: &Content) -> Option<(&'static str, String)> {
    let joined = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join(", "));
    match type_ {
        "NamespaceDeletionContentFailure" => {
            let failures = content.failure()?;
            let count = content.failures.len();
            Some((
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {count} remaining: {failures}"),
            ))
        }
        "NamespaceContentRemaining" => {
            let line = |(kind, count): (&String, &usize)| format!("{kind} has {count} resource instances");
            let lines = joined(content.remaining.iter().map(line).collect())?;
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {lines}")))
        }
        "NamespaceFinalizersRemaining" => {
            let line = |(name, count): (&String, &usize)| format!("{name} in {count} resource instances");
            let lines = joined(content.finalizers.iter().map(line).collect())?;
            let message = format!("Some content in the namespace has finalizers remaining: {lines}");
            Some(("SomeFinalizersRemain", message))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::at;

    #[test]
    fn conditions_say_what_remains_as_kubernetes_does() {
        let content = Content {
            remaining: [("pods.".to_owned(), 2), ("widgets.example.com".to_owned(), 1)].into(),
            finalizers: [("example.com/x".to_owned(), 1)].into(),
            failures: Vec::new(),
        };
        let status = observed(&Namespace::default(), &content, at(5));
        let lines: Vec<String> = status
            .conditions
            .unwrap()
            .into_iter()
            .map(|c| format!("{} {}: {}", c.status, c.reason.unwrap(), c.message.unwrap()))
            .collect();
        assert_eq!(
            lines,
            [
                "False ResourcesDiscovered: All resources successfully discovered",
                "False ParsedGroupVersions: All legacy kube types successfully parsed",
                "False ContentDeleted: All content successfully deleted, may be waiting on finalization",
                "True SomeResourcesRemain: Some resources are remaining: pods. has 2 resource instances, \
                 widgets.example.com has 1 resource instances",
                "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: \
                 example.com/x in 1 resource instances",
            ]
        );
    }
}
