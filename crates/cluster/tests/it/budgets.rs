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
