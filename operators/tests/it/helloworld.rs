//! HelloWorld: the common suite, and the names of its Pods.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::api::DeleteParams;
use serde_json::json;
use windlass::Operator;
use windlass_operators::{
    helloworld::{HelloWorld, controller},
    workload::Settings,
};

use crate::{
    bed::{Bed, eventually},
    suite::Subject,
};

pub(crate) const SUBJECT: Subject = Subject {
    name: "helloworld",
    size_field: "size",
    current_field: "replicas",
    spec: || json!({"image": "nginx:1.27", "pod": {"imagePullPolicy": "IfNotPresent"}}),
    other_image: "nginx:alpine",
    flat: false,
};

pub(crate) fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(200)), ..Settings::default() };
    Operator::new("helloworld-operator")
        .crd::<HelloWorld>()
        .controller(controller(settings).namespace(namespace))
}

crate::suite::suite!(SUBJECT, operator);
crate::crash::crash_test!(SUBJECT, operator);

on_both_clusters! { operator =>
    nodes_are_the_real_pod_names_sorted
    a_negative_size_is_refused
    size_drift_is_corrected
    size_zero_is_ready_with_no_nodes
}

async fn nodes_are_the_real_pod_names_sorted(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 3)).await;
    SUBJECT.settled(&bed, "it", 3).await;
    let nodes_match = || async {
        let object = bed.dynamic("helloworld").get("it").await.unwrap();
        let names = bed.pod_names().await;
        (object.data["status"]["nodes"] == json!(names) && names.len() == 3).then_some(names)
    };
    let names = eventually("the nodes are the Pods", nodes_match).await;
    // There was no Pod watch in the seed: a Pod that is replaced changed nothing.
    bed.api::<Pod>().delete(&names[0], &DeleteParams::default()).await.unwrap();
    eventually("the nodes follow a Pod that was replaced", || async {
        let now = nodes_match().await?;
        (now != names).then_some(())
    })
    .await;
}

async fn a_negative_size_is_refused(bed: Bed) {
    let status = SUBJECT.refusal(&bed, SUBJECT.object("it", -1)).await;
    assert_eq!(status.code, 422);
    assert!(status.message.contains("should be greater than or equal to 0"), "{}", status.message);
}

async fn size_drift_is_corrected(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    SUBJECT.settled(&bed, "it", 1).await;
    let deployments = bed.api::<Deployment>();
    let drift = kube::api::Patch::Merge(json!({"spec": {"replicas": 4}}));
    deployments.patch("it", &kube::api::PatchParams::default(), &drift).await.unwrap();
    eventually("the size is corrected", || async {
        (deployments.get("it").await.unwrap().spec.replicas == Some(1)).then_some(())
    })
    .await;
    let selector = deployments.get("it").await.unwrap().spec.selector.match_labels.unwrap();
    assert_eq!(serde_json::to_value(selector).unwrap(), json!({"hello_name": "it"}));
}

async fn size_zero_is_ready_with_no_nodes(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 0)).await;
    let status = SUBJECT.settled(&bed, "it", 0).await;
    assert_eq!(status["nodes"], json!([]));
}
