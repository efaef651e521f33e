//! Database and DatabaseBackup, from the seed's YAML to a restore.

mod backups;
mod crash;
mod credentials;
mod postgres;
mod recovery;
mod safety;
// They run a POSIX shell, and programs that are scripts.
#[cfg(unix)]
mod scripts;
mod upgrade;
mod upkeep;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::{CronJob, Job},
    core::v1::{PersistentVolumeClaim, Pod, Secret, Service},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass::Operator;
use windlass_operators::{
    database::{Database, DatabaseBackup, backup_controller, controller, kinds, v1alpha1_sample},
    workload::Settings,
};

use crate::{
    bed::{Bed, eventually},
    suite::condition_of,
};

fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(500)), ..Settings::default() };
    kinds(Operator::new("database-operator"))
        .controller(controller(settings).namespace(namespace))
        .controller(backup_controller(settings).namespace(namespace))
}

on_both_clusters! { operator =>
    a_spec_that_cannot_be_is_refused
    the_older_version_is_served_and_loses_nothing
    what_no_schema_can_say_is_refused_by_the_webhook
    a_last_backup_is_taken_before_the_data_goes
    a_deleted_backup_takes_its_files_with_it
    a_database_gets_its_children_and_becomes_ready
    credentials_are_made_once_and_kept
    a_second_reconcile_writes_nothing
    a_changed_parameter_restarts_the_server
    a_backup_is_taken_and_restored_into_a_new_database
    a_deleted_database_leaves_its_data_and_finds_it_again
    a_deletion_policy_of_delete_leaves_nothing
    a_volume_grows_and_the_statefulset_follows
    another_major_version_is_blocked
}

mod without_webhooks {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_controller_holds() {
        crate::bed::run(crate::bed::Ground::Embedded, super::bare_operator, super::the_controller_holds)
            .await;
    }
}

/// The same with one version and no webhooks.
fn bare_operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(500)), ..Settings::default() };
    Operator::new("database-operator")
        .crd::<Database>()
        .crd::<DatabaseBackup>()
        .controller(controller(settings).namespace(namespace))
        .controller(backup_controller(settings).namespace(namespace))
}

fn spec() -> Value {
    json!({
        "engine": "PostgreSQL", "version": "15", "storage": {"size": "1Gi"},
        "backup": {"schedule": "0 2 * * *"},
        "pod": {"imagePullPolicy": "IfNotPresent"},
    })
}

fn database(name: &str, more: Value) -> Value {
    let mut spec = spec();
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "apiVersion": "database.example.com/v1", "kind": "Database", "metadata": {"name": name}, "spec": spec,
    })
}

async fn create(bed: &Bed, kind: &str, object: Value) -> DynamicObject {
    let object = serde_json::from_value(object).unwrap();
    bed.dynamic(kind).create(&PostParams::default(), &object).await.unwrap()
}

