//! What must not take a server down or be used without a word: parameters that no server starts with, objects of somebody
//! else, a deletion that is held back, schedules that nobody understands.

use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{bare_operator, condition, create, database, merge, operator, settled};
use crate::bed::{Bed, Ground, eventually, run};

on_both_clusters! { operator =>
    an_object_of_somebody_else_is_told_and_not_used
    what_postgresql_would_not_survive_is_refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_no_server_starts_with_leave_the_running_one_alone() {
    run(Ground::Embedded, operator, unfit_parameters).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_held_back_without_a_webhook_stops_nothing() {
    run(Ground::Embedded, bare_operator, held_back).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schedules_of_a_database_are_those_of_a_cronjob() {
    run(Ground::Embedded, operator, same_schedules).await;
}

async fn unfit_parameters(bed: Bed) {
    create(&bed, "database", database("db", json!({"parameters": {"work_mem": "4MB"}}))).await;
    assert_eq!(settled(&bed, "db").await["parameters"], json!({"work_mem": "4MB"}));
    let before = bed.api::<Pod>().get("db-0").await.unwrap();
    let settings = || async {
        bed.api::<ConfigMap>().get("db-config").await.unwrap().data.unwrap()["postgresql.conf"].clone()
    };
    let text = settings().await;
    eventually("only the server is left", || async { (bed.count::<Pod>().await == 1).then_some(()) }).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}},
    });
    bed.create::<ResourceQuota>(quota).await;
    eventually("the quota is kept", || async {
        bed.api::<ResourceQuota>().get("one").await.unwrap().status?.hard.map(|_| ())
    })
    .await;

    merge(&bed, "db", json!({"spec": {"parameters": {"work_mem": null, "work_memo": "8MB"}}})).await;
    condition(&bed, "db", "Progressing", "True", "CheckingParameters").await;
    let jobs = bed.api::<Job>();
    let name = eventually("a server is tried", || async {
        let all = jobs.list(&ListParams::default()).await.unwrap().items;
        let begun = |job: &&Job| job.status.as_ref().is_some_and(|status| status.start_time.is_some());
        all.iter().filter(begun).map(ResourceExt::name_any).find(|name| name.starts_with("db-check-"))
    })
    .await;
    assert_eq!(settings().await, text, "a server that is started anew has the old ones");
    let failed = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "PodFailurePolicy",
            "message": "Container check failed with exit code 78", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let said = json!({"status": {"failed": 1, "conditions": [failed("FailureTarget"), failed("Failed")]}});
    jobs.patch_status(&name, &PatchParams::default(), &Patch::Merge(&said)).await.unwrap();
    let message = condition(&bed, "db", "Degraded", "True", "ParametersRefused").await;
    assert!(message.contains(&name) && message.contains("goes on with those that it has"), "{message}");
    condition(&bed, "db", "Ready", "True", "Available").await;
    bed.recorded("Database", "ParametersRefused").await;
    let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
    assert_eq!(status["parameters"], json!({"work_mem": "4MB"}), "what it has");
    assert_eq!(
        super::condition_of(&status, "BackupHealthy").unwrap()["reason"],
        "NoBackup",
        "a check is no backup"
    );
    assert_eq!(settings().await, text);

    // The rest of the spec is followed all the same, and to take the parameters back is enough.
    merge(&bed, "db", json!({"spec": {"backup": {"schedule": "0 3 * * *"}}})).await;
    eventually("the schedule is the new one", || async {
        let cron = bed.api::<CronJob>().get("db-backup").await.unwrap();
        (cron.spec.schedule == "0 3 * * *").then_some(())
    })
    .await;
    merge(&bed, "db", json!({"spec": {"parameters": {"work_mem": "4MB", "work_memo": null}}})).await;
    settled(&bed, "db").await;
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;
    assert_eq!(bed.api::<Pod>().get("db-0").await.unwrap().uid(), before.uid(), "the server went on running");
    eventually("the Job is tidied up", || async { (bed.count::<Job>().await == 0).then_some(()) }).await;
    bed.api::<ResourceQuota>().delete("one", &DeleteParams::default()).await.unwrap();
    merge(&bed, "db", json!({"spec": {"parameters": {"work_mem": "8MB"}}})).await;
    eventually("right ones are taken", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        (status["parameters"] == json!({"work_mem": "8MB"})).then_some(())
    })
    .await;
    settled(&bed, "db").await;
    assert_ne!(bed.api::<Pod>().get("db-0").await.unwrap().uid(), before.uid());
}

