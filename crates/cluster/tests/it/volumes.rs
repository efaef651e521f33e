//! PersistentVolumes and their claims.

use serde_json::json;
use windlass::{
    k8s_openapi::api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
        storage::v1::StorageClass,
    },
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, events, merge, wait};

fn claim(name: &str, class: Option<&str>, size: &str) -> PersistentVolumeClaim {
    decode(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }))
}

fn user(name: &str, claim: &str) -> Pod {
    decode(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "app", "image": "nginx"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }))
}

async fn wait_phase(client: &Client, name: &str, phase: &'static str) -> PersistentVolumeClaim {
    let found = wait(api::<PersistentVolumeClaim>(client), name, phase, move |claim| {
        claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some(phase)
    });
    found.await.expect("the claim must be there")
}

async fn wait_running(client: &Client, name: &str) {
    wait(api::<Pod>(client), name, "running", |pod| {
        pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Running")
    })
    .await;
}

#[tokio::test]
async fn a_claim_waits_for_its_first_consumer() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &claim("data", None, "1Gi")).await;
    let pending = wait(api::<PersistentVolumeClaim>(&client), "data", "given its class", |claim| {
        claim.and_then(|claim| claim.spec.as_ref()?.storage_class_name.as_deref()) == Some("standard")
    })
    .await
    .unwrap();
    assert_ne!(pending.status.and_then(|status| status.phase).as_deref(), Some("Bound"));
    create(&client, &user("app", "data")).await;
    wait_running(&client, "app").await;
    let bound = wait_phase(&client, "data", "Bound").await;
    assert_eq!(
        bound.metadata.annotations.as_ref().unwrap()["volume.kubernetes.io/selected-node"],
        "windlass-1"
    );
    assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "1Gi");
    let name = format!("pvc-{}", bound.metadata.uid.unwrap());
    let volume = Api::<PersistentVolume>::all(client.clone()).get(&name).await.unwrap();
    assert_eq!(volume.spec.unwrap().storage_class_name.as_deref(), Some("standard"));
    let lines = events(&client, "PersistentVolumeClaim", "data").await;
    let waited = "WaitForFirstConsumer: waiting for first consumer to be created before binding";
    assert!(lines.contains(&waited.to_owned()), "{lines:?}");
}

#[tokio::test]
async fn a_class_that_binds_at_once_needs_no_consumer() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let class: StorageClass = decode(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "quick"},
        "provisioner": "windlass.dev/simulated", "volumeBindingMode": "Immediate", "reclaimPolicy": "Retain",
    }));
    Api::all(client.clone()).create(&PostParams::default(), &class).await.unwrap();
    create(&client, &claim("data", Some("quick"), "5Gi")).await;
    let bound = wait_phase(&client, "data", "Bound").await;
    let volume = bound.spec.unwrap().volume_name.unwrap();
    api::<PersistentVolumeClaim>(&client).delete("data", &DeleteParams::default()).await.unwrap();
    // What is to be retained is released, and stays.
    wait(Api::<PersistentVolume>::all(client.clone()), &volume, "released", |volume| {
        volume.and_then(|volume| volume.status.as_ref()?.phase.as_deref()) == Some("Released")
    })
    .await;
}

#[tokio::test]
async fn a_volume_made_by_hand_is_bound_and_released() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let volume: PersistentVolume = decode(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "hostPath": {"path": "/disk"}, "persistentVolumeReclaimPolicy": "Retain",
        },
    }));
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    volumes.create(&PostParams::default(), &volume).await.unwrap();
    let phase = |phase: &'static str| {
        move |volume: Option<&PersistentVolume>| {
            volume.and_then(|volume| volume.status.as_ref()?.phase.as_deref()) == Some(phase)
        }
    };
    wait(volumes.clone(), "disk", "available", phase("Available")).await;
    create(&client, &claim("data", Some(""), "8Gi")).await;
    let bound = wait_phase(&client, "data", "Bound").await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("disk"));
    assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "10Gi");
    wait(volumes.clone(), "disk", "bound", phase("Bound")).await;
    api::<PersistentVolumeClaim>(&client).delete("data", &DeleteParams::default()).await.unwrap();
    wait(volumes, "disk", "released", phase("Released")).await;
}

