//! The Pods of a PodManager. Pure.

use std::collections::BTreeMap;

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

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(manager: &PodManager) -> Result<(), Problem> {
    Problem::check_label_name(manager)?;
    Problem::check_range("spec.replicas", manager.spec.replicas, 1, i32::MAX)?;
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
        ("podmanager-uid".to_owned(), manager.uid().unwrap_or_default()),
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

/// The name of a Pod.
pub(super) fn name(manager: &PodManager, index: usize) -> String {
    format!("{}-{index}", manager.name_any())
}

/// The lowest indexes whose names are free.
pub(super) fn free_indexes(count: usize, is_taken: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..).filter(|index| !is_taken(*index)).take(count).collect()
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
