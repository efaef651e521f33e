//! PodDisruptionBudgets: how many Pods may go.

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{apps::v1::Deployment, policy::v1::PodDisruptionBudget},
    kube::Client,
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, merge, wait, wait_complete};

fn budget(name: &str, fields: Value) -> PodDisruptionBudget {
    let mut budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    for (key, value) in fields.as_object().unwrap() {
        budget["spec"][key] = value.clone();
    }
    decode(budget)
}

async fn wait_allowed(client: &Client, name: &str, allowed: i32) -> PodDisruptionBudget {
    let found = wait(api::<PodDisruptionBudget>(client), name, "settled", move |budget| {
        budget.and_then(|budget| budget.status.as_ref()?.disruptions_allowed) == Some(allowed)
    });
    found.await.expect("the budget must be there")
}

#[tokio::test]
async fn a_budget_follows_the_pods_that_are_ready() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 4)).await;
    wait_complete(&client, "web").await;
    create(&client, &budget("least", json!({"minAvailable": 3}))).await;
    create(&client, &budget("half", json!({"maxUnavailable": "50%"}))).await;
    let least = wait_allowed(&client, "least", 1).await.status.unwrap();
    assert_eq!(
        (least.current_healthy, least.desired_healthy, least.expected_pods),
        (Some(4), Some(3), Some(4))
    );
    assert_eq!(least.conditions.unwrap()[0].reason, "SufficientPods");
    wait_allowed(&client, "half", 2).await;
    merge::<Deployment>(&client, "web", json!({"spec": {"replicas": 3}})).await;
    let none = wait_allowed(&client, "least", 0).await.status.unwrap();
    assert_eq!(none.conditions.unwrap()[0].reason, "InsufficientPods");
}

/// Pods of a custom resource count as many as its `/scale` says; those of a kind without one cannot be counted.
#[tokio::test(start_paused = true)]
async fn a_budget_asks_custom_resources_for_their_scale() {
    use windlass::{
        k8s_openapi::{
            api::core::v1::Pod,
            apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        },
        kube::{
            Api,
            api::{ApiResource, DynamicObject, PostParams},
            core::GroupVersionKind,
        },
    };
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let definition: CustomResourceDefinition = decode(json!({
        "metadata": {"name": "fleets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "fleets", "kind": "Fleet"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }],
        },
    }));
    Api::<CustomResourceDefinition>::all(client.clone())
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Fleet"), "fleets");
    let fleets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
    let fleet =
        decode(json!({"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "boats"},
        "spec": {"replicas": 4}}));
    let fleet = fleets.create(&PostParams::default(), &fleet).await.unwrap();
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Fleet", "name": "boats", "controller": true,
        "uid": fleet.metadata.uid}]);
    for name in ["a", "b", "c"] {
        let pod: Pod = decode(json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": owner},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        }));
        create(&client, &pod).await;
    }
    create(&client, &budget("most", json!({"maxUnavailable": 2}))).await;
    // Four are expected, three are there and two must be: one may go.
    let status = wait_allowed(&client, "most", 1).await.status.unwrap();
    assert_eq!((status.expected_pods, status.desired_healthy), (Some(4), Some(2)));
}
