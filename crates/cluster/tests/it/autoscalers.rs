//! HorizontalPodAutoscalers, with the usage that Pods are annotated with.

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler},
    kube::Client,
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, events, merge, wait, wait_complete};

fn using(cpu: &str) -> Value {
    json!({"spec": {"template": {
        "metadata": {"annotations": {"windlass.dev/usage.cpu": cpu}},
        "spec": {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]},
    }}})
}

fn autoscaler(target: &str) -> HorizontalPodAutoscaler {
    decode(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": target},
        "spec": {
            "minReplicas": 1, "maxReplicas": 6,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {
                "type": "Utilization", "averageUtilization": 50}}}],
        },
    }))
}

async fn wait_replicas(client: &Client, replicas: i32) {
    wait(api::<Deployment>(client), "web", "scaled", move |web| {
        web.is_some_and(|web| web.spec.replicas == Some(replicas))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn usage_above_the_target_makes_more_pods_and_below_it_fewer_after_a_while() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 2)).await;
    merge::<Deployment>(&client, "web", using("100m")).await;
    wait_complete(&client, "web").await;
    create(&client, &autoscaler("web")).await;
    wait(api::<HorizontalPodAutoscaler>(&client), "web", "scaling", |autoscaler| {
        autoscaler
            .and_then(|autoscaler| autoscaler.status.as_ref())
            .is_some_and(|s| s.last_scale_time.is_some())
    })
    .await;
    wait_replicas(&client, 6).await;
    let lines = events(&client, "HorizontalPodAutoscaler", "web").await;
    let first = "SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target";
    assert!(lines.contains(&first.to_owned()), "{lines:?}");
    merge::<Deployment>(&client, "web", using("10m")).await;
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    let held = api::<Deployment>(&client).get("web").await.unwrap();
    assert_eq!(held.spec.replicas, Some(6), "a high recommendation holds for five minutes");
    tokio::time::sleep(std::time::Duration::from_mins(4)).await;
    // A fifth of the target on six Pods is work for two.
    wait_replicas(&client, 2).await;
}

#[tokio::test(start_paused = true)]
async fn pods_without_metrics_are_left_alone_and_the_reason_is_told() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 2)).await;
    wait_complete(&client, "web").await;
    create(&client, &autoscaler("web")).await;
    let told = wait(api::<HorizontalPodAutoscaler>(&client), "web", "inactive", |autoscaler| {
        let conditions = autoscaler.and_then(|a| a.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "ScalingActive" && c.status == "False"))
    })
    .await
    .unwrap();
    let status = told.status.unwrap();
    let active = status.conditions.unwrap().into_iter().find(|c| c.type_ == "ScalingActive").unwrap();
    assert_eq!(active.reason.as_deref(), Some("FailedGetResourceMetric"));
    assert_eq!(status.current_replicas, Some(2));
}
