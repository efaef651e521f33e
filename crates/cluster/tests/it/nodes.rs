//! Nodes that are in trouble.

use std::time::Duration;

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{Node, Pod},
    },
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, pods_of, wait, wait_complete};

async fn simulate(client: &Client, node: &str, trouble: Value) {
    let nodes: Api<Node> = Api::all(client.clone());
    let patch = json!({"metadata": {"annotations": {"windlass.dev/simulate": trouble}}});
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn wait_ready(client: &Client, node: &str, status: &'static str) -> Node {
    let nodes: Api<Node> = Api::all(client.clone());
    let found = wait(nodes, node, status, move |node| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == status))
    });
    found.await.expect("the node must be there")
}

fn on(pods: &[Pod], node: &str) -> usize {
    pods.iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node)).count()
}

#[tokio::test(start_paused = true)]
async fn pods_leave_a_node_that_is_down_after_five_minutes() {
    let cluster = Cluster::builder().nodes(2).heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    wait_ready(&client, "windlass-2", "True").await;
    create(&client, &deployment("web", 4)).await;
    wait_complete(&client, "web").await;
    assert_eq!(on(&pods_of(&client, "web").await, "windlass-1"), 2);
    simulate(&client, "windlass-1", json!("down")).await;
    let down = wait_ready(&client, "windlass-1", "Unknown").await;
    assert!(down.spec.is_none_or(|spec| spec.taints.is_none_or(|taints| taints.len() <= 2)));
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert_eq!(on(&pods_of(&client, "web").await, "windlass-1"), 2, "Pods tolerate a short absence");
    tokio::time::sleep(Duration::from_mins(2)).await;
    wait_complete(&client, "web").await;
    assert_eq!(on(&pods_of(&client, "web").await, "windlass-2"), 4);
    // The old ones are told to go, but nobody is there to stop them.
    let all = api::<Pod>(&client).list(&windlass::kube::api::ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 6);
    simulate(&client, "windlass-1", json!(null)).await;
    let back = wait_ready(&client, "windlass-1", "True").await;
    for pod in all.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some()) {
        wait(api::<Pod>(&client), pod.metadata.name.as_deref().unwrap(), "gone", |pod| pod.is_none()).await;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let name = back.metadata.name.unwrap();
    wait(nodes, &name, "open", |node| {
        node.is_some_and(|n| n.spec.as_ref().is_none_or(|s| s.taints.is_none()))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_comes_back_in_time_are_ready_again() {
    let cluster = Cluster::builder().nodes(2).heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    wait_ready(&client, "windlass-2", "True").await;
    create(&client, &deployment("web", 4)).await;
    wait_complete(&client, "web").await;
    simulate(&client, "windlass-1", json!("down")).await;
    wait_ready(&client, "windlass-1", "Unknown").await;
    wait(api::<Deployment>(&client), "web", "short of two", |web| {
        web.and_then(|web| web.status.as_ref()?.ready_replicas) == Some(2)
    })
    .await;
    tokio::time::sleep(Duration::from_mins(4)).await;
    simulate(&client, "windlass-1", json!(null)).await;
    wait_complete(&client, "web").await;
    assert_eq!(pods_of(&client, "web").await.len(), 4, "they are the Pods from before");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_was_deleted_are_collected() {
    let cluster = Cluster::builder().nodes(2).heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    wait_ready(&client, "windlass-2", "True").await;
    create(&client, &deployment("web", 2)).await;
    wait_complete(&client, "web").await;
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.delete("windlass-1", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    wait_complete(&client, "web").await;
    assert_eq!(on(&pods_of(&client, "web").await, "windlass-2"), 2);
}

#[tokio::test]
async fn a_node_under_pressure_takes_no_new_pods() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    wait_ready(&client, "windlass-1", "True").await;
    simulate(&client, "windlass-1", json!("disk-pressure")).await;
    let nodes: Api<Node> = Api::all(client.clone());
    wait(nodes, "windlass-1", "tainted", |node| {
        node.and_then(|node| node.spec.as_ref()?.taints.as_ref()).is_some_and(|taints| !taints.is_empty())
    })
    .await;
    let pod: Pod = decode(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}}));
    create(&client, &pod).await;
    let waiting = wait(api::<Pod>(&client), "late", "refused", |pod| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.reason.as_deref() == Some("Unschedulable")))
    });
    let message = waiting.await.unwrap().status.unwrap().conditions.unwrap()[0].message.clone().unwrap();
    assert!(message.contains("had untolerated taint"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_toleration_runs_out_from_the_first_sight_of_the_taint() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let pod: Pod = decode(json!({
        "metadata": {"name": "guest"},
        "spec": {
            "containers": [{"name": "c", "image": "nginx"}],
            "tolerations": [
                {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
                {"key": "l", "operator": "Exists"},
            ],
        },
    }));
    create(&client, &pod).await;
    wait(api::<Pod>(&client), "guest", "running", |pod| {
        pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Running")
    })
    .await;
    let taint = async |taints: Value| {
        let nodes: Api<Node> = Api::all(client.clone());
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        nodes.patch("windlass-1", &PatchParams::default(), &patch).await.unwrap();
    };
    let first = json!({"key": "k", "effect": "NoExecute"});
    taint(json!([first])).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    // Another look at the Pod does not give it more time.
    taint(json!([first, {"key": "l", "effect": "NoExecute"}])).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(api::<Pod>(&client).get_opt("guest").await.unwrap().is_some());
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(api::<Pod>(&client).get_opt("guest").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_out_of_service_are_given_up() {
    let cluster = Cluster::builder().nodes(2).heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    wait_ready(&client, "windlass-2", "True").await;
    create(&client, &deployment("web", 2)).await;
    wait_complete(&client, "web").await;
    simulate(&client, "windlass-1", json!("down")).await;
    wait_ready(&client, "windlass-1", "Unknown").await;
    let nodes: Api<Node> = Api::all(client.clone());
    let current =
        nodes.get("windlass-1").await.unwrap().spec.and_then(|spec| spec.taints).unwrap_or_default();
    let mut taints = json!(current);
    let out =
        json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
    taints.as_array_mut().unwrap().push(out);
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes.patch("windlass-1", &PatchParams::default(), &patch).await.unwrap();
    // At once, although nobody is there to stop them and they would tolerate the absence for five minutes.
    tokio::time::sleep(Duration::from_secs(20)).await;
    wait_complete(&client, "web").await;
    let all = api::<Pod>(&client).list(&windlass::kube::api::ListParams::default()).await.unwrap().items;
    assert_eq!((all.len(), on(&all, "windlass-2")), (2, 2));
}
