//! Jobs: scheduled backups, backups on demand, restores.

use k8s_openapi::{
    api::batch::v1::{CronJob, Job},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::server::{config_volume, container, pod_security, temporary, without_nulls};
use crate::database::api::{Database, DatabaseBackup, DatabaseBackupSpec, Location, Method, Reference};

/// Where on its volume a backup on demand stands.
pub(crate) fn location(db: &Database, backup: &DatabaseBackup) -> Location {
    Location {
        claim: super::backup_claim(&db.name_any()),
        directory: format!("on-demand/{}", backup.name_any()),
        method: backup.spec.method,
        version: db.spec.version.clone(),
        image: super::image(db),
    }
}

/// The scheduled backup.
pub(crate) fn cron_job(db: &Database) -> CronJob {
    let backup = super::backup(db);
    let spec = json!({
        "schedule": backup.schedule,
        "timeZone": backup.time_zone,
        "suspend": backup.suspend,
        "concurrencyPolicy": "Forbid",
        // One that was missed while nothing ran is made up for, within an hour.
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {
            "metadata": {"labels": labels(db)},
            "spec": job_spec(db, &backup_container(db, "scheduled", None, backup.method), "backups", &super::backup_claim(&db.name_any())),
        },
    });
    CronJob {
        metadata: super::metadata(db, format!("{}-backup", db.name_any())),
        spec: serde_json::from_value(spec).expect("a CronJob must fit its type"),
        status: None,
    }
}

/// A backup on demand.
pub(crate) fn backup_job(db: &Database, backup: &DatabaseBackup) -> Job {
    let name = backup.name_any();
    let container = backup_container(db, "on-demand", Some(&name), backup.spec.method);
    let mut metadata = super::metadata(db, format!("{name}-backup"));
    metadata.labels = Some(labels(db));
    let spec = job_spec(db, &container, "backups", &super::backup_claim(&db.name_any()));
    Job { metadata, spec: serde_json::from_value(spec).expect("a Job must fit its type"), status: None }
}

/// The restore of a backup into the volume of a Database that has not started yet.
pub(crate) fn restore_job(db: &Database, from: &Location) -> Job {
    let mut container = container(db, "restore", "prepare.sh", &["data", "backups"]);
    let env = container["env"].as_array_mut().expect("a container must have its environment");
    env.push(json!({"name": "RESTORE_METHOD", "value": from.method.as_str()}));
    env.push(json!({"name": "RESTORE_FROM", "value": format!("/backups/{}", from.directory)}));
    let mut spec = job_spec(db, &container, "backups", &from.claim);
    let volumes = spec["template"]["spec"]["volumes"].as_array_mut().expect("a Job must have its volumes");
    volumes.push(json!({"name": "data", "persistentVolumeClaim": {"claimName": super::data_claim(db)}}));
    let mut metadata = super::metadata(db, format!("{}-restore", db.name_any()));
    metadata.labels = Some(labels(db));
    Job { metadata, spec: serde_json::from_value(spec).expect("a Job must fit its type"), status: None }
}

/// The name of the backup that a Database takes before it goes: another one for each life of the name.
pub(crate) fn last_backup_name(db: &Database) -> String {
    let uid = db.uid().unwrap_or_default();
    format!("{}-final-{}", db.name_any(), uid.get(..8).unwrap_or(&uid))
}

/// The backup that a Database takes before it goes. It outlives it, so nobody owns it.
pub(crate) fn last_backup(db: &Database) -> DatabaseBackup {
    let mut metadata = super::lasting(db, last_backup_name(db));
    metadata.labels = Some(labels(db));
    let spec = DatabaseBackupSpec {
        database_ref: Reference { name: db.name_any() },
        method: super::backup(db).method,
    };
    DatabaseBackup { metadata, spec, status: None }
}

/// What removes the files of a backup that is deleted, also when its Database is gone.
pub(crate) fn removal_job(backup: &DatabaseBackup, from: &Location, db: Option<&Database>) -> Job {
    let name = format!("{}-remove", backup.name_any());
    let labels = json!({
        "app.kubernetes.io/managed-by": "database-operator", "app.kubernetes.io/component": "backup-removal",
    });
    let place = format!("/backups/{}", from.directory);
    let options = db.and_then(|db| db.spec.pod.clone()).unwrap_or_default();
    let spec = without_nulls(json!({
        "backoffLimit": 3,
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "securityContext": pod_security(),
                "nodeSelector": options.node_selector,
                "tolerations": options.tolerations,
                "imagePullSecrets": options.image_pull_secrets,
                "containers": [{
                    "name": "remove",
                    "image": from.image,
                    "imagePullPolicy": options.image_pull_policy.map(crate::workload::ImagePullPolicy::as_str),
                    "command": ["rm", "-rf", place, format!("{place}.partial")],
                    "volumeMounts": [{"name": "backups", "mountPath": "/backups"}],
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
                "volumes": [{"name": "backups", "persistentVolumeClaim": {"claimName": from.claim}}],
            },
        },
    }));
    let labels = serde_json::from_value(labels).expect("labels must fit their type");
    let metadata = ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() };
    Job { metadata, spec: serde_json::from_value(spec).expect("a Job must fit its type"), status: None }
}

