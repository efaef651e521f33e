//! Build, without a cluster.

use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;

use super::{PodManager, build, sample};
use crate::workload::fleet::{self, HASH};

fn manager() -> PodManager {
    let mut manager = sample();
    manager.metadata.uid = Some("u-1".into());
    manager
}

#[test]
fn a_pod_is_what_the_specification_says() {
    let manager = manager();
    let template = build::template(&manager);
    let pod = build::pod("my-pod-manager-2".into(), &template, "abc", 0);
    assert_eq!(pod.name_any(), "my-pod-manager-2");
    let labels = json!({
        "app": "my-app", "podmanager": "my-pod-manager", "podmanager-uid": "u-1", HASH: "abc",
    });
    assert_eq!(serde_json::to_value(pod.labels()).unwrap(), labels);
    let container = &pod.spec.unwrap().containers[0];
    assert_eq!((container.name.as_str(), container.image.as_deref()), ("app", Some("nginx:1.27")));
}

#[test]
fn the_hash_of_a_template_is_that_of_the_last_release() {
    // Another one would replace every Pod of every PodManager when the operator is upgraded.
    assert_eq!(fleet::hash(&build::template(&manager())), "9c550fc1b9");
}

#[test]
fn the_lowest_free_indexes_are_taken_first() {
    let manager = sample();
    let first = |taken: &[&str]| {
        let places = build::Places::new(&manager, taken.iter().map(|name| (*name).to_owned()));
        [places.next(), places.next()]
    };
    assert_eq!(first(&[]), ["my-pod-manager-0", "my-pod-manager-1"]);
    assert_eq!(first(&["my-pod-manager-0", "my-pod-manager-2"]), ["my-pod-manager-1", "my-pod-manager-3"]);
}

#[test]
fn the_hash_changes_with_the_image_and_not_with_the_number() {
    let hash = |manager: &PodManager| fleet::hash(&build::template(manager));
    let mut changed = manager();
    changed.spec.replicas = 9;
    assert_eq!(hash(&changed), hash(&manager()));
    changed.spec.image = "nginx:alpine".into();
    assert_ne!(hash(&changed), hash(&manager()));
}

#[test]
fn what_the_schema_refuses_the_controller_refuses_too() {
    let mut bad = manager();
    bad.spec.replicas = 0;
    assert_eq!(build::check(&bad).unwrap_err().reason, "InvalidSpec");
    let mut long = manager();
    long.metadata.name = Some("a".repeat(64));
    assert_eq!(build::check(&long).unwrap_err().reason, "InvalidName");
}

#[test]
fn the_catalogue_names_each_kind_as_its_crd_does() {
    for crd in crate::operator("all", crate::catalogue()).crds() {
        let served = |version: &str| crd.spec.versions.iter().any(|known| known.name == version);
        let found = crate::catalogue().iter().any(|entry| {
            let (group, version) = entry.api_version.split_once('/').unwrap();
            entry.kind == crd.spec.names.kind
                && entry.plural == crd.spec.names.plural
                && group == crd.spec.group
                && served(version)
        });
        assert!(found, "{} is not in the catalogue", crd.name_any());
    }
    assert_eq!(PodManager::crd().name_any(), "podmanagers.apps.mycompany.com");
}
