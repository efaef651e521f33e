//! The Pods of an ImoocPod. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use super::api::ImoocPod;
use crate::workload::{
    PodOptions, Problem,
    fleet::{FAILURES, HASH},
    pods,
};

/// The label with the uid of the ImoocPod: another one of the same name, or an application called the same, has
/// other Pods.
pub(super) const UID: &str = "batch.tutorial.kubebuilder.io/uid";
/// Any user but root will do for a Pod that sleeps.
const USER: i64 = 65532;

/// Refuses what the schema refuses too, for objects that are older than a rule.
pub(super) fn check(imooc: &ImoocPod) -> Result<(), Problem> {
    Problem::check_label_name(imooc)?;
    Problem::check_range("spec.replicas", imooc.spec.replicas, 0, 100)
}

fn labels(imooc: &ImoocPod) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), imooc.name_any()), (UID.to_owned(), imooc.uid().unwrap_or_default())])
}

/// The selector in the form that `kubectl get pods -l` and the scale subresource take.
pub(super) fn selector(imooc: &ImoocPod) -> String {
    let pairs: Vec<String> = labels(imooc).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// What all Pods have in common: when it changes, they are replaced.
pub(super) fn template(imooc: &ImoocPod) -> PodTemplateSpec {
    let container = Container {
        name: "busybox".into(),
        image: Some(imooc.spec.image.clone()),
        command: Some(vec!["sleep".into(), "3600".into()]),
        security_context: Some(pods::unprivileged()),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(imooc)), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            security_context: Some(pods::confined_to_user(USER)),
            // `sleep` does not listen for signals as the first process of a container: nothing is to be waited for.
            termination_grace_period_seconds: Some(1),
            containers: vec![container],
            ..PodSpec::default()
        }),
    };
    PodOptions::applied_to(imooc.spec.pod.as_ref(), template)
}

/// A Pod, which the API server will name.
pub(super) fn pod(imooc: &ImoocPod, template: &PodTemplateSpec, hash: &str, failures: u32) -> Pod {
    let mut metadata = template.metadata.clone().unwrap_or_default();
    metadata.generate_name = Some(format!("{}-pod", imooc.name_any()));
    metadata.labels.get_or_insert_default().insert(HASH.to_owned(), hash.to_owned());
    if failures > 0 {
        metadata.annotations.get_or_insert_default().insert(FAILURES.to_owned(), failures.to_string());
    }
    Pod { metadata, spec: template.spec.clone(), status: None }
}
