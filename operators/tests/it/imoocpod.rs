//! ImoocPod: the common suite, and what its seed got wrong.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;
use windlass::Operator;
use windlass_operators::{
    imoocpod::{ImoocPod, controller},
    workload::Settings,
};

use crate::{
    bed::{Bed, eventually},
    suite::Subject,
};

pub(crate) const SUBJECT: Subject = Subject {
    name: "imoocpod",
    size_field: "replicas",
    current_field: "replicas",
    spec: || json!({"image": "busybox:1.37", "pod": {"imagePullPolicy": "IfNotPresent"}}),
    other_image: "busybox:1",
    flat: false,
};

pub(crate) fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(200)), ..Settings::default() };
    Operator::new("imoocpod-operator").crd::<ImoocPod>().controller(controller(settings).namespace(namespace))
}

crate::suite::suite!(SUBJECT, operator);
crate::crash::crash_test!(SUBJECT, operator);

on_both_clusters! { operator =>
    pods_are_named_labelled_and_owned
    foreign_pods_with_the_label_are_neither_counted_nor_killed
    a_pod_that_is_killed_comes_back_by_its_watch
    unbounded_replicas_are_refused
}

async fn pods_are_named_labelled_and_owned(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 3)).await;
    let status = SUBJECT.settled(&bed, "it", 3).await;
    let pods = bed.pods().await;
    for pod in &pods {
        assert!(pod.name_any().starts_with("it-pod"), "{}", pod.name_any());
        assert_eq!(pod.labels()["app"], "it");
        assert_eq!(pod.owner_references()[0].kind, "ImoocPod");
    }
    assert_eq!(status["podNames"], json!(bed.pod_names().await));
}

async fn foreign_pods_with_the_label_are_neither_counted_nor_killed(bed: Bed) {
    let theirs: Pod = bed
        .create(json!({
            "metadata": {"name": "theirs", "labels": {"app": "it"}},
            "spec": {"containers": [{
                "name": "a", "image": "busybox:1.37", "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "3600"],
            }], "terminationGracePeriodSeconds": 0},
        }))
        .await;
    SUBJECT.create(&bed, SUBJECT.object("it", 2)).await;
    SUBJECT.settled(&bed, "it", 2).await;
    assert_eq!(bed.pods().await.len(), 3);
    SUBJECT.resize(&bed, "it", 0).await;
    SUBJECT.settled(&bed, "it", 0).await;
    eventually("its own Pods are gone", || async { (bed.count::<Pod>().await == 1).then_some(()) }).await;
    let left = bed.api::<Pod>().get("theirs").await.unwrap();
    assert_eq!((left.uid(), left.owner_references().len()), (theirs.uid(), 0));
}

async fn a_pod_that_is_killed_comes_back_by_its_watch(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 2)).await;
    SUBJECT.settled(&bed, "it", 2).await;
    let before = bed.pod_names().await;
    bed.api::<Pod>().delete(&before[0], &DeleteParams::default()).await.unwrap();
    eventually("another Pod has taken its place", || async {
        let now = bed.pod_names().await;
        (now.len() == 2 && now != before).then_some(())
    })
    .await;
    SUBJECT.settled(&bed, "it", 2).await;
}

async fn unbounded_replicas_are_refused(bed: Bed) {
    for replicas in [-1, 101] {
        assert_eq!(SUBJECT.refusal(&bed, SUBJECT.object("it", replicas)).await.code, 422);
    }
}
