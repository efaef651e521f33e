//! Where Pods go, who makes room for whom, and what is said where there is no place.

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod},
        scheduling::v1::PriorityClass,
        storage::v1::StorageClass,
    },
    kube::{
        Api, Client,
        api::{Patch, PatchParams, PostParams},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, events, merge, wait};

fn pod(name: &str, spec: Value) -> Pod {
    let mut all = json!({"containers": [{"name": "c", "image": "nginx"}]});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    decode(json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": all}))
}

fn asking(cpu: &str) -> Value {
    json!([{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}])
}

async fn running(client: &Client, name: &str) -> Pod {
    let found = wait(api::<Pod>(client), name, "running", |pod| {
        pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Running")
    });
    found.await.unwrap()
}

/// Waits until the scheduler says why a Pod has no node, and returns it.
async fn refused(client: &Client, name: &str, what: &'static str) -> Pod {
    let found =
        wait(api::<Pod>(client), name, what, move |pod| pod.is_some_and(|pod| told(pod).contains(what)));
    found.await.unwrap()
}

fn told(pod: &Pod) -> String {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut scheduled = conditions.filter(|condition| condition.type_ == "PodScheduled");
    scheduled.next().and_then(|condition| condition.message.clone()).unwrap_or_default()
}

async fn label(client: &Client, node: &str, labels: Value) {
    let nodes: Api<Node> = Api::all(client.clone());
    wait(nodes.clone(), node, "there", |node| node.is_some()).await;
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    nodes.patch(node, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pods_that_want_to_be_apart_need_a_node_each() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "one"}}}]}}});
    create(&client, &pod("one", apart.clone())).await;
    running(&client, "one").await;
    create(&client, &pod("two", apart)).await;
    let two = refused(&client, "two", "anti-affinity").await;
    assert_eq!(
        told(&two),
        "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. preemption: 0/1 nodes are \
         available: 1 No preemption victims found for incoming pod."
    );
    // When the other one goes there is a place.
    api::<Pod>(&client).delete("one", &windlass::kube::api::DeleteParams::default()).await.unwrap();
    running(&client, "two").await;
}

#[tokio::test(start_paused = true)]
async fn company_that_comes_later_is_waited_for() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let near = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "friend"}}}]}}});
    create(&client, &pod("shy", near)).await;
    refused(&client, "shy", "node(s) didn't match pod affinity rules").await;
    create(&client, &pod("friend", json!({}))).await;
    running(&client, "shy").await;
}

async fn priority_class(client: &Client, name: &str, more: Value) {
    let mut class = json!({"metadata": {"name": name}, "value": 1000});
    class.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let classes: Api<PriorityClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &decode(class)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_important_pod_takes_the_place_of_another() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    priority_class(&client, "high", json!({})).await;
    priority_class(&client, "patient", json!({"preemptionPolicy": "Never"})).await;
    create(&client, &pod("small", json!({"containers": asking("10")}))).await;
    create(&client, &pod("large", json!({"containers": asking("40")}))).await;
    running(&client, "small").await;
    running(&client, "large").await;
    create(&client, &pod("waits", json!({"containers": asking("30"), "priorityClassName": "patient"}))).await;
    let waits = refused(&client, "waits", "Insufficient cpu").await;
    assert_eq!(
        told(&waits),
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    );
    create(&client, &pod("high", json!({"containers": asking("50"), "priorityClassName": "high"}))).await;
    let high = running(&client, "high").await;
    assert!(
        api::<Pod>(&client).get_opt("large").await.unwrap().is_none(),
        "the Pod that was in the way is gone"
    );
    running(&client, "small").await;
    let note = format!("Preempted: Preempted by pod {} on node windlass-1", high.metadata.uid.unwrap());
    assert_eq!(events(&client, "Pod", "large").await.iter().filter(|event| **event == note).count(), 1);
    let of_high = events(&client, "Pod", "high").await;
    assert!(
        of_high.iter().any(|event| event.contains(
            "preemption: found a potential placement for pod on node windlass-1, preempting 1 victims"
        )),
        "{of_high:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn gates_keep_a_pod_from_the_scheduler() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    create(&client, &pod("gated", json!({"schedulingGates": [{"name": "example.com/quota"}]}))).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let gated = api::<Pod>(&client).get("gated").await.unwrap();
    assert_eq!(gated.spec.unwrap().node_name, None);
    merge::<Pod>(&client, "gated", json!({"spec": {"schedulingGates": []}})).await;
    running(&client, "gated").await;
}

fn claim(name: &str, spec: Value) -> PersistentVolumeClaim {
    let mut all = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    decode(json!({"metadata": {"name": name}, "spec": all}))
}

fn mounting(claim: &str) -> Value {
    json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]})
}

#[tokio::test(start_paused = true)]
async fn a_pod_follows_its_volume() {
    let cluster = Cluster::builder().nodes(2).heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    label(&client, "windlass-2", json!({"disk": "local"})).await;
    let term = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["local"]}]});
    let volume: PersistentVolume = decode(json!({"metadata": {"name": "local"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}));
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    volumes.create(&PostParams::default(), &volume).await.unwrap();
    create(&client, &claim("data", json!({"storageClassName": "local"}))).await;
    create(&client, &pod("db", mounting("data"))).await;
    // The class comes last, and is what the Pod waited for.
    refused(&client, "db", "pod has unbound immediate PersistentVolumeClaims").await;
    let class: StorageClass = decode(json!({"metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}));
    Api::<StorageClass>::all(client.clone()).create(&PostParams::default(), &class).await.unwrap();
    let db = running(&client, "db").await;
    assert_eq!(db.spec.unwrap().node_name.as_deref(), Some("windlass-2"));
}

#[tokio::test(start_paused = true)]
async fn one_pod_at_a_time_has_an_exclusive_claim() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    create(&client, &claim("one", json!({"accessModes": ["ReadWriteOncePod"]}))).await;
    create(&client, &pod("first", mounting("one"))).await;
    running(&client, "first").await;
    create(&client, &pod("second", mounting("one"))).await;
    refused(&client, "second", "ReadWriteOncePod access mode already in-use by another pod").await;
    api::<Pod>(&client).delete("first", &windlass::kube::api::DeleteParams::default()).await.unwrap();
    running(&client, "second").await;
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_volume_gets_its_claim_and_takes_it_away() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let template = json!({"metadata": {"labels": {"scratch": "yes"}}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}});
    create(&client, &pod("work", json!({"volumes": [volume]}))).await;
    running(&client, "work").await;
    let claim = api::<PersistentVolumeClaim>(&client).get("work-scratch").await.unwrap();
    assert_eq!(claim.metadata.labels.unwrap()["scratch"], "yes");
    api::<Pod>(&client).delete("work", &windlass::kube::api::DeleteParams::default()).await.unwrap();
    wait(api::<PersistentVolumeClaim>(&client), "work-scratch", "gone", |claim| claim.is_none()).await;
}
