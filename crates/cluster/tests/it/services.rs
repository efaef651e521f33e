//! Services and what is behind them.

use serde_json::json;
use windlass::{
    k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{Endpoints, Service},
        discovery::v1::EndpointSlice,
    },
    kube::{
        Client,
        api::{DeleteParams, ListParams},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, merge, wait, wait_complete};

async fn ready_addresses(client: &Client, service: &str) -> Vec<String> {
    let params = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let slices = api::<EndpointSlice>(client).list(&params).await.expect("slices must be listed").items;
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|one| one.conditions.as_ref().is_some_and(|all| all.ready == Some(true)));
    ready.flat_map(|endpoint| endpoint.addresses.clone()).collect()
}

async fn wait_addresses(client: &Client, service: &str, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..1000 {
        found = ready_addresses(client, service).await;
        if found.len() == count {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{service} has {found:?} instead of {count} addresses");
}

#[tokio::test]
async fn the_service_of_the_api_comes_back() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let services = api::<Service>(&client);
    let before = services.get("kubernetes").await.unwrap();
    services.delete("kubernetes", &DeleteParams::default()).await.unwrap();
    let uid = before.metadata.uid.clone();
    let back = move |service: Option<&Service>| service.is_some_and(|service| service.metadata.uid != uid);
    let after = wait(services, "kubernetes", "back", back).await.unwrap();
    assert_eq!((after.metadata.labels, after.spec), (before.metadata.labels, before.spec));
}

#[tokio::test]
async fn a_service_follows_the_pods_that_it_selects() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let service: Service = decode(json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }));
    create(&client, &service).await;
    create(&client, &deployment("web", 3)).await;
    create(&client, &deployment("other", 1)).await;
    wait_complete(&client, "web").await;
    let addresses = wait_addresses(&client, "web", 3).await;
    assert!(addresses.iter().all(|address| address.starts_with("10.244.")));
    merge::<Deployment>(&client, "web", json!({"spec": {"replicas": 1}})).await;
    wait_addresses(&client, "web", 1).await;
    merge::<Service>(&client, "web", json!({"spec": {"selector": {"app": "other"}}})).await;
    let other = wait_addresses(&client, "web", 1).await;
    assert!(!other.is_empty());
}

#[tokio::test]
async fn endpoints_mirror_a_service_and_go_with_it() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let service: Service = decode(json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }));
    create(&client, &service).await;
    create(&client, &deployment("web", 2)).await;
    let full = wait(api::<Endpoints>(&client), "web", "full", |endpoints| {
        let subsets = endpoints.and_then(|endpoints| endpoints.subsets.as_ref());
        subsets
            .and_then(|subsets| subsets[0].addresses.as_ref())
            .is_some_and(|addresses| addresses.len() == 2)
    })
    .await
    .unwrap();
    let subset = full.subsets.unwrap().remove(0);
    assert_eq!((subset.not_ready_addresses, subset.ports.unwrap()[0].port), (None, 8080));
    api::<Service>(&client).delete("web", &DeleteParams::default()).await.unwrap();
    wait(api::<Endpoints>(&client), "web", "gone", |endpoints| endpoints.is_none()).await;
}
