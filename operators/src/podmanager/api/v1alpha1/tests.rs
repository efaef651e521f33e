//! Nothing is lost between the versions.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ResourceRequirements, Toleration},
    apimachinery::pkg::api::resource::Quantity,
};
use proptest::{option, prelude::*};
use windlass::webhook::Spoke;

use super::{Container, PodManager, PodManagerSpec};
use crate::{
    podmanager::api,
    workload::{ImagePullPolicy, PodOptions},
};

fn policies() -> impl Strategy<Value = Option<ImagePullPolicy>> {
    option::of(prop_oneof![
        Just(ImagePullPolicy::Always),
        Just(ImagePullPolicy::IfNotPresent),
        Just(ImagePullPolicy::Never),
    ])
}

fn resources() -> impl Strategy<Value = Option<ResourceRequirements>> {
    option::of((1_u32..1000).prop_map(|cpu| ResourceRequirements {
        requests: Some(BTreeMap::from([("cpu".to_owned(), Quantity(format!("{cpu}m")))])),
        ..ResourceRequirements::default()
    }))
}

fn words() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[a-z]{1,8}", ".{0,12}", 0..3)
}

prop_compose! {
    fn options()(
        annotations in words(), node_selector in words(), image_pull_policy in policies(), resources in resources(),
        grace in option::of(0_i64..600), account in option::of("[a-z]{1,8}"), tolerated in option::of("[a-z]{1,8}"),
    ) -> PodOptions {
        let toleration = |key| Toleration { key: Some(key), ..Toleration::default() };
        PodOptions {
            annotations, node_selector, image_pull_policy, resources,
            termination_grace_period_seconds: grace,
            service_account_name: account,
            tolerations: tolerated.map(toleration).into_iter().collect(),
            ..PodOptions::default()
        }
    }
}

prop_compose! {
    fn hubs()(
        replicas in 1_i32..1000, image in "[a-z]{1,8}(:[a-z0-9]{1,8})?", pod in option::of(options()),
        annotations in option::of(prop::collection::btree_map("[a-z]{1,8}", ".{0,12}", 1..3)),
    ) -> api::PodManager {
        let mut hub = api::PodManager::new("it", api::PodManagerSpec { replicas, image, pod });
        hub.metadata.annotations = annotations;
        hub
    }
}

prop_compose! {
    fn spokes()(
        size in 1_i32..1000, image in "[a-z]{1,8}", image_pull_policy in policies(), resources in resources(),
    ) -> PodManager {
        PodManager::new("it", PodManagerSpec { size, container: Container { image, image_pull_policy, resources } })
    }
}

proptest! {
    #[test]
    fn a_hub_comes_back_from_the_spoke_as_it_was(hub in hubs()) {
        let spoke = PodManager::from_hub(hub.clone()).unwrap();
        prop_assert_eq!(spoke.into_hub().unwrap(), hub);
    }

    #[test]
    fn a_spoke_comes_back_from_the_hub_as_it_was(spoke in spokes()) {
        let hub = spoke.clone().into_hub().unwrap();
        prop_assert_eq!(PodManager::from_hub(hub).unwrap(), spoke);
    }

    #[test]
    fn what_the_spoke_can_say_is_the_spokes_to_change(hub in hubs(), size in 1_i32..1000, image in "[a-z]{1,8}") {
        let mut spoke = PodManager::from_hub(hub.clone()).unwrap();
        spoke.spec.size = size;
        spoke.spec.container.image.clone_from(&image);
        let changed = api::PodManagerSpec { replicas: size, image, pod: hub.spec.pod.clone() };
        prop_assert_eq!(spoke.into_hub().unwrap().spec, changed);
    }
}

#[test]
fn what_the_spoke_can_say_needs_no_annotation() {
    let spec = api::PodManagerSpec { replicas: 2, image: "nginx:1.27".into(), pod: None };
    let spoke = PodManager::from_hub(api::PodManager::new("it", spec)).unwrap();
    assert_eq!(spoke.metadata.annotations, None);
}
