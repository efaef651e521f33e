//! Names that someone else has.

use super::*;

pub(super) async fn a_foreign_deployment_is_reported_and_left_alone(bed: Bed) {
    bed.expects("NameConflict");
    let deployments = bed.api::<Deployment>();
    let foreign: Deployment = serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "theirs"}},
            "template": {
                "metadata": {"labels": {"app": "theirs"}},
                "spec": {"containers": [{"name": "theirs", "image": "nginx:1.27"}]},
            },
        },
    }))
    .unwrap();
    let theirs = deployments.create(&PostParams::default(), &foreign).await.unwrap();
    create(&bed, &web("web", 1)).await;

    let degraded = condition(&bed, "web", DEGRADED, "True", "NameConflict").await;
    assert!(degraded.message.contains("Deployment"), "{}", degraded.message);
    condition(&bed, "web", READY, "False", "NameConflict").await;
    let after = deployments.get("web").await.unwrap();
    assert_eq!((&after.spec, after.owner_references().len()), (&theirs.spec, 0), "it was not touched");
    assert_eq!(bed.count::<Service>().await, 0, "nothing half-made is left around");

    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    settled(&bed, "web", 1).await;
}

pub(super) async fn a_foreign_service_is_reported_and_left_alone(bed: Bed) {
    bed.expects("NameConflict");
    let services = bed.api::<Service>();
    let foreign: Service = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 9999}]},
    }))
    .unwrap();
    services.create(&PostParams::default(), &foreign).await.unwrap();
    create(&bed, &web("web", 1)).await;
    let degraded = condition(&bed, "web", DEGRADED, "True", "NameConflict").await;
    assert!(degraded.message.contains("Service"), "{}", degraded.message);
    let after = services.get("web").await.unwrap();
    assert!(after.owner_references().is_empty());
    assert_eq!(after.spec.unwrap().ports.unwrap()[0].port, 9999);
}