#[tokio::test]
async fn a_claim_grows_while_a_pod_runs_with_it() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &claim("data", None, "1Gi")).await;
    create(&client, &user("app", "data")).await;
    wait_running(&client, "app").await;
    wait_phase(&client, "data", "Bound").await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    merge::<PersistentVolumeClaim>(&client, "data", larger).await;
    let grown = wait(api::<PersistentVolumeClaim>(&client), "data", "grown", |claim| {
        claim
            .and_then(|claim| claim.status.as_ref()?.capacity.as_ref())
            .is_some_and(|c| c["storage"].0 == "3Gi")
    })
    .await
    .unwrap();
    // Nothing of the resize is left; that a Pod uses the claim is said all the while.
    let conditions = grown.status.unwrap().conditions.unwrap_or_default();
    assert_eq!(conditions.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(), ["Unused"]);
    let volume = grown.spec.unwrap().volume_name.unwrap();
    let volume = Api::<PersistentVolume>::all(client.clone()).get(&volume).await.unwrap();
    assert_eq!(volume.spec.unwrap().capacity.unwrap()["storage"].0, "3Gi");
}

#[tokio::test]
async fn a_claim_is_kept_while_a_pod_uses_it() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &claim("data", None, "1Gi")).await;
    create(&client, &user("app", "data")).await;
    wait_running(&client, "app").await;
    let claims = api::<PersistentVolumeClaim>(&client);
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    wait(claims.clone(), "data", "terminating", |claim| {
        claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some())
    })
    .await;
    api::<Pod>(&client).delete("app", &DeleteParams::default()).await.unwrap();
    wait(claims, "data", "gone", |claim| claim.is_none()).await;
}

#[tokio::test]
async fn a_pod_without_its_claim_is_not_scheduled() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &user("app", "data")).await;
    let waiting = wait(api::<Pod>(&client), "app", "refused", |pod| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "PodScheduled" && c.status == "False"))
    })
    .await
    .unwrap();
    let message = waiting.status.unwrap().conditions.unwrap()[0].message.clone().unwrap();
    assert!(message.contains("persistentvolumeclaim \"data\" not found"), "{message}");
    create(&client, &claim("data", None, "1Gi")).await;
    wait_running(&client, "app").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_does_not_take_a_volume_that_is_too_small_and_is_kept_by_pods_that_have_ended() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let volume: PersistentVolume = decode(json!({"metadata": {"name": "small"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "hostPath": {"path": "/x"}}}));
    Api::<PersistentVolume>::all(client.clone()).create(&PostParams::default(), &volume).await.unwrap();
    let mut wants = claim("large", Some(""), "10Gi");
    wants.spec.as_mut().unwrap().volume_name = Some("small".into());
    create(&client, &wants).await;
    wait_phase(&client, "large", "Pending").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let told = events(&client, "PersistentVolumeClaim", "large").await;
    let expected = "VolumeMismatch: Cannot bind to requested volume \"small\": requested PV is too small";
    assert!(told.contains(&expected.to_owned()), "{told:?}");
    let left = Api::<PersistentVolume>::all(client.clone()).get("small").await.unwrap().spec.unwrap();
    assert_eq!(left.capacity.unwrap()["storage"].0, "1Gi", "the volume has not grown");
    create(&client, &claim("data", None, "1Gi")).await;
    let mut ends = user("ends", "data");
    ends.spec.as_mut().unwrap().restart_policy = Some("Never".into());
    ends.spec.as_mut().unwrap().containers[0].command = Some(vec!["true".into()]);
    create(&client, &ends).await;
    wait(api::<Pod>(&client), "ends", "done", |pod| {
        pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Succeeded")
    })
    .await;
    let claims = api::<PersistentVolumeClaim>(&client);
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert!(claims.get_opt("data").await.unwrap().is_some(), "a Pod that has ended keeps its claim");
    api::<Pod>(&client).delete("ends", &DeleteParams::default()).await.unwrap();
    wait(claims, "data", "gone", |claim| claim.is_none()).await;
}