async fn merge(bed: &Bed, name: &str, patch: Value) -> DynamicObject {
    bed.dynamic("database").patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

/// Waits until a Database is ready with its current spec and nothing to do.
async fn settled(bed: &Bed, name: &str) -> Value {
    let api = bed.dynamic("database");
    eventually(&format!("{name} is ready"), || async {
        let object = api.get(name).await.unwrap();
        let status = object.data.get("status")?.clone();
        let current = status["observedGeneration"].as_i64() == object.metadata.generation
            && condition_of(&status, "Ready")?["status"] == "True"
            && condition_of(&status, "Progressing")?["status"] == "False";
        current.then_some(status)
    })
    .await
}

async fn condition(bed: &Bed, name: &str, type_: &str, status: &str, reason: &str) -> String {
    let api = bed.dynamic("database");
    eventually(&format!("{name} is {type_}={status} because of {reason}"), || async {
        let object = api.get(name).await.unwrap();
        let found = condition_of(object.data.get("status")?, type_)?.clone();
        let right = found["status"] == status && found["reason"] == reason;
        right.then(|| found["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

async fn a_database_gets_its_children_and_becomes_ready(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    let status = settled(&bed, "db").await;
    assert_eq!(status["services"], json!({"rw": "db-rw", "ro": "db-ro"}));
    assert_eq!((&status["version"], &status["storageSize"]), (&json!("15"), &json!("1Gi")));
    assert!(status["nextBackup"].as_str().unwrap().ends_with("T02:00:00Z"), "{status}");
    for service in ["db", "db-rw", "db-ro"] {
        bed.api::<Service>().get(service).await.unwrap();
    }
    let set = bed.api::<StatefulSet>().get("db").await.unwrap();
    assert_eq!(set.spec.update_strategy.unwrap().type_.as_deref(), Some("OnDelete"));
    let job = bed.api::<CronJob>().get("db-backup").await.unwrap();
    assert_eq!(job.spec.schedule, "0 2 * * *");
    bed.recorded("Database", "Ready").await;
}

async fn credentials_are_made_once_and_kept(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let secrets = bed.api::<Secret>();
    let first = secrets.get("db-credentials").await.unwrap().data.unwrap();
    let password = String::from_utf8(first["password"].0.clone()).unwrap();
    assert_eq!(password.len(), 24);
    let uri = String::from_utf8(first["uri"].0.clone()).unwrap();
    let host = format!("db-rw.{}.svc", bed.namespace);
    assert_eq!(uri, format!("postgresql://app:{password}@{host}:5432/app"));
    merge(&bed, "db", json!({"spec": {"parameters": {"max_connections": "50"}}})).await;
    settled(&bed, "db").await;
    assert_eq!(secrets.get("db-credentials").await.unwrap().data.unwrap(), first);
}

async fn a_second_reconcile_writes_nothing(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let versions = || async {
        let db = bed.dynamic("database").get("db").await.unwrap();
        let set = bed.api::<StatefulSet>().get("db").await.unwrap();
        let job = bed.api::<CronJob>().get("db-backup").await.unwrap();
        let service = bed.api::<Service>().get("db-rw").await.unwrap();
        [db.resource_version(), set.resource_version(), job.resource_version(), service.resource_version()]
    };
    let before = versions().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(versions().await, before, "nothing was written while nothing changed");
}

async fn a_changed_parameter_restarts_the_server(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let before = bed.api::<Pod>().get("db-0").await.unwrap();
    merge(&bed, "db", json!({"spec": {"parameters": {"max_connections": "50"}}})).await;
    eventually("another server runs", || async {
        let pod = bed.api::<Pod>().get_opt("db-0").await.unwrap()?;
        (pod.uid() != before.uid()).then_some(())
    })
    .await;
    settled(&bed, "db").await;
    bed.recorded("Database", "Restarting").await;
}

async fn a_backup_is_taken_and_restored_into_a_new_database(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let backup = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": "now"}, "spec": {"databaseRef": {"name": "db"}, "method": "Physical"},
    });
    // Before its backup is there, a Database that is to be restored waits.
    let bootstrap = json!({"bootstrap": {"recovery": {"backupRef": {"name": "now"}}}});
    create(&bed, "database", database("copy", bootstrap)).await;
    condition(&bed, "copy", "Progressing", "True", "WaitingForBackup").await;
    assert!(bed.api::<StatefulSet>().get_opt("copy").await.unwrap().is_none());

    create(&bed, "databasebackup", backup).await;
    let status = eventually("the backup succeeded", || async {
        let object = bed.dynamic("databasebackup").get("now").await.unwrap();
        let status = object.data.get("status")?.clone();
        (status["phase"] == "Succeeded").then_some(status)
    })
    .await;
    assert_eq!(status["location"]["directory"], "on-demand/now");
    let source = eventually("the Database knows of its backup", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        status["lastSuccessfulBackup"].is_string().then_some(status)
    })
    .await;
    assert_eq!(condition_of(&source, "BackupHealthy").unwrap()["status"], "True");

    let copy = settled(&bed, "copy").await;
    assert_eq!(copy["restoredFrom"]["claim"], "db-backups");
    eventually("the restore's Job is tidied up", || async {
        bed.api::<Job>().get_opt("copy-restore").await.unwrap().is_none().then_some(())
    })
    .await;
}

async fn a_deleted_database_leaves_its_data_and_finds_it_again(bed: Bed) {
    // The children of the one before are still on their way out.
    bed.expects("NameConflict");
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let claims = bed.api::<PersistentVolumeClaim>();
    let before = claims.get("data-db-0").await.unwrap().uid();
    let password = bed.api::<Secret>().get("db-credentials").await.unwrap().data;
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the Database and its server are gone", || async {
        let gone =
            bed.dynamic("database").get_opt("db").await.unwrap().is_none() && bed.count::<Pod>().await == 0;
        gone.then_some(())
    })
    .await;
    assert_eq!(claims.get("data-db-0").await.unwrap().uid(), before);
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    assert_eq!(claims.get("data-db-0").await.unwrap().uid(), before);
    assert_eq!(bed.api::<Secret>().get("db-credentials").await.unwrap().data, password);
}

async fn a_deletion_policy_of_delete_leaves_nothing(bed: Bed) {
    create(&bed, "database", database("db", json!({"deletionPolicy": "Delete"}))).await;
    settled(&bed, "db").await;
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    eventually("nothing is left", || async {
        let secret = bed.api::<Secret>().get_opt("db-credentials").await.unwrap();
        let left = [
            bed.count::<PersistentVolumeClaim>().await,
            bed.count::<StatefulSet>().await,
            bed.count::<Service>().await,
            bed.count::<CronJob>().await,
            bed.count::<Pod>().await,
        ];
        (left == [0; 5] && secret.is_none()).then_some(())
    })
    .await;
}

async fn a_volume_grows_and_the_statefulset_follows(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let pod = bed.api::<Pod>().get("db-0").await.unwrap();
    let set = bed.api::<StatefulSet>().get("db").await.unwrap();
    merge(&bed, "db", json!({"spec": {"storage": {"size": "2Gi"}}})).await;
    eventually("the claim asks for it", || async {
        let claim = bed.api::<PersistentVolumeClaim>().get("data-db-0").await.unwrap();
        let size = claim.spec?.resources?.requests?.get("storage")?.0.clone();
        (size == "2Gi").then_some(())
    })
    .await;
    eventually("the StatefulSet was made anew with the new size", || async {
        let now = bed.api::<StatefulSet>().get_opt("db").await.unwrap()?;
        let template = now.spec.volume_claim_templates.as_ref()?.first()?.spec.clone()?;
        let size = template.resources?.requests?.get("storage")?.0.clone();
        (now.uid() != set.uid() && size == "2Gi").then_some(())
    })
    .await;
    settled(&bed, "db").await;
    let same = bed.api::<Pod>().get("db-0").await.unwrap();
    assert_eq!(same.uid(), pod.uid(), "the server went on running");
}

async fn a_spec_that_cannot_be_is_refused(bed: Bed) {
    for (more, why) in [
        (json!({"engine": "MySQL"}), "spec.engine"),
        (json!({"version": "latest"}), "spec.version"),
        (json!({"storage": {"size": "much"}}), "spec.storage.size"),
        (json!({"parameters": {"port": "1"}}), "a parameter that the operator sets itself"),
        (json!({"deletionPolicy": "Perhaps"}), "spec.deletionPolicy"),
    ] {
        let object = serde_json::from_value(database("db", more.clone())).unwrap();
        match bed.dynamic("database").create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 422, "{more}");
                assert!(status.message.contains(why), "{more}: {}", status.message);
            }
            other => panic!("expected a refusal of {more}, got {other:?}"),
        }
    }
    create(&bed, "database", database("db", json!({}))).await;
    for (patch, why) in [
        (json!({"spec": {"storage": {"size": "512Mi"}}}), "size cannot shrink"),
        (json!({"spec": {"bootstrap": {"database": "other"}}}), "bootstrap cannot be changed"),
    ] {
        let api = bed.dynamic("database");
        match api.patch("db", &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(kube::Error::Api(status)) => {
                assert!(status.message.contains(why), "{patch}: {}", status.message);
            }
            other => panic!("expected a refusal of {patch}, got {other:?}"),
        }
    }
}

