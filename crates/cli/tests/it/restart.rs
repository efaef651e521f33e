//! `windlass cluster up --data-dir`: everything is there again after `kill -9`.

use std::{collections::BTreeMap, path::Path, time::Duration};

use windlass::{
    k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod},
    kube::{
        Api, Client, Config, ResourceExt,
        api::{ListParams, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
};

use crate::{command::windlass, dev::Running};

const ARGUMENTS: [&str; 6] = ["cluster", "up", "--data-dir", "data", "--kubeconfig", "kubeconfig"];

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn deployment() -> Deployment {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        }},
    }))
    .unwrap()
}

/// Waits until the Deployment has its replicas, and returns its Pods by name with their uids.
async fn settled(client: &Client) -> BTreeMap<String, Option<String>> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let settle = async {
        loop {
            let status = deployments.get("web").await.unwrap().status.unwrap_or_default();
            if status.available_replicas == Some(3) && status.observed_generation == Some(1) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), settle).await.expect("the Deployment must become available");
    let pods = Api::<Pod>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap();
    pods.into_iter().map(|pod| (pod.name_any(), pod.uid())).collect()
}

#[tokio::test]
async fn everything_is_there_again_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut cluster = Running::start(folder.path(), &ARGUMENTS);
    cluster.wait_for("kept in data");
    cluster.wait_for("kubectl get nodes");
    let first = client(&kubeconfig).await;
    Api::<Deployment>::default_namespaced(first.clone())
        .create(&PostParams::default(), &deployment())
        .await
        .unwrap();
    let before = settled(&first).await;
    assert_eq!(before.len(), 3);
    let old = folder.path().join("old-kubeconfig");
    std::fs::copy(&kubeconfig, &old).unwrap();
    cluster.kill();

    let mut cluster = Running::start(folder.path(), &ARGUMENTS);
    cluster.wait_for("kubectl get nodes");
    // The kubeconfig of the first life: same authority, same port.
    let again = client(&old).await;
    assert_eq!(settled(&again).await, before, "the Pods are the same, and there is none more");
    let new = Api::<Deployment>::default_namespaced(again.clone())
        .create(&PostParams::default(), &Deployment { metadata: named("other"), ..deployment() })
        .await
        .unwrap();
    assert!(!before.values().any(|uid| *uid == new.uid()), "a new life repeats no uid of the old one");

    let second = windlass().args(ARGUMENTS).current_dir(folder.path()).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert!(stderr.contains("is in use by another process"), "{stderr}");
    // Windows lets nobody read a file that is locked, nor who has locked it.
    assert!(stderr.contains("(pid ") || cfg!(windows), "{stderr}");
}

fn named(name: &str) -> windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        name: Some(name.into()),
        ..Default::default()
    }
}

#[test]
fn a_damaged_directory_is_an_error_that_names_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Running::start(folder.path(), &ARGUMENTS);
    cluster.wait_for("kubectl get nodes");
    cluster.kill();
    let mut files = std::fs::read_dir(folder.path().join("data/store")).unwrap();
    let log = files.next().unwrap().unwrap().path();
    let mut content = std::fs::read(&log).unwrap();
    content[100] ^= 1;
    std::fs::write(&log, content).unwrap();
    let output = windlass().args(ARGUMENTS).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("failed to open the data directory data"), "{stderr}");
    assert!(stderr.contains("is damaged at byte 28") && stderr.contains("truncate -s 28"), "{stderr}");
}

#[test]
fn a_place_that_cannot_be_a_directory_is_an_error_with_advice() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let place = file.path().join("data");
    let output = windlass().args(["cluster", "up", "--data-dir"]).arg(&place).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let wanted = format!("failed to open the data directory {}", place.display());
    assert!(stderr.contains(&wanted), "{stderr}");
    assert!(stderr.contains("hint: choose a directory that can be written with --data-dir"), "{stderr}");
}
