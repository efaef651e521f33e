//! StatefulSets: order, revisions, claims.

use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        apps::v1::{ControllerRevision, StatefulSet},
        core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    },
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams},
        runtime::{WatchStreamExt, watcher},
    },
};
use windlass_cluster::{Cluster, Timing};

use crate::support::{api, create, decode, events, list, merge, wait};

fn set(name: &str, replicas: i32, spec: Value) -> StatefulSet {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "db", "image": "postgres:18"}]},
            },
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        set["spec"][key] = value.clone();
    }
    decode(set)
}

fn with_claims(policy: Value) -> Value {
    json!({
        "persistentVolumeClaimRetentionPolicy": policy,
        "volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }],
    })
}

fn is_complete(set: &StatefulSet) -> bool {
    let wanted = set.spec.replicas.unwrap_or(1);
    let status = set.status.clone().unwrap_or_default();
    status.observed_generation == set.metadata.generation
        && status.replicas == wanted
        && status.ready_replicas.unwrap_or(0) == wanted
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.current_revision == status.update_revision
}

async fn wait_complete(client: &Client, name: &str) -> StatefulSet {
    let done = wait(api::<StatefulSet>(client), name, "complete", |set| set.is_some_and(is_complete)).await;
    done.expect("the StatefulSet must be there")
}

async fn names(client: &Client, app: &str) -> Vec<String> {
    let mut names: Vec<String> = list::<Pod>(client, &format!("app={app}"))
        .await
        .into_iter()
        .filter_map(|pod| pod.metadata.name)
        .collect();
    names.sort();
    names
}

async fn images(client: &Client, app: &str) -> Vec<String> {
    let mut pods = list::<Pod>(client, &format!("app={app}")).await;
    pods.sort_by_key(|pod| pod.metadata.name.clone());
    pods.iter().map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap()).collect()
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "db", "image": name}]}}}})
}

#[tokio::test]
async fn pods_start_one_after_the_other() {
    let timing = Timing { ready: std::time::Duration::from_millis(5), ..Timing::default() };
    let cluster = Cluster::builder().timing(timing).start().await.unwrap();
    let client = cluster.client();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let seen = seen.clone();
        let watch = watcher(api::<Pod>(&client), watcher::Config::default()).applied_objects();
        tokio::spawn(watch.try_for_each(move |pod| {
            let ready = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let ready =
                ready.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
            seen.lock().unwrap().push((pod.metadata.name.unwrap(), ready));
            async { Ok(()) }
        }))
    };
    create(&client, &set("db", 3, json!({}))).await;
    let done = wait_complete(&client, "db").await;
    observer.abort();
    let status = done.status.unwrap();
    assert_eq!((status.current_replicas, status.available_replicas), (Some(3), Some(3)));
    assert_eq!(names(&client, "db").await, ["db-0", "db-1", "db-2"]);
    let seen = seen.lock().unwrap().clone();
    for ordinal in 1..3 {
        let first = seen.iter().position(|(name, _)| *name == format!("db-{ordinal}")).unwrap();
        let before = format!("db-{}", ordinal - 1);
        assert!(
            seen[..first].contains(&(before.clone(), true)),
            "{before} was not ready before its successor"
        );
    }
    let lines = events(&client, "StatefulSet", "db").await;
    assert!(
        lines.contains(&"SuccessfulCreate: Create Pod db-0 in StatefulSet db successful".to_owned()),
        "{lines:?}"
    );
}

#[tokio::test]
async fn pods_are_replaced_from_the_last_to_the_partition() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &set("db", 3, json!({}))).await;
    let old = wait_complete(&client, "db").await.status.unwrap().current_revision.unwrap();
    let partition =
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}});
    merge::<StatefulSet>(&client, "db", partition).await;
    merge::<StatefulSet>(&client, "db", image("postgres:19")).await;
    let canary = wait(api::<StatefulSet>(&client), "db", "partly updated", |set| {
        set.and_then(|set| set.status.clone())
            .is_some_and(|status| status.updated_replicas == Some(1) && status.ready_replicas == Some(3))
    })
    .await;
    let status = canary.unwrap().status.unwrap();
    assert_eq!((status.current_revision, status.current_replicas), (Some(old), Some(2)));
    assert_eq!(images(&client, "db").await, ["postgres:18", "postgres:18", "postgres:19"]);
    let all =
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}});
    merge::<StatefulSet>(&client, "db", all).await;
    wait_complete(&client, "db").await;
    assert_eq!(images(&client, "db").await, ["postgres:19"; 3]);
}

#[tokio::test]
async fn on_delete_waits_for_somebody_to_delete_the_pods() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &set("db", 2, json!({"updateStrategy": {"type": "OnDelete"}}))).await;
    wait_complete(&client, "db").await;
    merge::<StatefulSet>(&client, "db", image("postgres:19")).await;
    wait(api::<StatefulSet>(&client), "db", "observed", |set| {
        set.is_some_and(|set| {
            set.status.as_ref().is_some_and(|s| s.observed_generation == set.metadata.generation)
        })
    })
    .await;
    assert_eq!(images(&client, "db").await, ["postgres:18"; 2]);
    for name in ["db-0", "db-1"] {
        api::<Pod>(&client).delete(name, &DeleteParams::default()).await.unwrap();
    }
    wait_complete(&client, "db").await;
    assert_eq!(images(&client, "db").await, ["postgres:19"; 2]);
}

