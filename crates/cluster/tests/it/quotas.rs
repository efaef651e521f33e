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

#[tokio::test]
async fn a_quota_is_never_exceeded_by_writers_in_a_hurry() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let quota: ResourceQuota = decode(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
        "spec": {"hard": {"pods": "5", "count/leases.coordination.k8s.io": "3"}},
    }));
    create(&client, &quota).await;
    wait(api::<ResourceQuota>(&client), "team", "counted", |quota| {
        quota.and_then(|quota| quota.status.as_ref()?.used.as_ref()?.get("pods").cloned()).is_some()
    })
    .await;
    let writers = (0..8).map(|writer| {
        let client = client.clone();
        async move {
            let mut made = 0;
            for index in 0..3 {
                let pod: windlass::k8s_openapi::api::core::v1::Pod = decode(json!({
                    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p-{writer}-{index}")},
                    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
                }));
                match api::<windlass::k8s_openapi::api::core::v1::Pod>(&client)
                    .create(&windlass::kube::api::PostParams::default(), &pod)
                    .await
                {
                    Ok(_) => made += 1,
                    Err(windlass::kube::Error::Api(refusal)) => {
                        assert!(refusal.message.contains("exceeded quota: team"), "{}", refusal.message);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            made
        }
    });
    let made: usize = futures::future::join_all(writers).await.into_iter().sum();
    assert_eq!(made, 5);
    wait(api::<ResourceQuota>(&client), "team", "full", |quota| {
        let used = quota.and_then(|quota| quota.status.as_ref()?.used.clone()).unwrap_or_default();
        used.get("pods").is_some_and(|pods| pods.0 == "5")
            && used.get("count/leases.coordination.k8s.io").is_some_and(|leases| leases.0 == "0")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_given_back_at_once() {
    use windlass::{
        k8s_openapi::api::networking::v1::NetworkPolicy,
        kube::api::{DeleteParams, PostParams},
    };
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let hard = json!({"count/networkpolicies.networking.k8s.io": "1"});
    create(&client, &decode::<ResourceQuota>(json!({"metadata": {"name": "team"}, "spec": {"hard": hard}})))
        .await;
    let used = async |count: &'static str| {
        wait(api::<ResourceQuota>(&client), "team", count, move |quota| {
            let used = quota.and_then(|quota| quota.status.as_ref()?.used.clone()).unwrap_or_default();
            used.values().any(|used| used.0 == count)
        })
        .await;
    };
    used("0").await;
    let policy = |name: &str| {
        decode::<NetworkPolicy>(json!({"metadata": {"name": name}, "spec": {"podSelector": {}}}))
    };
    create(&client, &policy("one")).await;
    used("1").await;
    let policies = api::<NetworkPolicy>(&client);
    assert!(policies.create(&PostParams::default(), &policy("two")).await.is_err());
    policies.delete("one", &DeleteParams::default()).await.unwrap();
    // Half a minute, which is all that `wait` has, is far less than the time between two recounts.
    used("0").await;
    create(&client, &policy("two")).await;
}
