//! ResourceQuotas, and ReplicationControllers that use them up.

use serde_json::json;
use windlass::k8s_openapi::api::core::v1::{ReplicationController, ResourceQuota};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, list, merge, wait};

#[tokio::test]
async fn a_quota_shows_what_is_used() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let quota: ResourceQuota = decode(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
        "spec": {"hard": {
            "pods": "10", "requests.cpu": "4", "count/replicationcontrollers": "5", "services": "3"}},
    }));
    create(&client, &quota).await;
    let workers: ReplicationController = decode(json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old"},
        "spec": {
            "replicas": 3, "selector": {"app": "old"},
            "template": {
                "metadata": {"labels": {"app": "old"}},
                "spec": {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "250m"}}}]},
            },
        },
    }));
    create(&client, &workers).await;
    wait(api::<ReplicationController>(&client), "old", "ready", |old| {
        old.and_then(|old| old.status.as_ref()?.ready_replicas) == Some(3)
    })
    .await;
    let used = |pods: &'static str, cpu: &'static str| {
        move |quota: Option<&ResourceQuota>| {
            let used = quota.and_then(|quota| quota.status.as_ref()?.used.clone()).unwrap_or_default();
            let is = |name: &str, amount: &str| used.get(name).is_some_and(|found| found.0 == amount);
            is("pods", pods) && is("requests.cpu", cpu)
        }
    };
    let full = wait(api::<ResourceQuota>(&client), "team", "used", used("3", "750m")).await.unwrap();
    assert_eq!(full.status.unwrap().used.unwrap()["services"].0, "1");
    merge::<ReplicationController>(&client, "old", json!({"spec": {"replicas": 1}})).await;
    wait(api::<ResourceQuota>(&client), "team", "given back", used("1", "250m")).await;
    assert_eq!(list::<windlass::k8s_openapi::api::core::v1::Pod>(&client, "app=old").await.len(), 1);
}
