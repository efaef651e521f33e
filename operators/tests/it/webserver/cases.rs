//! What works.

use super::*;

pub(super) async fn a_webserver_gets_its_children_and_becomes_ready(bed: Bed) {
    // Written as a user writes it; the server fills in the rest.
    let body = json!({
        "apiVersion": "webserver.example.com/v1",
        "kind": "WebServer",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent"},
    });
    let created: WebServer = serde_json::from_value(body).unwrap();
    let created = create(&bed, &created).await;
    assert_eq!(created.spec.port, 80, "the default");

    let web = settled(&bed, "web", 2).await;
    let deployment = bed.api::<Deployment>().get("web").await.unwrap();
    let service = bed.api::<Service>().get("web").await.unwrap();
    assert_owned(&deployment, &web);
    assert_owned(&service, &web);
    assert_eq!(deployment.spec.replicas, Some(2));
    let pod = deployment.spec.template.spec.unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some("nginx:1.27"));
    let service = service.spec.unwrap();
    assert_eq!(service.ports.unwrap()[0].port, 80);
    assert_eq!(service.selector, deployment.spec.selector.match_labels);

    let status = web.status.unwrap();
    assert_eq!((status.updated_replicas, status.available_replicas), (2, 2));
    assert!(!conditions::holds(&status.conditions, DEGRADED));
    let pods = ListParams::default().labels(&status.selector);
    assert_eq!(bed.api::<Pod>().list(&pods).await.unwrap().items.len(), 2, "the selector finds the Pods");
    recorded(&bed, "Applied").await;
    recorded(&bed, "Ready").await;
}

/// Waits for an event with this reason about the WebServer.
async fn recorded(bed: &Bed, reason: &str) {
    eventually(&format!("the event {reason}"), || async {
        let events = bed.api::<Event>().list(&ListParams::default()).await.unwrap();
        events.items.into_iter().find(|event| {
            let regarding = event.regarding.as_ref().and_then(|regarding| regarding.kind.as_deref());
            event.reason.as_deref() == Some(reason) && regarding == Some("WebServer")
        })
    })
    .await;
}

pub(super) async fn replicas_change_by_patch_and_by_the_scale_subresource(bed: Bed) {
    create(&bed, &web("web", 1)).await;
    settled(&bed, "web", 1).await;
    let api = bed.api::<WebServer>();
    merge(&api, "web", &json!({"spec": {"replicas": 3}})).await;
    settled(&bed, "web", 3).await;

    let scale = api.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    let seen = scale.status.unwrap();
    assert_eq!(seen.replicas, 3);
    let pods = ListParams::default().labels(&seen.selector.unwrap());
    assert_eq!(bed.api::<Pod>().list(&pods).await.unwrap().items.len(), 3, "the selector finds the Pods");

    let two = json!({"spec": {"replicas": 2}});
    api.patch_scale("web", &PatchParams::default(), &Patch::Merge(&two)).await.unwrap();
    settled(&bed, "web", 2).await;
    let deployment = bed.api::<Deployment>().get("web").await.unwrap();
    assert_eq!(deployment.spec.replicas, Some(2));
}

pub(super) async fn drift_is_reverted(bed: Bed) {
    create(&bed, &web("web", 1)).await;
    settled(&bed, "web", 1).await;
    let deployments = bed.api::<Deployment>();
    merge(&deployments, "web", &json!({"spec": {"replicas": 4}})).await;
    eventually("the replicas are reverted", || async {
        let deployment = deployments.get("web").await.unwrap();
        (deployment.spec.replicas == Some(1)).then_some(())
    })
    .await;

    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "webserver", "image": "nginx:1"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(&image)).await.unwrap();
    eventually("the image is reverted", || async {
        let pod = deployments.get("web").await.unwrap().spec.template.spec?;
        (pod.containers[0].image.as_deref() == Some("nginx:1.27")).then_some(())
    })
    .await;

    let services = bed.api::<Service>();
    merge(&services, "web", &json!({"spec": {"selector": {"webserver.example.com/uid": "another"}}})).await;
    eventually("the selector is reverted", || async {
        let selector = services.get("web").await.unwrap().spec?.selector?;
        let expected = deployments.get("web").await.unwrap().spec.selector.match_labels;
        (Some(selector) == expected).then_some(())
    })
    .await;

    let old = services.get("web").await.unwrap();
    services.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("the Service is back", || async {
        let new = services.get_opt("web").await.unwrap()?;
        (new.metadata.uid != old.metadata.uid).then_some(())
    })
    .await;
    settled(&bed, "web", 1).await;
}

pub(super) async fn content_is_mounted_rolled_and_removed(bed: Bed) {
    let mut object = web("web", 1);
    object.spec.content.insert("index.html".into(), "hello".into());
    create(&bed, &object).await;
    settled(&bed, "web", 1).await;
    let maps = bed.api::<ConfigMap>();
    assert_eq!(maps.get("web-content").await.unwrap().data.unwrap()["index.html"], "hello");
    let before = bed.pod_names().await;

    merge(&bed.api::<WebServer>(), "web", &json!({"spec": {"content": {"index.html": "bye"}}})).await;
    eventually("the Pods were rolled", || async {
        let now = bed.pod_names().await;
        (now.len() == 1 && now != before).then_some(())
    })
    .await;
    settled(&bed, "web", 1).await;
    assert_eq!(maps.get("web-content").await.unwrap().data.unwrap()["index.html"], "bye");

    merge(&bed.api::<WebServer>(), "web", &json!({"spec": {"content": null}})).await;
    eventually("the ConfigMap is gone with its part of the spec", || async {
        maps.get_opt("web-content").await.unwrap().is_none().then_some(())
    })
    .await;
    settled(&bed, "web", 1).await;
}
