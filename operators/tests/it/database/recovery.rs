//! A restore into a name whose volume was kept: what the operator makes of what the restore's Job says.
//!
//! Nothing runs on a simulated node, so no Job sees a volume there. A quota keeps the Job's Pod from being made, and the
//! case says in its place what it would have said. With real servers the same is in [`super::postgres`].

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, ResourceQuota, Secret},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{condition, create, database, operator, settled};
use crate::bed::{Bed, Ground, eventually, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_into_kept_data_is_refused_and_told() {
    run(Ground::Embedded, operator, refused_and_told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_restore_begins_anew_with_another_claim() {
    run(Ground::Embedded, operator, begins_anew).await;
}

fn from_backup() -> Value {
    json!({"deletionPolicy": "Delete", "bootstrap": {"recovery": {"backupRef": {"name": "now"}}}})
}

/// Makes a Database with a backup, deletes it, and keeps its volumes. From then on no Pod can be made.
async fn kept_data(bed: &Bed) {
    create(bed, "database", database("db", json!({}))).await;
    settled(bed, "db").await;
    let backup = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": "now"}, "spec": {"databaseRef": {"name": "db"}},
    });
    create(bed, "databasebackup", backup).await;
    eventually("the backup succeeded", || async {
        let status = bed.dynamic("databasebackup").get("now").await.unwrap().data.get("status")?.clone();
        (status["phase"] == "Succeeded").then_some(())
    })
    .await;
    delete(bed).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}},
    });
    bed.create::<ResourceQuota>(quota).await;
    eventually("the quota is kept", || async {
        bed.api::<ResourceQuota>().get("none").await.unwrap().status?.hard.map(|_| ())
    })
    .await;
    // Timestamps have whole seconds, and the next Database is to be younger than the volume.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
}

async fn delete(bed: &Bed) {
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the Database is gone", || async {
        bed.dynamic("database").get_opt("db").await.unwrap().is_none().then_some(())
    })
    .await;
}

/// Says what the Job's Pod would say of a volume that holds something else.
async fn refuse(bed: &Bed) -> Job {
    let jobs = bed.api::<Job>();
    // The Job's controller has the first word; after it there is nothing more to say without a Pod.
    let job = eventually("the restore has begun", || async {
        let job = jobs.get_opt("db-restore").await.unwrap()?;
        job.status.as_ref()?.start_time.is_some().then_some(job)
    })
    .await;
    let failed = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "PodFailurePolicy",
            "message": "Container restore for pod failed with exit code 73 matching FailJob rule at index 0",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let said = json!({"status": {"failed": 1, "conditions": [failed("FailureTarget"), failed("Failed")]}});
    // The Job's controller may be about to write a status of its own, which knows nothing of this.
    eventually("the refusal stays", || async {
        jobs.patch_status("db-restore", &PatchParams::default(), &Patch::Merge(&said)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let conditions = jobs.get("db-restore").await.unwrap().status?.conditions?;
        conditions.iter().any(|condition| condition.type_ == "Failed").then_some(())
    })
    .await;
    job
}

async fn status(bed: &Bed) -> Value {
    bed.dynamic("database").get("db").await.unwrap().data["status"].clone()
}

async fn refused_and_told(bed: Bed) {
    kept_data(&bed).await;
    let claim = bed.api::<PersistentVolumeClaim>().get("data-db-0").await.unwrap();
    create(&bed, "database", database("db", from_backup())).await;
    condition(&bed, "db", "Progressing", "True", "Restoring").await;
    assert_eq!(status(&bed).await["restoredFrom"], Value::Null, "nothing has been restored yet");
    refuse(&bed).await;

    let message = condition(&bed, "db", "Degraded", "True", "RestoreRefused").await;
    for word in ["data-db-0", "delete the claim", "without spec.bootstrap.recovery", "another name"] {
        assert!(message.contains(word), "{word}: {message}");
    }
    condition(&bed, "db", "Ready", "False", "RestoreRefused").await;
    condition(&bed, "db", "Progressing", "False", "RestoreRefused").await;
    let status = status(&bed).await;
    assert_eq!((&status["restoredFrom"], &status["initialized"]), (&Value::Null, &json!(false)));
    assert_eq!(bed.recorded("Database", "RestoreRefused").await.len(), 1, "one event for one fact");
    assert!(bed.api::<StatefulSet>().get_opt("db").await.unwrap().is_none(), "no server opens the data");

    // It asks for its data to be deleted with it, and has none.
    delete(&bed).await;
    for name in ["data-db-0", "db-backups"] {
        assert!(bed.api::<PersistentVolumeClaim>().get_opt(name).await.unwrap().is_some(), "{name}");
    }
    assert_eq!(bed.api::<PersistentVolumeClaim>().get("data-db-0").await.unwrap().uid(), claim.uid());
    assert!(bed.api::<Secret>().get_opt("db-credentials").await.unwrap().is_some());
}

async fn begins_anew(bed: Bed) {
    kept_data(&bed).await;
    create(&bed, "database", database("db", from_backup())).await;
    let first = refuse(&bed).await;
    condition(&bed, "db", "Degraded", "True", "RestoreRefused").await;
    bed.api::<PersistentVolumeClaim>().delete("data-db-0", &DeleteParams::default()).await.unwrap();
    eventually("another Job restores into another claim", || async {
        let job = bed.api::<Job>().get_opt("db-restore").await.unwrap()?;
        (job.uid() != first.uid()).then_some(())
    })
    .await;
    bed.api::<ResourceQuota>().delete("none", &DeleteParams::default()).await.unwrap();
    let status = settled(&bed, "db").await;
    assert_eq!(status["restoredFrom"]["directory"], "on-demand/now");
    assert_eq!(status["restoringFrom"], Value::Null);
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;
}