/// The labels of a Job and its Pods: not those by which the Services find the server.
fn labels(db: &Database) -> std::collections::BTreeMap<String, String> {
    let mut labels = super::lasting_labels(db);
    labels.insert("app.kubernetes.io/component".to_owned(), "backup".to_owned());
    labels
}

fn backup_container(db: &Database, kind: &str, name: Option<&str>, method: Method) -> Value {
    let mut container = container(db, "backup", "backup.sh", &["backups"]);
    let env = container["env"].as_array_mut().expect("a container must have its environment");
    let keep = super::backup(db).retention.count;
    let variables = [
        ("PGHOST", Some(super::read_write(db))),
        ("SERVICE_ADDRESS", Some(service_address(db))),
        ("PGUSER", Some("postgres".to_owned())),
        ("BACKUP_ROOT", Some("/backups".to_owned())),
        ("BACKUP_KIND", Some(kind.to_owned())),
        ("BACKUP_NAME", name.map(ToOwned::to_owned)),
        ("BACKUP_METHOD", Some(method.as_str().to_owned())),
        ("BACKUP_KEEP", Some(keep.to_string())),
    ];
    for (name, value) in variables {
        env.extend(value.map(|value| json!({"name": name, "value": value})));
    }
    container
}

/// The address of the Service as the kubelet tells it to every container: a backup needs no DNS.
fn service_address(db: &Database) -> String {
    format!("$({}_SERVICE_HOST)", super::read_write(db).to_uppercase().replace('-', "_"))
}

fn job_spec(db: &Database, container: &Value, volume: &str, claim: &str) -> Value {
    let options = db.spec.pod.clone().unwrap_or_default();
    let mut annotations = options.annotations;
    // What makes the server's Pods fail on a simulated node is no wish for the Jobs.
    annotations.retain(|name, _| !name.starts_with("windlass.dev/"));
    let mut container = container.clone();
    container["imagePullPolicy"] =
        json!(options.image_pull_policy.map(crate::workload::ImagePullPolicy::as_str));
    without_nulls(json!({
        "backoffLimit": 3,
        "template": {
            "metadata": {"labels": labels(db), "annotations": annotations},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "securityContext": pod_security(),
                "nodeSelector": options.node_selector,
                "tolerations": options.tolerations,
                "imagePullSecrets": options.image_pull_secrets,
                "containers": [container],
                "volumes": [
                    config_volume(db),
                    temporary(),
                    {"name": volume, "persistentVolumeClaim": {"claimName": claim}},
                ],
            },
        },
    }))
}
