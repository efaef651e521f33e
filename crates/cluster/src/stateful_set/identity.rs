//! Names, ordinals and Pods of a StatefulSet. Pure.

use std::ops::Range;

use windlass::k8s_openapi::{
    api::{
        apps::v1::{StatefulSet, StatefulSetSpec},
        core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{history, pod_control};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The name of the set and the ordinal in a Pod's name.
fn split(pod: &Pod) -> Option<(&str, i32)> {
    let (parent, ordinal) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    let number = ordinal.bytes().all(|digit| digit.is_ascii_digit());
    Some((parent, ordinal.parse().ok().filter(|_| number)?))
}

/// The set that a Pod is named after.
pub(super) fn parent(pod: &Pod) -> Option<&str> {
    split(pod).map(|(parent, _)| parent)
}

pub(super) fn ordinal(pod: &Pod) -> Option<i32> {
    split(pod).map(|(_, ordinal)| ordinal)
}

/// The ordinals that a set should have.
pub(super) fn ordinals(spec: &StatefulSetSpec) -> Range<i32> {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    start..start.saturating_add(spec.replicas.unwrap_or(1))
}

/// The revision that a Pod was made from.
pub(super) fn revision(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(history::HASH)).map_or("", String::as_str)
}

/// The name of the claim that a template gives to an ordinal.
pub(super) fn claim_name(template: &PersistentVolumeClaim, set: &str, ordinal: i32) -> String {
    format!("{}-{set}-{ordinal}", template.metadata.name.as_deref().unwrap_or_default())
}

/// Whether a claim of this name could be one of the set's.
pub(super) fn may_claim(set: &StatefulSet, claim: &str) -> bool {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let templates = set.spec.volume_claim_templates.iter().flatten();
    templates.into_iter().any(|template| {
        let prefix = format!("{}-{name}-", template.metadata.name.as_deref().unwrap_or_default());
        claim.strip_prefix(&prefix).is_some_and(|ordinal| ordinal.parse::<i32>().is_ok())
    })
}

/// The claims of an ordinal.
pub(super) fn claims(set: &StatefulSet, spec: &StatefulSetSpec, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let claim = |template: &PersistentVolumeClaim| {
        let mut labels = template.metadata.labels.clone().unwrap_or_default();
        labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
        PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(claim_name(template, name, ordinal)),
                namespace: set.metadata.namespace.clone(),
                labels: Some(labels).filter(|labels| !labels.is_empty()),
                annotations: template.metadata.annotations.clone(),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        }
    };
    spec.volume_claim_templates.iter().flatten().map(claim).collect()
}

/// The Pod of an ordinal, from a template and under the name of its revision.
pub(super) fn pod(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    template: &PodTemplateSpec,
    revision: &str,
    ordinal: i32,
) -> Pod {
    let prefix = format!("{}-", set.metadata.name.as_deref().unwrap_or_default());
    let name = format!("{prefix}{ordinal}");
    // The prefix stays beside the name, as Kubernetes leaves it there.
    let mut pod = pod_control::from_template(template, &prefix);
    pod.metadata.name = Some(name.clone());
    identify(&mut pod, ordinal);
    pod.metadata.labels.get_or_insert_default().insert(history::HASH.into(), revision.to_owned());
    let body = pod.spec.get_or_insert_default();
    body.hostname = Some(name);
    body.subdomain = spec.service_name.clone().filter(|name| !name.is_empty());
    store(set, spec, &mut pod, ordinal);
    pod
}

/// Gives a Pod the labels of its ordinal.
pub(super) fn identify(pod: &mut Pod, ordinal: i32) {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.into(), name);
    labels.insert(POD_INDEX.into(), ordinal.to_string());
}

/// Whether a Pod has the label with its name.
pub(super) fn is_identified(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(POD_NAME)) == pod.metadata.name.as_ref()
}

/// Gives a Pod its claims as volumes, in place of volumes of the same name.
fn store(set: &StatefulSet, spec: &StatefulSetSpec, pod: &mut Pod, ordinal: i32) {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let own = |template: &PersistentVolumeClaim| Volume {
        name: template.metadata.name.clone().unwrap_or_default(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(template, name, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    };
    let mut volumes: Vec<Volume> = spec.volume_claim_templates.iter().flatten().map(own).collect();
    let body = pod.spec.get_or_insert_default();
    for volume in body.volumes.take().unwrap_or_default() {
        if !volumes.iter().any(|own| own.name == volume.name) {
            volumes.push(volume);
        }
    }
    body.volumes = Some(volumes).filter(|volumes| !volumes.is_empty());
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::PodFixture;

    fn set() -> StatefulSet {
        from_value(json!({
            "metadata": {"name": "db", "namespace": "shop"},
            "spec": {
                "replicas": 3, "serviceName": "db", "ordinals": {"start": 2},
                "selector": {"matchLabels": {"app": "db"}},
                "template": {"spec": {"containers": [], "volumes": [{"name": "data"}, {"name": "tmp"}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn names_give_parents_and_ordinals() {
        assert_eq!((parent(&Pod::test("db-0-12")), ordinal(&Pod::test("db-0-12"))), (Some("db-0"), Some(12)));
        assert_eq!(ordinal(&Pod::test("db-x")), None);
        assert_eq!(ordinal(&Pod::test("db-+1")), None);
        assert_eq!(ordinals(&set().spec), 2..5);
        assert!(may_claim(&set(), "data-db-7") && !may_claim(&set(), "data-db2-7"));
    }

    #[test]
    fn a_pod_has_a_name_a_host_name_and_its_own_volumes() {
        let set = set();
        let spec = set.spec.clone();
        let pod = pod(&set, &spec, &spec.template, "db-abc", 3);
        assert_eq!(pod.metadata.name.as_deref(), Some("db-3"));
        assert!(is_identified(&pod));
        assert_eq!(revision(&pod), "db-abc");
        let body = pod.spec.unwrap();
        assert_eq!((body.hostname.as_deref(), body.subdomain.as_deref()), (Some("db-3"), Some("db")));
        let volumes = body.volumes.unwrap();
        assert_eq!(volumes.len(), 2);
        assert_eq!(volumes[0].persistent_volume_claim.as_ref().unwrap().claim_name, "data-db-3");
        assert_eq!(claims(&set, &spec, 3)[0].metadata.labels.as_ref().unwrap()["app"], "db");
    }
}
