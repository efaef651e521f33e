//! Jobs: scheduled backups, backups on demand, restores.

use k8s_openapi::{
    api::batch::v1::{CronJob, Job},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::server::{
    config_volume, container, image_pull_policy, pod_security, secret_key, temporary, without_nulls,
};
use crate::{
    database::api::{Database, DatabaseBackup, DatabaseBackupSpec, Location, Method, Reference},
    workload::digest,
};

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
            "spec": job_spec(db, &backup_container(db, "scheduled", None, backup.method), &[backups_volume(db)]),
        },
    });
    CronJob {
        metadata: super::metadata(db, format!("{}-backup", db.name_any())),
        spec: windlass::from_value(&spec).expect("a CronJob must fit its type"),
        status: None,
    }
}

/// A backup on demand.
pub(crate) fn backup_job(db: &Database, backup: &DatabaseBackup) -> Job {
    let name = backup.name_any();
    let container = backup_container(db, "on-demand", Some(&name), backup.spec.method);
    let mut metadata = super::metadata(db, format!("{name}-backup"));
    metadata.labels = Some(labels(db));
    let spec = job_spec(db, &container, &[backups_volume(db)]);
    Job { metadata, spec: windlass::from_value(&spec).expect("a Job must fit its type"), status: None }
}

/// The exit code with which `prepare.sh` refuses to restore into a volume that holds something else.
const REFUSED: i32 = 73;

/// The name of the Job that restores.
pub(crate) fn restore_name(db: &Database) -> String {
    format!("{}-restore", db.name_any())
}

/// What a restore leaves in the volume: for which Database it was made, and from what. Another Database of the name has
/// another uid, and what the first one has written since is no longer what the backup holds.
fn restore_mark(db: &Database, from: &Location) -> String {
    let uid = db.uid().unwrap_or_default();
    format!("{uid} {}/{} {}", from.claim, from.directory, from.method.as_str())
}

/// The restore of a backup into the volume of a Database that has not started yet.
pub(crate) fn restore_job(db: &Database, from: &Location) -> Job {
    let mut container = container(db, "restore", "prepare.sh", &["data", "backups"]);
    let env = container["env"].as_array_mut().expect("a container must have its environment");
    env.push(json!({"name": "RESTORE_METHOD", "value": from.method.as_str()}));
    env.push(json!({"name": "RESTORE_FROM", "value": format!("/backups/{}", from.directory)}));
    env.push(json!({"name": "RESTORE_MARK", "value": restore_mark(db, from)}));
    let volumes = [claim_volume("backups", &from.claim), claim_volume("data", &super::data_claim(db))];
    let mut spec = job_spec(db, &container, &volumes);
    // A refusal is final. With a policy there is also no second Pod before the first has ended: both would write.
    spec["podFailurePolicy"] = json!({"rules": [{
        "action": "FailJob",
        "onExitCodes": {"containerName": "restore", "operator": "In", "values": [REFUSED]},
    }]});
    let mut metadata = super::metadata(db, restore_name(db));
    metadata.labels = Some(labels(db));
    Job { metadata, spec: windlass::from_value(&spec).expect("a Job must fit its type"), status: None }
}

/// A login with what the Secret says. Its name tells what it runs and which credentials it tries, so that another wish is
/// another Job: what a Job runs cannot be changed.
pub(crate) fn login_job(db: &Database, credentials: &str) -> Job {
    let mut container = container(db, "login", "login.sh", &[]);
    let env = container["env"].as_array_mut().expect("a container must have its environment");
    env.extend([
        json!({"name": "PGHOST", "value": super::read_write(db)}),
        json!({"name": "SERVICE_ADDRESS", "value": service_address(db)}),
        json!({"name": "PGDATABASE", "valueFrom": secret_key(db, "database")}),
        json!({"name": "LOGIN_USER", "valueFrom": secret_key(db, "username")}),
    ]);
    let spec = job_spec(db, &container, &[]);
    let name = format!("{}{}", login_prefix(db), digest::of(&(&spec, credentials)));
    let mut metadata = super::metadata(db, name);
    metadata.labels = Some(labels(db));
    Job { metadata, spec: windlass::from_value(&spec).expect("a Job must fit its type"), status: None }
}

fn login_prefix(db: &Database) -> String {
    format!("{}-login-", db.name_any())
}

/// Whether a Job of a Database does something else than to take a backup.
pub(crate) fn is_no_backup(db: &Database, job: &Job) -> bool {
    let name = job.name_any();
    name == restore_name(db) || name.starts_with(&login_prefix(db))
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
    Job { metadata, spec: windlass::from_value(&spec).expect("a Job must fit its type"), status: None }
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

fn claim_volume(name: &str, claim: &str) -> Value {
    json!({"name": name, "persistentVolumeClaim": {"claimName": claim}})
}

fn backups_volume(db: &Database) -> Value {
    claim_volume("backups", &super::backup_claim(&db.name_any()))
}

fn job_spec(db: &Database, container: &Value, more: &[Value]) -> Value {
    let options = db.spec.pod.clone().unwrap_or_default();
    let mut annotations = options.annotations;
    // What makes the server's Pods fail on a simulated node is no wish for the Jobs.
    annotations.retain(|name, _| !name.starts_with("windlass.dev/"));
    let mut container = container.clone();
    container["imagePullPolicy"] = json!(image_pull_policy(db));
    let volumes: Vec<Value> =
        [config_volume(db), temporary()].into_iter().chain(more.iter().cloned()).collect();
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
                "volumes": volumes,
            },
        },
    }))
}