async fn another_major_version_is_blocked(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let api = bed.dynamic("database");
    let change = Patch::Merge(json!({"spec": {"version": "16"}}));
    let message = eventually("another version is refused", || async {
        match api.patch("db", &PatchParams::default(), &change).await {
            Err(kube::Error::Api(status)) => Some(status.message),
            // The API server has yet to learn of the webhook; the controller blocks it all the same.
            _ => None,
        }
    })
    .await;
    assert!(message.contains("the data is of version 15"), "{message}");
    condition(&bed, "db", "Ready", "True", "Available").await;
}

/// Waits until the API server refuses an object: it may have yet to learn of the webhook.
async fn refused(bed: &Bed, object: Value) -> String {
    let api = bed.dynamic("database");
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    eventually(&format!("{} is refused", object.name_any()), || async {
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if !status.is_already_exists() => Some(status.message),
            _ => {
                let _ = api.delete(&object.name_any(), &DeleteParams::default()).await;
                None
            }
        }
    })
    .await
}

async fn what_no_schema_can_say_is_refused_by_the_webhook(bed: Bed) {
    let message = refused(&bed, database("odd", json!({"backup": {"schedule": "every day at two"}}))).await;
    assert!(message.contains("spec.backup.schedule") && message.contains("4 fields"), "{message}");
    let message = refused(&bed, database("odd", json!({"backup": {"timeZone": "Rome"}}))).await;
    assert!(message.contains("spec.backup.timeZone"), "{message}");
    let message = refused(&bed, database("odd", json!({"version": "99"}))).await;
    assert!(message.contains("from 13 to 18"), "{message}");

    create(&bed, "database", database("safe", json!({"deletionProtection": true}))).await;
    match bed.dynamic("database").delete("safe", &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) => {
            assert!(status.message.contains("spec.deletionProtection"), "{}", status.message);
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
    let kept = bed.dynamic("database").get("safe").await.unwrap();
    assert_eq!(kept.metadata.deletion_timestamp, None);
}

async fn the_controller_holds(bed: Bed) {
    bed.expects("InvalidSpec");
    bed.expects("UpgradeBlocked");
    create(&bed, "database", database("odd", json!({"backup": {"schedule": "every day at two"}}))).await;
    let message = condition(&bed, "odd", "Degraded", "True", "InvalidSpec").await;
    assert!(message.contains("spec.backup.schedule"), "{message}");

    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    merge(&bed, "db", json!({"spec": {"version": "16"}})).await;
    condition(&bed, "db", "Degraded", "True", "UpgradeBlocked").await;
    condition(&bed, "db", "Ready", "True", "Available").await;
    merge(&bed, "db", json!({"spec": {"version": "15"}})).await;
    settled(&bed, "db").await;
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;

    merge(&bed, "db", json!({"spec": {"deletionProtection": true}})).await;
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    let message = condition(&bed, "db", "Degraded", "True", "DeletionProtected").await;
    assert!(message.contains("spec.deletionProtection"), "{message}");
    condition(&bed, "db", "Ready", "True", "Available").await;
    assert_eq!(bed.pods().await.len(), 1, "it goes on serving");
    merge(&bed, "db", json!({"spec": {"deletionProtection": false}})).await;
    eventually("it is gone", || async {
        bed.dynamic("database").get_opt("db").await.unwrap().is_none().then_some(())
    })
    .await;
}

async fn a_last_backup_is_taken_before_the_data_goes(bed: Bed) {
    create(&bed, "database", database("db", json!({"deletionPolicy": "BackupThenDelete"}))).await;
    settled(&bed, "db").await;
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the Database is gone", || async {
        bed.dynamic("database").get_opt("db").await.unwrap().is_none().then_some(())
    })
    .await;
    let backups = bed.dynamic("databasebackup").list(&ListParams::default()).await.unwrap().items;
    let [last] = &backups[..] else { panic!("expected one backup, got {backups:?}") };
    assert!(last.name_any().starts_with("db-final-"));
    assert_eq!(last.data["status"]["phase"], "Succeeded");
    eventually("the data is gone, and the backups are not", || async {
        let claims = bed.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap().items;
        let left: Vec<String> = claims.iter().map(ResourceExt::name_any).collect();
        let secret = bed.api::<Secret>().get_opt("db-credentials").await.unwrap();
        (left == ["db-backups"] && secret.is_none()).then_some(())
    })
    .await;
}

