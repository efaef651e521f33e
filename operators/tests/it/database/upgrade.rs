//! Another operator takes over, with other scripts and other templates: no server is restarted for it.

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use windlass_cluster::Cluster;

use super::{bare_operator, create, database, merge, settled};
use crate::bed::{Bed, Running, eventually};

const HASH: &str = "database.example.com/server-hash";

async fn patch_set(bed: &Bed, patch: &Value) -> StatefulSet {
    let params = PatchParams::default();
    let set = bed.api::<StatefulSet>().patch("db", &params, &Patch::Merge(patch)).await.unwrap();
    eventually("the StatefulSet's controller has seen it", || async {
        let now = bed.api::<StatefulSet>().get("db").await.unwrap();
        (now.status.as_ref()?.observed_generation >= set.metadata.generation).then_some(now)
    })
    .await
}

async fn is_not_restarted(bed: &Bed, before: &Pod, why: &str) {
    settled(bed, "db").await;
    // Long enough for several looks.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let now = bed.api::<Pod>().get("db-0").await.unwrap();
    assert_eq!((now.uid(), now.metadata.deletion_timestamp), (before.uid(), None), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_operator_restarts_no_server() {
    let cluster = Cluster::start().await.unwrap();
    let bed = Bed::new(cluster.client()).await;
    let operator = bare_operator(&bed.namespace);
    windlass_operators::install::crds(&bed.client, operator.crds()).await.unwrap();
    let running = Running::start(operator, bed.client.clone());
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let before = bed.api::<Pod>().get("db-0").await.unwrap();
    running.kill();

    // Its template says something that this operator's does not: another script, another variable.
    let other = json!({"spec": {"template": {"metadata": {"annotations": {"scripts": "others"}}}}});
    let set = patch_set(&bed, &other).await;
    let revision = set.status.unwrap().update_revision;
    assert_ne!(before.labels().get("controller-revision-hash"), revision.as_ref(), "another template it is");
    let running = Running::start(bare_operator(&bed.namespace), bed.client.clone());
    is_not_restarted(&bed, &before, "a template that differs in what the spec does not ask for").await;
    running.kill();

    // As the operator before this one left it: a digest of everything on both, and the revision told what runs.
    let older = json!({"spec": {"template": {"metadata": {"annotations": {
        HASH: null, "database.example.com/config-hash": "0123456789",
    }}}}});
    let set = patch_set(&bed, &older).await;
    let revision = set.status.unwrap().update_revision.unwrap();
    let pod = json!({"metadata": {
        "annotations": {HASH: null, "database.example.com/config-hash": "0123456789"},
        "labels": {"controller-revision-hash": revision},
    }});
    bed.api::<Pod>().patch("db-0", &PatchParams::default(), &Patch::Merge(&pod)).await.unwrap();
    let status = json!({"status": {"parameters": null}});
    let api = bed.dynamic("database");
    api.patch_status("db", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let running = Running::start(bare_operator(&bed.namespace), bed.client.clone());
    is_not_restarted(&bed, &before, "a server that an earlier operator started").await;
    let set = bed.api::<StatefulSet>().get("db").await.unwrap();
    let template = set.spec.template.metadata.unwrap().annotations.unwrap();
    let noted = bed.api::<Pod>().get("db-0").await.unwrap().annotations().get(HASH).cloned();
    assert_eq!(template.get(HASH), noted.as_ref(), "what it runs is noted");

    // What the spec asks for restarts it, then as ever.
    merge(&bed, "db", json!({"spec": {"parameters": {"work_mem": "8MB"}}})).await;
    eventually("another server runs", || async {
        let pod = bed.api::<Pod>().get_opt("db-0").await.unwrap()?;
        (pod.uid() != before.uid()).then_some(())
    })
    .await;
    settled(&bed, "db").await;
    running.kill();
}
