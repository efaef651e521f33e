//! Memcached: the common suite, and what its seed got wrong.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use windlass::Operator;
use windlass_operators::{
    memcached::{Memcached, controller},
    workload::Settings,
};

use crate::{
    bed::{Bed, eventually},
    suite::Subject,
};

pub(crate) const SUBJECT: Subject = Subject {
    name: "memcached",
    size_field: "size",
    current_field: "replicas",
    spec: || json!({"image": "memcached:1.6"}),
    other_image: "memcached:1.6.38",
    flat: false,
};

pub(crate) fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(200)), ..Settings::default() };
    Operator::new("memcached-operator")
        .crd::<Memcached>()
        .controller(controller(settings).namespace(namespace))
}

crate::suite::suite!(SUBJECT, operator);
crate::crash::crash_test!(SUBJECT, operator);

on_both_clusters! { operator =>
    nodes_are_the_pods_that_serve
    a_same_named_deployment_is_not_taken_over
    a_budget_comes_with_the_second_node_and_goes_with_it
    a_size_beyond_ten_is_refused
    a_key_taken_out_of_a_selector_goes
}

async fn a_key_taken_out_of_a_selector_goes(bed: Bed) {
    let mut object = SUBJECT.object("it", 1);
    object["spec"]["pod"] = json!({"nodeSelector": {"kubernetes.io/os": "linux", "zone": "a"}});
    SUBJECT.create(&bed, object).await;
    let selector = async |wanted: serde_json::Value| {
        eventually("the Deployment has the selector", || async {
            let deployment = bed.api::<Deployment>().get_opt("it").await.unwrap()?;
            let selector = deployment.spec.template.spec?.node_selector?;
            (json!(selector) == wanted).then_some(())
        })
        .await;
    };
    selector(json!({"kubernetes.io/os": "linux", "zone": "a"})).await;
    let change = json!({"spec": {"pod": {"nodeSelector": {"zone": null}}}});
    bed.dynamic("memcached").patch("it", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    selector(json!({"kubernetes.io/os": "linux"})).await;
}

async fn nodes_are_the_pods_that_serve(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 3)).await;
    SUBJECT.settled(&bed, "it", 3).await;
    eventually("the nodes are the Pods, not an invented name", || async {
        let object = bed.dynamic("memcached").get("it").await.unwrap();
        (object.data["status"]["nodes"] == json!(bed.pod_names().await)).then_some(())
    })
    .await;
    let service = bed.api::<Service>().get("it").await.unwrap().spec.unwrap();
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    assert_eq!(service.ports.unwrap()[0].port, 11211);
}

async fn a_same_named_deployment_is_not_taken_over(bed: Bed) {
    bed.expects("NameConflict");
    let foreign: Deployment = bed
        .create(json!({
            "metadata": {"name": "it"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "theirs"}},
                "template": {
                    "metadata": {"labels": {"app": "theirs"}},
                    "spec": {"containers": [{"name": "theirs", "image": "nginx:1.27"}]},
                },
            },
        }))
        .await;
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    let message = SUBJECT.condition(&bed, "it", "Degraded", "True", "NameConflict").await;
    assert!(message.contains("Deployment"), "{message}");
    let after = bed.api::<Deployment>().get("it").await.unwrap();
    assert_eq!((&after.spec, after.owner_references().len()), (&foreign.spec, 0), "it was not touched");
}

async fn a_budget_comes_with_the_second_node_and_goes_with_it(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    SUBJECT.settled(&bed, "it", 1).await;
    assert_eq!(bed.count::<PodDisruptionBudget>().await, 0);
    SUBJECT.resize(&bed, "it", 2).await;
    SUBJECT.settled(&bed, "it", 2).await;
    assert_eq!(bed.count::<PodDisruptionBudget>().await, 1);
    SUBJECT.resize(&bed, "it", 1).await;
    SUBJECT.settled(&bed, "it", 1).await;
    eventually("the budget is gone", || async {
        (bed.count::<PodDisruptionBudget>().await == 0).then_some(())
    })
    .await;
}

async fn a_size_beyond_ten_is_refused(bed: Bed) {
    for size in [0, 11] {
        assert_eq!(SUBJECT.refusal(&bed, SUBJECT.object("it", size)).await.code, 422);
    }
}
