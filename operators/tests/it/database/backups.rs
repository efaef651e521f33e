//! Scheduled backups as objects, their volume, and Jobs whose wish changes while they are there. With real servers it is in
//! [`super::postgres`].

use k8s_openapi::{
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        batch::v1::{CronJob, Job},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{condition, condition_of, create, database, merge, operator, settled};
use crate::bed::{Bed, eventually};

on_both_clusters! { operator =>
    a_scheduled_backup_is_an_object_that_can_be_restored
    scheduled_backups_beyond_those_that_are_kept_go_with_their_jobs
    a_database_that_goes_with_its_data_takes_its_scheduled_backups_with_it
    the_volume_for_backups_grows_as_the_spec_says
    a_job_that_no_backup_can_be_named_after_is_told
}

mod alone {
    use super::{super::operator, a_failure_is_told_in_the_pods_words, no_job_is_applied_over_another};
    use crate::bed::{Ground, run};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_job_whose_wish_changes_is_not_applied_over_another() {
        run(Ground::Embedded, operator, no_job_is_applied_over_another).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failed_backup_is_told_in_its_pods_words() {
        run(Ground::Embedded, operator, a_failure_is_told_in_the_pods_words).await;
    }
}

/// Lets the schedule be due, as `kubectl create job --from=cronjob/db-backup` does.
pub(super) async fn due(bed: &Bed, name: &str) {
    let cron = eventually("there is a schedule", || async {
        bed.api::<CronJob>().get_opt("db-backup").await.unwrap()
    })
    .await;
    let template = cron.spec.job_template.clone();
    let mut metadata = template.metadata.unwrap_or_default();
    metadata.name = Some(name.into());
    metadata.owner_references = Some(vec![OwnerReference {
        api_version: "batch/v1".into(),
        kind: "CronJob".into(),
        name: cron.name_any(),
        uid: cron.uid().unwrap(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);
    let job = Job { metadata, spec: template.spec, status: None };
    bed.api::<Job>().create(&PostParams::default(), &job).await.unwrap();
}

async fn phase(bed: &Bed, name: &str, phase: &str) -> Value {
    eventually(&format!("the backup {name} is {phase}"), || async {
        let object = bed.dynamic("databasebackup").get_opt(name).await.unwrap()?;
        let status = object.data.get("status")?.clone();
        (status["phase"] == phase).then_some(status)
    })
    .await
}

async fn gone(bed: &Bed, name: &str) {
    eventually(&format!("the backup {name} and its Jobs are gone"), || async {
        let backup = bed.dynamic("databasebackup").get_opt(name).await.unwrap();
        let jobs = bed.api::<Job>();
        let removal = jobs.get_opt(&format!("{name}-remove")).await.unwrap();
        (backup.is_none() && jobs.get_opt(name).await.unwrap().is_none() && removal.is_none()).then_some(())
    })
    .await;
}

async fn a_scheduled_backup_is_an_object_that_can_be_restored(bed: Bed) {
    create(&bed, "database", database("db", json!({"backup": {"schedule": "@yearly"}}))).await;
    settled(&bed, "db").await;
    due(&bed, "db-backup-1").await;
    let status = phase(&bed, "db-backup-1", "Succeeded").await;
    assert_eq!(status["location"]["directory"], "scheduled/db-backup-1");
    assert_eq!(
        (&status["location"]["version"], &status["location"]["claim"]),
        (&json!("15"), &json!("db-backups"))
    );
    let object = bed.dynamic("databasebackup").get("db-backup-1").await.unwrap();
    assert_eq!(object.labels()["database.example.com/scheduled"], "true");
    assert!(object.owner_references().is_empty(), "it outlives the Database, as its files do");
    condition(&bed, "db", "BackupHealthy", "True", "BackupSucceeded").await;

    let bootstrap = json!({"bootstrap": {"recovery": {"backupRef": {"name": "db-backup-1"}}}});
    create(&bed, "database", database("copy", bootstrap)).await;
    let copy = settled(&bed, "copy").await;
    assert_eq!(copy["restoredFrom"]["directory"], "scheduled/db-backup-1");
}

async fn scheduled_backups_beyond_those_that_are_kept_go_with_their_jobs(bed: Bed) {
    let two = json!({"backup": {"schedule": "@yearly", "retention": {"count": 2}}});
    create(&bed, "database", database("db", two)).await;
    settled(&bed, "db").await;
    let demand = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": "mine"}, "spec": {"databaseRef": {"name": "db"}},
    });
    create(&bed, "databasebackup", demand).await;
    phase(&bed, "mine", "Succeeded").await;
    for number in 1..=3 {
        let name = format!("db-backup-{number}");
        due(&bed, &name).await;
        // Two that end in one second are ordered by their names.
        phase(&bed, &name, "Succeeded").await;
    }
    gone(&bed, "db-backup-1").await;
    for name in ["db-backup-2", "db-backup-3", "mine"] {
        phase(&bed, name, "Succeeded").await;
    }
    // What a person deletes does not come back either, though its Job had ended long before.
    bed.dynamic("databasebackup").delete("db-backup-2", &DeleteParams::default()).await.unwrap();
    gone(&bed, "db-backup-2").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(bed.dynamic("databasebackup").get_opt("db-backup-2").await.unwrap().is_none());
}

/// A name that a Job can have and a DatabaseBackup cannot: that is told, and stops nothing else.
async fn a_job_that_no_backup_can_be_named_after_is_told(bed: Bed) {
    create(&bed, "database", database("db", json!({"backup": {"schedule": "@yearly"}}))).await;
    settled(&bed, "db").await;
    let name = "b".repeat(60);
    due(&bed, &name).await;
    let message = condition(&bed, "db", "Degraded", "True", "Invalid").await;
    assert!(message.contains(&name) && message.contains("at most 56"), "{message}");
    merge(&bed, "db", json!({"spec": {"backup": {"schedule": "@monthly"}}})).await;
    eventually("the schedule is the new one", || async {
        (bed.api::<CronJob>().get("db-backup").await.unwrap().spec.schedule == "@monthly").then_some(())
    })
    .await;
    bed.api::<Job>().delete(&name, &DeleteParams::background()).await.unwrap();
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;
}

async fn a_database_that_goes_with_its_data_takes_its_scheduled_backups_with_it(bed: Bed) {
    let all = json!({"deletionPolicy": "Delete", "backup": {"schedule": "@yearly"}});
    create(&bed, "database", database("db", all)).await;
    settled(&bed, "db").await;
    due(&bed, "db-backup-1").await;
    phase(&bed, "db-backup-1", "Succeeded").await;
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    gone(&bed, "db-backup-1").await;
}

fn size(claim: &PersistentVolumeClaim) -> Option<String> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage").map(|size| size.0.clone())
}

async fn the_volume_for_backups_grows_as_the_spec_says(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let claims = bed.api::<PersistentVolumeClaim>();
    let has = |wanted: &'static str| {
        let claims = claims.clone();
        async move {
            eventually(&format!("the volume asks for {wanted}"), || async {
                (size(&claims.get("db-backups").await.unwrap()).as_deref() == Some(wanted)).then_some(())
            })
            .await;
        }
    };
    has("8Gi").await;
    // A claim without a volume cannot grow: the first backup brings one.
    merge(&bed, "db", json!({"spec": {"backup": {"retention": {"count": 8}}}})).await;
    due(&bed, "db-backup-1").await;
    phase(&bed, "db-backup-1", "Succeeded").await;
    has("9Gi").await;
    merge(&bed, "db", json!({"spec": {"backup": {"retention": {"count": 9}}}})).await;
    has("10Gi").await;
    let target =
        |size: &str| json!({"spec": {"backup": {"target": {"persistentVolumeClaim": {"size": size}}}}});
    merge(&bed, "db", target("12Gi")).await;
    has("12Gi").await;
    // Less than there is, from no wish to one.
    merge(&bed, "db", json!({"spec": {"backup": {"target": null}}})).await;
    merge(&bed, "db", target("3Gi")).await;
    let message = condition(&bed, "db", "Degraded", "True", "ShrinkRefused").await;
    assert!(message.contains("db-backups has 12Gi") && message.contains("cannot shrink"), "{message}");
    condition(&bed, "db", "Ready", "True", "Available").await;
    merge(&bed, "db", target("12Gi")).await;
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;
}

/// A policy under which no Pod of a Job is made, and every other one is.
async fn no_job_begins(bed: &Bed) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-jobs"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
            }]},
            "validations": [{
                "expression": "!has(object.metadata.labels) || !('app.kubernetes.io/component' in object.metadata.labels)",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-jobs"}, "spec": {"policyName": "no-jobs", "validationActions": ["Deny"]},
    });
    let policies = Api::<ValidatingAdmissionPolicy>::all(bed.client.clone());
    policies.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(bed.client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "try", "labels": {"app.kubernetes.io/component": "x"}},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the policy holds", || async { bed.api::<Pod>().create(&dry, &pod).await.err().map(|_| ()) })
        .await;
}

