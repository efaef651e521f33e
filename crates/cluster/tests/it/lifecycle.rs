//! Starting, stopping, and being quiet in between.

use std::time::Duration;

use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::core::v1::{Namespace, Node},
    kube::{Api, api::GetParams, core::Request},
};
use windlass_cluster::Cluster;

use crate::support::{create, deployment, pods_of, wait, wait_complete};

#[tokio::test]
async fn a_cluster_answers_its_first_request() {
    let cluster = Cluster::start().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
    cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_node_says_that_it_is_simulated() {
    let cluster = Cluster::start().await.unwrap();
    let nodes: Api<Node> = Api::all(cluster.client());
    let ready = |node: Option<&Node>| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    let node = wait(nodes, "windlass-1", "ready", ready).await.unwrap();
    assert_eq!(node.metadata.labels.unwrap()[windlass_cluster::SIMULATED], "true");
    let info = node.status.unwrap().node_info.unwrap();
    assert_eq!(info.os_image, "Windlass simulated node");
}

#[tokio::test]
async fn clusters_in_one_process_do_not_meet() {
    let run = |replicas: i32| async move {
        let cluster = Cluster::start().await.unwrap();
        let client = cluster.client();
        create(&client, &deployment("web", replicas)).await;
        wait_complete(&client, "web").await;
        let pods = pods_of(&client, "web").await.len();
        cluster.shutdown().await.unwrap();
        pods
    };
    let runs = futures::future::join_all((1..=4).map(run)).await;
    assert_eq!(runs, [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn hours_pass_at_once_on_a_paused_clock() {
    let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let cluster = Cluster::builder().start_time(start).start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 2)).await;
    let web = wait_complete(&client, "web").await;
    let created = web.metadata.creation_timestamp.unwrap().0;
    assert!(created >= start && created.duration_since(start).as_secs() < 60, "{created}");
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert!(cluster.now().duration_since(start).as_secs() >= 7200);
    assert_eq!(pods_of(&client, "web").await.len(), 2);
    cluster.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_settled_cluster_makes_no_writes() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    for index in 0..5 {
        create(&client, &deployment(&format!("web-{index}"), 3)).await;
    }
    for index in 0..5 {
        wait_complete(&client, &format!("web-{index}")).await;
    }
    // The last events are on their way.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let settled = cluster.revision();
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(cluster.revision(), settled);
    cluster.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_the_only_writes_of_an_idle_cluster() {
    let cluster = Cluster::start().await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let settled = cluster.revision();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(cluster.revision() - settled, 60);
    cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn fields_are_explained() {
    let cluster = Cluster::start().await.unwrap();
    let request = Request::new("/openapi/v3/apis/apps").get("v1", &GetParams::default()).unwrap();
    let document: serde_json::Value = cluster.client().request(request).await.unwrap();
    let strategy = &document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentStrategy"];
    for described in [strategy, &strategy["properties"]["rollingUpdate"]] {
        assert!(described["description"].as_str().is_some_and(|text| !text.is_empty()), "{described}");
    }
}