#[tokio::test]
async fn the_history_is_kept_to_its_limit_and_rolled_back_to() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &set("db", 1, json!({"revisionHistoryLimit": 1}))).await;
    let first = wait_complete(&client, "db").await.status.unwrap().current_revision.unwrap();
    assert!(first.starts_with("db-"), "{first}");
    for tag in ["postgres:19", "postgres:20", "postgres:19"] {
        merge::<StatefulSet>(&client, "db", image(tag)).await;
        wait_complete(&client, "db").await;
    }
    let revisions = wait_revisions(&client, 2).await;
    let numbers: Vec<_> = revisions.iter().map(|revision| revision.revision.unwrap()).collect();
    assert_eq!(numbers, [3, 4], "rolling back brings the old revision to the front");
}

async fn wait_revisions(client: &Client, count: usize) -> Vec<ControllerRevision> {
    for _ in 0..500 {
        let mut found = list::<ControllerRevision>(client, "app=db").await;
        if found.len() == count {
            found.sort_by_key(|revision| revision.revision);
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("there are {:?}", list::<ControllerRevision>(client, "app=db").await)
}

#[tokio::test]
async fn claims_stay_when_the_set_shrinks_and_are_used_again() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &set("db", 2, with_claims(json!({})))).await;
    wait_complete(&client, "db").await;
    let claim = api::<PersistentVolumeClaim>(&client).get("data-db-1").await.unwrap();
    assert_eq!(claim.status.as_ref().unwrap().phase.as_deref(), Some("Bound"));
    assert_eq!(claim.metadata.labels.as_ref().unwrap()["app"], "db");
    let volume = claim.spec.unwrap().volume_name.unwrap();
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let bound = volumes.get(&volume).await.unwrap();
    assert_eq!(bound.status.unwrap().phase.as_deref(), Some("Bound"));
    merge::<StatefulSet>(&client, "db", json!({"spec": {"replicas": 1}})).await;
    wait_complete(&client, "db").await;
    assert_eq!(names(&client, "db").await, ["db-0"]);
    merge::<StatefulSet>(&client, "db", json!({"spec": {"replicas": 2}})).await;
    wait_complete(&client, "db").await;
    let again = api::<PersistentVolumeClaim>(&client).get("data-db-1").await.unwrap();
    assert_eq!(again.spec.unwrap().volume_name, Some(volume));
}

#[tokio::test]
async fn claims_go_with_their_pods_where_the_policy_says_so() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let policy = json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    create(&client, &set("db", 2, with_claims(policy))).await;
    wait_complete(&client, "db").await;
    let claims = api::<PersistentVolumeClaim>(&client);
    let volume = claims.get("data-db-1").await.unwrap().spec.unwrap().volume_name.unwrap();
    merge::<StatefulSet>(&client, "db", json!({"spec": {"replicas": 1}})).await;
    wait(claims.clone(), "data-db-1", "gone", |claim| claim.is_none()).await;
    wait(Api::<PersistentVolume>::all(client.clone()), &volume, "gone", |volume| volume.is_none()).await;
    assert!(claims.get_opt("data-db-0").await.unwrap().is_some());
    api::<StatefulSet>(&client).delete("db", &DeleteParams::background()).await.unwrap();
    wait(claims, "data-db-0", "gone", |claim| claim.is_none()).await;
}

#[tokio::test]
async fn orphaned_pods_are_adopted_by_the_next_set_of_that_name() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &set("db", 2, json!({}))).await;
    wait_complete(&client, "db").await;
    let uids = |pods: Vec<Pod>| {
        let mut uids: Vec<_> = pods.into_iter().filter_map(|pod| pod.metadata.uid).collect();
        uids.sort();
        uids
    };
    let before = uids(list(&client, "app=db").await);
    api::<StatefulSet>(&client).delete("db", &DeleteParams::orphan()).await.unwrap();
    wait(api::<StatefulSet>(&client), "db", "gone", |set| set.is_none()).await;
    create(&client, &set("db", 2, json!({}))).await;
    let again = wait_complete(&client, "db").await;
    assert_eq!(uids(list(&client, "app=db").await), before);
    for pod in list::<Pod>(&client, "app=db").await {
        assert_eq!(Some(&pod.metadata.owner_references.unwrap()[0].uid), again.metadata.uid.as_ref());
    }
    let revisions = api::<ControllerRevision>(&client).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(revisions.len(), 1, "the revision is adopted too");
}

#[tokio::test]
async fn parallel_sets_start_all_pods_at_once() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let mut all = set("db", 3, json!({"podManagementPolicy": "Parallel"}));
    let never = json!({"windlass.dev/simulate": "never-ready"});
    all.spec.template.metadata.as_mut().unwrap().annotations = Some(decode(never));
    create(&client, &all).await;
    wait(api::<StatefulSet>(&client), "db", "started", |set| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.replicas == 3)
    })
    .await;
    assert_eq!(names(&client, "db").await, ["db-0", "db-1", "db-2"]);
}
