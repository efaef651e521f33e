//! DaemonSets: a Pod on every node.

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        apps::v1::DaemonSet,
        core::v1::{Node, Pod},
    },
    kube::{
        Api, Client,
        api::{Patch, PatchParams},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, list, merge, wait};

fn set(spec: Value) -> DaemonSet {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
            },
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        set["spec"][key] = value.clone();
    }
    decode(set)
}

async fn wait_available(client: &Client, count: i32) -> DaemonSet {
    let found = wait(api::<DaemonSet>(client), "agent", "available", move |set| {
        set.is_some_and(|set| {
            let status = set.status.clone().unwrap_or_default();
            status.observed_generation == set.metadata.generation
                && status.desired_number_scheduled == count
                && status.number_available.unwrap_or(0) == count
                && status.updated_number_scheduled.unwrap_or(0) == count
        })
    });
    found.await.expect("the DaemonSet must be there")
}

async fn placed(client: &Client) -> Vec<(String, String)> {
    let pods = list::<Pod>(client, "app=agent").await;
    let active = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut places: Vec<_> = active
        .map(|pod| {
            let spec = pod.spec.unwrap();
            (spec.node_name.unwrap_or_default(), spec.containers[0].image.clone().unwrap())
        })
        .collect();
    places.sort();
    places
}

#[tokio::test]
async fn every_node_gets_a_pod_and_an_update_reaches_them_all() {
    let cluster = Cluster::builder().nodes(3).start().await.unwrap();
    let client = cluster.client();
    create(&client, &set(json!({}))).await;
    let done = wait_available(&client, 3).await.status.unwrap();
    assert_eq!((done.current_number_scheduled, done.number_ready, done.number_misscheduled), (3, 3, 0));
    let nodes = ["windlass-1", "windlass-2", "windlass-3"];
    let of = |image: &str| nodes.map(|node| (node.to_owned(), image.to_owned())).to_vec();
    assert_eq!(placed(&client).await, of("agent:1"));
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent:2"}]}}}});
    merge::<DaemonSet>(&client, "agent", image).await;
    wait_available(&client, 3).await;
    assert_eq!(placed(&client).await, of("agent:2"));
}

#[tokio::test]
async fn labels_decide_which_nodes_have_a_pod() {
    let cluster = Cluster::builder().nodes(2).start().await.unwrap();
    let client = cluster.client();
    let mut picky = set(json!({}));
    picky.spec.template.spec.as_mut().unwrap().node_selector = Some(decode(json!({"disk": "fast"})));
    create(&client, &picky).await;
    wait(api::<DaemonSet>(&client), "agent", "seen", |set| set.is_some_and(|set| set.status.is_some())).await;
    let nodes: Api<Node> = Api::all(client.clone());
    wait(nodes.clone(), "windlass-2", "there", |node| node.is_some()).await;
    let label = |value: Value| Patch::Merge(json!({"metadata": {"labels": {"disk": value}}}));
    nodes.patch("windlass-2", &PatchParams::default(), &label(json!("fast"))).await.unwrap();
    wait_available(&client, 1).await;
    assert_eq!(placed(&client).await[0].0, "windlass-2");
    nodes.patch("windlass-2", &PatchParams::default(), &label(json!(null))).await.unwrap();
    wait(api::<DaemonSet>(&client), "agent", "nowhere", |set| {
        set.and_then(|set| set.status.as_ref())
            .is_some_and(|status| status.desired_number_scheduled == 0 && status.number_misscheduled == 0)
    })
    .await;
}