async fn a_deleted_backup_takes_its_files_with_it(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    let backup = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": "now"}, "spec": {"databaseRef": {"name": "db"}},
    });
    create(&bed, "databasebackup", backup).await;
    let backups = bed.dynamic("databasebackup");
    eventually("the backup succeeded", || async {
        let status = backups.get("now").await.unwrap().data.get("status")?.clone();
        (status["phase"] == "Succeeded").then_some(())
    })
    .await;
    assert_eq!(backups.get("now").await.unwrap().finalizers(), ["database.example.com/files"]);
    backups.delete("now", &DeleteParams::default()).await.unwrap();
    eventually("it is gone with its Jobs", || async {
        let left = backups.get_opt("now").await.unwrap().is_some() || bed.count::<Job>().await > 0;
        (!left).then_some(())
    })
    .await;
}

/// What is written in one version is read in the other, and what only v1 can say survives a change in v1alpha1.
async fn the_older_version_is_served_and_loses_nothing(bed: Bed) {
    let resource = bed.dynamic("database").resource_url().replace("/v1/", "/v1alpha1/");
    let old = |method: &str, name: &str, body: Value| {
        let uri = if name.is_empty() { resource.clone() } else { format!("{resource}/{name}") };
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(uri).header("content-type", kind);
        let request = request.body(serde_json::to_vec(&body).unwrap()).unwrap();
        let client = bed.client.clone();
        async move { client.request::<Value>(request).await.unwrap() }
    };
    let made = old("POST", "", serde_json::to_value(v1alpha1_sample()).unwrap()).await;
    assert_eq!(
        (&made["apiVersion"], &made["spec"]["type"]),
        (&json!("database.example.com/v1alpha1"), &json!("postgresql"))
    );
    let hub = bed.dynamic("database").get("my-db").await.unwrap();
    assert_eq!(hub.data["spec"]["engine"], "PostgreSQL");
    assert_eq!(hub.data["spec"]["backup"]["suspend"], false);
    assert_eq!(hub.data["spec"]["backup"]["schedule"], "0 2 * * *");

    merge(&bed, "my-db", json!({"spec": {"parameters": {"work_mem": "8MB"}, "deletionPolicy": "Delete"}}))
        .await;
    let seen = old("GET", "my-db", Value::Null).await;
    assert_eq!(
        seen["spec"],
        json!({
            "type": "postgresql", "version": "13", "storage": {"size": "10Gi"},
            "backup": {"enabled": true, "schedule": "0 2 * * *"},
        })
    );
    let change = json!({"spec": {"backup": {"enabled": false}, "storage": {"size": "20Gi"}}});
    old("PATCH", "my-db", change).await;
    let hub = bed.dynamic("database").get("my-db").await.unwrap();
    assert_eq!(hub.data["spec"]["parameters"], json!({"work_mem": "8MB"}), "only v1 knows it");
    assert_eq!(hub.data["spec"]["deletionPolicy"], "Delete");
    assert_eq!(
        (&hub.data["spec"]["backup"]["suspend"], &hub.data["spec"]["storage"]["size"]),
        (&json!(true), &json!("20Gi"))
    );
    assert_eq!(hub.metadata.annotations, None, "what was kept is where it belongs");
}