async fn held_back(bed: Bed) {
    create(&bed, "database", database("db", json!({"deletionProtection": true}))).await;
    settled(&bed, "db").await;
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    condition(&bed, "db", "Degraded", "True", "DeletionProtected").await;
    let services = bed.api::<Service>();
    let before = services.get("db-rw").await.unwrap();
    services.delete("db-rw", &DeleteParams::default()).await.unwrap();
    eventually("the Service is back", || async {
        let now = services.get_opt("db-rw").await.unwrap()?;
        (now.uid() != before.uid()).then_some(())
    })
    .await;
    merge(&bed, "db", json!({"spec": {"parameters": {"work_mem": "8MB"}, "storage": {"size": "2Gi"}}})).await;
    eventually("the server has the new setting, and the volume the new size", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        let done = status["parameters"] == json!({"work_mem": "8MB"}) && status["storageSize"] == "2Gi";
        (done && super::condition_of(&status, "Ready")?["status"] == "True").then_some(())
    })
    .await;
    condition(&bed, "db", "Degraded", "True", "DeletionProtected").await;
    merge(&bed, "db", json!({"spec": {"deletionProtection": false}})).await;
    eventually("it is gone", || async {
        bed.dynamic("database").get_opt("db").await.unwrap().is_none().then_some(())
    })
    .await;
}

async fn an_object_of_somebody_else_is_told_and_not_used(bed: Bed) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db-credentials"},
        "stringData": {"username": "theirs", "password": "theirs"},
    });
    bed.create::<Secret>(secret).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-db-0"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    bed.create::<PersistentVolumeClaim>(claim).await;
    create(&bed, "database", database("db", json!({}))).await;
    let message = condition(&bed, "db", "Degraded", "True", "NameConflict").await;
    assert!(
        message.contains("Secret db-credentials") && message.contains("database.example.com/name=db"),
        "{message}"
    );
    bed.api::<Secret>().delete("db-credentials", &DeleteParams::default()).await.unwrap();
    eventually("the claim is told too", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        let message = super::condition_of(&status, "Ready")?["message"].as_str()?.to_owned();
        message.contains("PersistentVolumeClaim data-db-0").then_some(())
    })
    .await;
    assert_eq!(bed.count::<Pod>().await, 0, "nobody opens somebody else's volume");
    // Handed over by its label, it is used.
    let label = Patch::Merge(json!({"metadata": {"labels": {"database.example.com/name": "db"}}}));
    bed.api::<PersistentVolumeClaim>().patch("data-db-0", &PatchParams::default(), &label).await.unwrap();
    settled(&bed, "db").await;
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;
}

async fn what_postgresql_would_not_survive_is_refused(bed: Bed) {
    for (more, why) in [
        (json!({"parameters": {"Port": "1"}}), "a parameter that the operator sets itself"),
        (json!({"parameters": {"INCLUDE": "/etc/passwd"}}), "a parameter that the operator sets itself"),
        (json!({"parameters": {"work_mem = '1'\nport": "1"}}), "no name of a setting"),
        (json!({"parameters": {"application_name": "a\nport = 1"}}), "control character"),
        (json!({"parameters": {"wal_level": "minimal"}}), "backups need replica or logical"),
        (json!({"bootstrap": {"owner": "postgres"}}), "spec.bootstrap.owner"),
    ] {
        let message = super::refused(&bed, database("odd", more.clone())).await;
        assert!(message.contains(why), "{more}: {message}");
    }
}

/// Expressions of all kinds in each of their fields: what a CronJob takes, a Database takes, and nothing else.
fn schedules() -> Vec<String> {
    let kinds: [&[&str]; 5] = [
        &["0", "59", "60", "*/15", "*/0", "5-10", "10-5", "1,2,3", "7/20", "x", "-1", "1-2-3", "1/2/3"],
        &["0", "23", "24", "*/6", "8-18/2", "?"],
        &["1", "31", "0", "32", "*/2", "L", "?"],
        &["1", "12", "13", "JAN", "jan-MAR", "0", "*/3", "january"],
        &["0", "6", "7", "MON", "sun-sat", "mon-sun", "1-5", "*/2", "?", "8"],
    ];
    let mut all: Vec<String> =
        ["@daily", "@hourly", "@weekly", "@monthly", "@yearly", "@annually", "@midnight"]
            .into_iter()
            .chain(["@every 6h", "@never", "0 2 * *", "0 2 * * * *", "  0  2 * * * ", "TZ=UTC 0 2 * * *"])
            .map(ToOwned::to_owned)
            .collect();
    for (place, words) in kinds.iter().enumerate() {
        for word in *words {
            let mut fields = ["0", "2", "*", "*", "*"];
            fields[place] = word;
            all.push(fields.join(" "));
        }
    }
    all
}

async fn same_schedules(bed: Bed) {
    // Once the webhook is known, every refusal is its own.
    super::refused(&bed, database("odd", json!({"backup": {"schedule": "every day at two"}}))).await;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut differ = Vec::new();
    for schedule in schedules() {
        let object =
            serde_json::from_value(database("db", json!({"backup": {"schedule": schedule}}))).unwrap();
        let ours = bed.dynamic("database").create(&dry, &object).await.is_ok();
        let job = json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "c:1"}],
        }}}});
        let cron: CronJob = serde_json::from_value(json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "db"},
            "spec": {"schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": job},
        }))
        .unwrap();
        let theirs: Result<Value, _> =
            bed.api::<CronJob>().create(&dry, &cron).await.map(|cron| serde_json::to_value(cron).unwrap());
        if ours != theirs.is_ok() {
            differ.push(format!("{schedule:?}: a Database takes it: {ours}; a CronJob: {theirs:?}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
