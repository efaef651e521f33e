//! nginx behind a WebServer and a WebApp.

use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};

use super::visitor::Visitor;
use crate::{
    bed::{Bed, eventually},
    suite::Subject,
};

pub(super) async fn webserver(bed: Bed) {
    rolls_without_a_dropped_request(bed, crate::webserver::SUBJECT).await;
}

pub(super) async fn webapp(bed: Bed) {
    rolls_without_a_dropped_request(bed, crate::webapp::SUBJECT).await;
}

/// The image, the number of Pods and the image again change under requests that never pause.
async fn rolls_without_a_dropped_request(bed: Bed, subject: Subject) {
    let mut object = subject.object("it", 2);
    object["spec"]["image"] = "nginx:1.22.1".into();
    subject.create(&bed, object).await;
    subject.settled(&bed, "it", 2).await;
    let service = bed.api::<Service>().get("it").await.unwrap().spec.unwrap();
    let visitor = Visitor::steady(&bed, &service.cluster_ip.unwrap(), "80").await;
    visitor.says("ok", 5).await;

    let image = |name: &str| json!({"spec": {"image": name}});
    changes(&bed, subject, image("nginx:1.22.1-next"), 2).await;
    visitor.says("next", 5).await;
    changes(&bed, subject, json!({"spec": {"replicas": 1}}), 1).await;
    changes(&bed, subject, image("nginx:1.22.1"), 1).await;
    visitor.says("ok", 5).await;
    let said = visitor.said().await;
    let bad: Vec<&String> = said.iter().filter(|line| line.starts_with("bad")).collect();
    assert!(bad.is_empty(), "of about {} requests were lost: {bad:#?}", said.len() * 10);
}

/// Makes a change, and waits until it is through and the last old Pod is gone.
async fn changes(bed: &Bed, subject: Subject, patch: Value, size: usize) {
    subject.merge(bed, "it", patch).await;
    subject.settled(bed, "it", i32::try_from(size).unwrap()).await;
    eventually("the old Pods are gone", || async {
        // The visitor is one of them.
        (bed.count::<Pod>().await == size + 1).then_some(())
    })
    .await;
}
