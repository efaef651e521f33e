//! The Pods of a PodManager. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec, SecurityContext},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use super::api::PodManager;
use crate::workload::{
    PodOptions, Problem,
    fleet::{FAILURES, HASH},
    pods,
};

/// The label with the uid of the PodManager, by which its Pods are watched.
pub(super) const UID: &str = "podmanager-uid";

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(manager: &PodManager) -> Result<(), Problem> {
    Problem::check_label_name(manager)?;
    Problem::check_range("spec.replicas", manager.spec.replicas, 1, 1000)?;
    if manager.spec.image.is_empty() {
        return Err(Problem::spec("spec.image is empty; name an image"));
    }
    Ok(())
}

/// The labels of the Pods. The first is the same for all PodManagers: only all three together select.
fn labels(manager: &PodManager) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app".to_owned(), "my-app".to_owned()),
        ("podmanager".to_owned(), manager.name_any()),
        (UID.to_owned(), manager.uid().unwrap_or_default()),
    ])
}

/// The selector in the form that `kubectl get pods -l` and the scale subresource take.
pub(super) fn selector(manager: &PodManager) -> String {
    let pairs: Vec<String> =
        labels(manager).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// What all Pods have in common: when it changes, they are replaced.
pub(super) fn template(manager: &PodManager) -> PodTemplateSpec {
    let container = Container {
        name: "app".into(),
        image: Some(manager.spec.image.clone()),
        // What the image needs is unknown: this is as far as a default can go.
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            ..SecurityContext::default()
        }),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(manager)), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            security_context: Some(pods::confined()),
            containers: vec![container],
            ..PodSpec::default()
        }),
    };
    PodOptions::applied_to(manager.spec.pod.as_ref(), template)
}

/// The names of Pods that are free, the lowest index first.
#[derive(Debug)]
pub(super) struct Places {
    manager: String,
    taken: BTreeSet<String>,
    next: AtomicUsize,
    passed_over: AtomicUsize,
}

impl Places {
    /// How many Pods of others one run passes over.
    const MOST_PASSED_OVER: usize = 100;

    /// `taken` are the names of the Pods that the PodManager has.
    pub(super) fn new(manager: &PodManager, taken: impl IntoIterator<Item = String>) -> Self {
        Self {
            manager: manager.name_any(),
            taken: taken.into_iter().collect(),
            next: AtomicUsize::new(0),
            passed_over: AtomicUsize::new(0),
        }
    }

    /// The next name that is free, which then is not.
    pub(super) fn next(&self) -> String {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{index}", self.manager);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }

    /// Whether another name is to be tried after one that somebody else has.
    pub(super) fn may_go_on(&self) -> bool {
        self.passed_over.fetch_add(1, Ordering::Relaxed) < Self::MOST_PASSED_OVER
    }
}

/// A Pod.
pub(super) fn pod(name: String, template: &PodTemplateSpec, hash: &str, failures: u32) -> Pod {
    let mut metadata = template.metadata.clone().unwrap_or_default();
    metadata.name = Some(name);
    metadata.labels.get_or_insert_default().insert(HASH.to_owned(), hash.to_owned());
    if failures > 0 {
        metadata.annotations.get_or_insert_default().insert(FAILURES.to_owned(), failures.to_string());
    }
    Pod { metadata, spec: template.spec.clone(), status: None }
}
