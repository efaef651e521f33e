//! The controllers beside a real kube-apiserver that has no controller manager, scheduler or kubelet of its own.
//!
//! Ignored unless asked for: `KUBECONFIG=… cargo test -p windlass-cluster -- --ignored real`. The API server must
//! be a fresh one whose objects nobody else manages.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass::{
    clock::SystemClock,
    k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{Namespace, Pod, Service},
        discovery::v1::EndpointSlice,
    },
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
};
use windlass_cluster::Controllers;

use crate::support::{conditions, decode, deployment, is_complete, wait};

const NAMESPACE: &str = "windlass-real";

#[tokio::test]
#[ignore = "needs a kube-apiserver without controllers, named by KUBECONFIG"]
async fn a_real_api_server_takes_what_the_controllers_write() {
    let client = Client::try_default().await.expect("KUBECONFIG must name a kube-apiserver");
    let stop = CancellationToken::new();
    let controllers = tokio::spawn(Controllers::default().run(client.clone(), SystemClock, stop.clone()));
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = decode(json!({"metadata": {"name": NAMESPACE}}));
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let accounts: Api<windlass::k8s_openapi::api::core::v1::ServiceAccount> =
        Api::namespaced(client.clone(), NAMESPACE);
    wait(accounts, "default", "there", |account| account.is_some()).await;

    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let service: Service = decode(
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
    );
    services.create(&PostParams::default(), &service).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    let web = wait(deployments.clone(), "web", "complete", |web| web.is_some_and(is_complete)).await.unwrap();
    assert_eq!(
        conditions(&web),
        ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
    );

    let patch = json!({"spec": {"replicas": 2,
        "template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    wait(deployments.clone(), "web", "rolled on", |web| web.is_some_and(is_complete)).await;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let ready = |slice: &EndpointSlice| {
        let endpoints = slice.endpoints.iter().flatten();
        endpoints.filter(|one| one.conditions.as_ref().is_some_and(|c| c.ready == Some(true))).count()
    };
    let mut found = 0;
    for _ in 0..500 {
        found = slices.list(&ListParams::default()).await.unwrap().items.iter().map(ready).sum();
        if found == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(found, 2);

    deployments.delete("web", &DeleteParams::foreground()).await.unwrap();
    wait(deployments, "web", "gone", |web| web.is_none()).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    wait(namespaces, NAMESPACE, "gone", |namespace| namespace.is_none()).await;
    stop.cancel();
    controllers.await.unwrap().unwrap();
}
