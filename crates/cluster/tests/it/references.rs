//! ConfigMaps and Secrets that are not there yet, and what the components of the cluster say and sign.

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret},
    kube::api::ListParams,
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, events, wait, wait_complete};

fn pod(name: &str, container: Value, volumes: Value) -> Pod {
    let mut all = json!({"name": "c", "image": "nginx"});
    all.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    decode(json!({"metadata": {"name": name}, "spec": {"containers": [all], "volumes": volumes}}))
}

fn waits_for(pod: Option<&Pod>) -> Option<(String, String)> {
    let status = pod?.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    Some((waiting.reason.clone()?, waiting.message.clone().unwrap_or_default()))
}

fn runs(pod: Option<&Pod>) -> bool {
    pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Running")
}

#[tokio::test(start_paused = true)]
async fn a_container_waits_for_what_its_variables_come_from() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let from = |optional: bool| {
        let reference = json!({"name": "settings", "key": "colour", "optional": optional});
        json!({"env": [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": reference}}]})
    };
    create(&client, &pod("easy", from(true), json!([]))).await;
    wait(api::<Pod>(&client), "easy", "running", runs).await;
    create(&client, &pod("strict", from(false), json!([]))).await;
    let expected = ("CreateContainerConfigError".to_owned(), "configmap \"settings\" not found".to_owned());
    wait(api::<Pod>(&client), "strict", "waiting", move |pod| waits_for(pod) == Some(expected.clone())).await;
    let map: ConfigMap = decode(json!({"metadata": {"name": "settings"}, "data": {"colour": "red"}}));
    create(&client, &map).await;
    wait(api::<Pod>(&client), "strict", "running", runs).await;
    let told = events(&client, "Pod", "strict").await;
    assert!(told.contains(&"Failed: Error: configmap \"settings\" not found".to_owned()), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_what_its_volumes_are_filled_from() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    create(&client, &pod("strict", json!({}), json!([{"name": "keys", "secret": {"secretName": "keys"}}])))
        .await;
    wait(api::<Pod>(&client), "strict", "waiting", |pod| {
        waits_for(pod).is_some_and(|(reason, _)| reason == "ContainerCreating")
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    let told = events(&client, "Pod", "strict").await;
    let expected = "FailedMount: MountVolume.SetUp failed for volume \"keys\" : secret \"keys\" not found";
    assert_eq!(told.iter().filter(|event| *event == expected).count(), 1, "{told:?}");
    create(&client, &decode::<Secret>(json!({"metadata": {"name": "keys"}}))).await;
    wait(api::<Pod>(&client), "strict", "running", runs).await;
}

#[tokio::test(start_paused = true)]
async fn events_and_fields_bear_the_names_of_their_components() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 1)).await;
    wait_complete(&client, "web").await;
    let pods = api::<Pod>(&client).list(&ListParams::default()).await.unwrap().items;
    let managers: Vec<(String, Option<String>)> = pods[0]
        .metadata
        .managed_fields
        .iter()
        .flatten()
        .map(|entry| (entry.manager.clone().unwrap_or_default(), entry.subresource.clone()))
        .collect();
    assert!(managers.contains(&("kubelet".to_owned(), Some("status".to_owned()))), "{managers:?}");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let all = api::<Event>(&client).list(&ListParams::default()).await.unwrap().items;
    let of = |reason: &str| {
        let found = all.iter().find(|event| event.reason.as_deref() == Some(reason));
        found.unwrap_or_else(|| panic!("no event {reason}")).clone()
    };
    let started = of("Started");
    let source = started.source.unwrap();
    assert_eq!((source.component.as_deref(), source.host.as_deref()), (Some("kubelet"), Some("windlass-1")));
    assert_eq!(started.involved_object.field_path.as_deref(), Some("spec.containers{web}"));
    assert_eq!((started.count, started.first_timestamp.is_some(), started.event_time), (Some(1), true, None));
    assert_eq!(started.reporting_component.as_deref(), Some("kubelet"));
    let scaled = of("ScalingReplicaSet");
    assert_eq!(scaled.source.unwrap().component.as_deref(), Some("deployment-controller"));
    assert!(scaled.last_timestamp.is_some());
    // The scheduler speaks the newer API, as kube-scheduler does.
    let scheduled = of("Scheduled");
    assert!(scheduled.event_time.is_some() && scheduled.last_timestamp.is_none());
    assert_eq!(scheduled.reporting_component.as_deref(), Some("default-scheduler"));
}