async fn jobs_begin(bed: &Bed) {
    let policies = Api::<ValidatingAdmissionPolicy>::all(bed.client.clone());
    policies.delete("no-jobs", &DeleteParams::default()).await.unwrap();
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(bed.client.clone());
    bindings.delete("no-jobs", &DeleteParams::default()).await.unwrap();
}

/// Every wish that reaches a Job's template, while Jobs are there that cannot begin: any run that fails fails the case, and
/// a Job that is applied over another one is refused with `Invalid`.
async fn no_job_is_applied_over_another(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    no_job_begins(&bed).await;
    let backups = bed.dynamic("databasebackup");
    let backup = |name: &str| {
        json!({
            "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
            "metadata": {"name": name}, "spec": {"databaseRef": {"name": "db"}},
        })
    };
    create(&bed, "databasebackup", backup("now")).await;
    phase(&bed, "now", "Running").await;
    let first = bed.api::<Job>().get("now-backup").await.unwrap();
    let changes = [
        json!({"backup": {"retention": {"count": 3}, "activeDeadlineSeconds": 600}}),
        json!({"pod": {"tolerations": [{"key": "db", "operator": "Exists"}]}}),
        json!({"pod": {"annotations": {"team": "shop"}}}),
        json!({"pod": {"resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "1Gi"}}}}),
        json!({"pod": {"securityContext": {"runAsUser": 26, "fsGroup": 26}}}),
        json!({"pod": {"containerSecurityContext": {"allowPrivilegeEscalation": false}}}),
        json!({"pod": {"imagePullSecrets": [{"name": "registry"}]}}),
        json!({"image": "postgres:15.1"}),
        json!({"parameters": {"work_mem": "8MB"}}),
    ];
    for change in changes {
        merge(&bed, "db", json!({"spec": change})).await;
        eventually("the change is seen", || async {
            let object = bed.dynamic("database").get("db").await.unwrap();
            let seen = object.data["status"]["observedGeneration"].as_i64();
            (seen == object.metadata.generation).then_some(())
        })
        .await;
    }
    let second = eventually("a Job that has not begun makes room for another", || async {
        let job = bed.api::<Job>().get_opt("now-backup").await.unwrap()?;
        let image = job.spec.as_ref()?.template.spec.as_ref()?.containers[0].image.clone()?;
        (job.uid() != first.uid() && image == "postgres:15.1").then_some(job)
    })
    .await;
    jobs_begin(&bed).await;
    phase(&bed, "now", "Succeeded").await;
    assert_eq!(bed.api::<Job>().get("now-backup").await.unwrap().uid(), second.uid());
    settled(&bed, "db").await;

    // The same for the Job that removes files: nothing hangs in Terminating for a wish that has changed.
    no_job_begins(&bed).await;
    backups.delete("now", &DeleteParams::default()).await.unwrap();
    let removal = eventually("the removal has begun", || async {
        bed.api::<Job>().get_opt("now-remove").await.unwrap()
    })
    .await;
    merge(&bed, "db", json!({"spec": {"pod": {"tolerations": null}}})).await;
    eventually("another Job removes", || async {
        let job = bed.api::<Job>().get_opt("now-remove").await.unwrap()?;
        (job.uid() != removal.uid()).then_some(())
    })
    .await;
    jobs_begin(&bed).await;
    gone(&bed, "now").await;
}

/// Nothing runs on a simulated node, so the case says in a Pod's place what it would have said.
async fn a_failure_is_told_in_the_pods_words(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let said = "pg_basebackup: error: could not write to file: No space left on device";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "now-backup-x", "labels": {"batch.kubernetes.io/job-name": "now-backup"}},
        "spec": {
            "schedulerName": "nobody", "restartPolicy": "Never",
            "containers": [{"name": "backup", "image": "postgres:15"}],
        },
    });
    bed.create::<Pod>(pod).await;
    let status = json!({"status": {"phase": "Failed", "containerStatuses": [{
        "name": "backup", "image": "postgres:15", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 1, "message": said, "finishedAt": "2026-01-01T00:00:00Z"}},
    }]}});
    bed.api::<Pod>()
        .patch_status("now-backup-x", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    no_job_begins(&bed).await;
    let backup = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": "now"}, "spec": {"databaseRef": {"name": "db"}},
    });
    create(&bed, "databasebackup", backup).await;
    let jobs = bed.api::<Job>();
    eventually("the Job is there", || async {
        jobs.get_opt("now-backup").await.unwrap()?.status?.start_time.map(|_| ())
    })
    .await;
    let failed = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let end = json!({"status": {"failed": 4, "conditions": [failed("FailureTarget"), failed("Failed")]}});
    jobs.patch_status("now-backup", &PatchParams::default(), &Patch::Merge(&end)).await.unwrap();
    let status = phase(&bed, "now", "Failed").await;
    let error = status["error"].as_str().unwrap();
    for word in ["now-backup", "backoff limit", said, "spec.backup.target"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let told = condition(&bed, "db", "BackupHealthy", "False", "BackupFailed").await;
    assert_eq!(told, error);
    let db = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
    assert_eq!(condition_of(&db, "Ready").unwrap()["status"], "True");
}
