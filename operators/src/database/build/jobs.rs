//! Jobs: scheduled backups, backups on demand, restores, logins, checks of parameters. What one runs cannot be changed.

use k8s_openapi::{
    api::batch::v1::{CronJob, Job},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    options::{self, Share},
    server::{config_volume, container, pod_security, secret_key, temporary, without_nulls},
};
use crate::{
    database::api::{Database, DatabaseBackup, DatabaseBackupSpec, Location, Method, Reference},
    workload::{PodOptions, digest},
};

/// The annotation of a Job with the digest of what it was made to run.
pub(crate) const MADE_FROM: &str = "database.example.com/made-from";
/// The label of the Jobs and backups that a schedule has made.
pub(crate) const SCHEDULED: &str = "database.example.com/scheduled";
/// How late a scheduled backup may begin, in seconds: one that was missed while nothing ran is made up for.
pub(crate) const STARTING_DEADLINE: i64 = 3600;
/// How many Jobs of the schedule stay, at least and at most. Those that ended while no operator ran are entered as
/// DatabaseBackups by the next one, so as many stay as there are backups.
const HISTORY: (i32, i32) = (3, 100);
/// How many failed ones stay.
pub(crate) const FAILED_HISTORY: i32 = 3;

/// Whether the schedule took a backup, or is taking it.
pub(crate) fn is_scheduled(backup: &DatabaseBackup) -> bool {
    backup.labels().contains_key(SCHEDULED)
}

/// The name of the Job that takes a backup: that of the schedule has the backup's own name.
pub(crate) fn backup_job_name(backup: &DatabaseBackup) -> String {
    if is_scheduled(backup) { backup.name_any() } else { format!("{}-backup", backup.name_any()) }
}

/// The name of the Job that removes a backup's files.
fn removal_name(backup: &DatabaseBackup) -> String {
    format!("{}-remove", backup.name_any())
}

/// The name of the CronJob.
pub(crate) fn schedule_name(db: &Database) -> String {
    format!("{}-backup", db.name_any())
}

/// Where on its volume a backup stands.
pub(crate) fn location(db: &Database, backup: &DatabaseBackup) -> Location {
    let kind = if is_scheduled(backup) { "scheduled" } else { "on-demand" };
    Location {
        claim: super::backup_claim(&db.name_any()),
        directory: format!("{kind}/{}", backup.name_any()),
        method: backup.spec.method,
        version: db.spec.version.clone(),
        image: super::image(db),
    }
}

/// The scheduled backup. Each has the name of its Job, by which its DatabaseBackup finds it.
pub(crate) fn cron_job(db: &Database) -> CronJob {
    let backup = super::backup(db);
    let name =
        json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}});
    let container = backup_container(db, "scheduled", name, backup.method);
    let mut labels = labels(db);
    labels.insert(SCHEDULED.to_owned(), "true".to_owned());
    let spec = json!({
        "schedule": backup.schedule,
        "timeZone": backup.time_zone,
        "suspend": backup.suspend,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": STARTING_DEADLINE,
        "successfulJobsHistoryLimit": backup.retention.count.clamp(HISTORY.0, HISTORY.1),
        "failedJobsHistoryLimit": FAILED_HISTORY,
        "jobTemplate": {
            "metadata": {"labels": labels},
            "spec": backup_spec(db, &container),
        },
    });
    CronJob {
        metadata: super::metadata(db, schedule_name(db)),
        spec: windlass::from_value(&spec).expect("a CronJob must fit its type"),
        status: None,
    }
}

/// The object of a backup that the schedule takes. It outlives the Database, as the files do, so nobody owns it.
pub(crate) fn scheduled_backup(db: &Database, job: &Job) -> DatabaseBackup {
    let containers =
        job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()).map(|pod| &pod.containers);
    let env = containers.and_then(|all| all.first()?.env.as_ref());
    let method = env.and_then(|all| all.iter().find(|it| it.name == "BACKUP_METHOD")?.value.as_deref());
    // What the Job was made to do, not what the spec says by now.
    let method = match method {
        Some("Logical") => Method::Logical,
        Some(_) => Method::Physical,
        None => super::backup(db).method,
    };
    let mut metadata = super::lasting(db, job.name_any());
    metadata.labels.get_or_insert_default().insert(SCHEDULED.to_owned(), "true".to_owned());
    let spec = DatabaseBackupSpec { database_ref: Reference { name: db.name_any() }, method };
    DatabaseBackup { metadata, spec, status: None }
}

/// A backup on demand.
pub(crate) fn backup_job(db: &Database, backup: &DatabaseBackup) -> Job {
    let name = json!({"value": backup.name_any()});
    let container = backup_container(db, "on-demand", name, backup.spec.method);
    job(db, backup_job_name(backup), &backup_spec(db, &container))
}

fn backup_spec(db: &Database, container: &Value) -> Value {
    let mut spec = job_spec(db, container, &[backups_volume(db)], Share::Client);
    // One that hangs would hold up all that come after it.
    spec["activeDeadlineSeconds"] = super::backup(db).active_deadline_seconds.into();
    spec
}

/// A Job of a Database, with a note of what it was made from.
fn job(db: &Database, name: String, spec: &Value) -> Job {
    let mut metadata = super::metadata(db, name);
    metadata.labels = Some(labels(db));
    made(metadata, spec)
}

fn made(mut metadata: ObjectMeta, spec: &Value) -> Job {
    metadata.annotations.get_or_insert_default().insert(MADE_FROM.to_owned(), digest::of(spec));
    Job { metadata, spec: windlass::from_value(spec).expect("a Job must fit its type"), status: None }
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
    let mut spec = job_spec(db, &container, &volumes, Share::Whole);
    // A refusal is final. With a policy there is also no second Pod before the first has ended: both would write.
    spec["podFailurePolicy"] = json!({"rules": [{
        "action": "FailJob",
        "onExitCodes": {"containerName": "restore", "operator": "In", "values": [REFUSED]},
    }]});
    job(db, restore_name(db), &spec)
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
    let spec = job_spec(db, &container, &[], Share::Client);
    let name = format!("{}{}", login_prefix(db), digest::of(&(&spec, credentials)));
    job(db, name, &spec)
}

/// The exit code with which `check.sh` says that a server does not start with some settings.
const UNFIT: i32 = 78;

/// A server without data that is started with the settings of the spec. As with logins, another wish is another Job.
pub(crate) fn check_job(db: &Database) -> Job {
    let mut container = container(db, "check", "check.sh", &[]);
    let env = container["env"].as_array_mut().expect("a container must have its environment");
    // In the Job itself: a mounted file may be that of a moment ago. A '$' would begin a reference.
    let settings = super::settings(db).replace('$', "$$");
    env.push(json!({"name": "SETTINGS", "value": settings}));
    let mut spec = job_spec(db, &container, &[], Share::Client);
    spec["activeDeadlineSeconds"] = 600.into();
    spec["podFailurePolicy"] = json!({"rules": [{
        "action": "FailJob",
        "onExitCodes": {"containerName": "check", "operator": "In", "values": [UNFIT]},
    }]});
    let name = format!("{}{}", check_prefix(db), digest::of(&spec));
    job(db, name, &spec)
}

fn check_prefix(db: &Database) -> String {
    format!("{}-check-", db.name_any())
}

fn login_prefix(db: &Database) -> String {
    format!("{}-login-", db.name_any())
}

/// Whether a Job of a Database does something else than to take a backup.
pub(crate) fn is_no_backup(db: &Database, job: &Job) -> bool {
    let name = job.name_any();
    let other = [login_prefix(db), check_prefix(db)];
    name == restore_name(db) || other.iter().any(|prefix| name.starts_with(prefix))
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
    let labels = json!({
        "app.kubernetes.io/managed-by": "database-operator", "app.kubernetes.io/component": "backup-removal",
    });
    let place = format!("/backups/{}", from.directory);
    let options = db.and_then(|db| db.spec.pod.as_ref());
    let container = json!({
        "name": "remove",
        "image": from.image,
        "command": ["rm", "-rf", place, format!("{place}.partial")],
        "volumeMounts": [{"name": "backups", "mountPath": "/backups"}],
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    let spec = finite(options, &labels, container, &[claim_volume("backups", &from.claim)], Share::Client);
    let labels = serde_json::from_value(labels).expect("labels must fit their type");
    let metadata =
        ObjectMeta { name: Some(removal_name(backup)), labels: Some(labels), ..ObjectMeta::default() };
    made(metadata, &spec)
}

/// The labels of a Job and its Pods: not those by which the Services find the server.
fn labels(db: &Database) -> std::collections::BTreeMap<String, String> {
    let mut labels = super::lasting_labels(db);
    labels.insert("app.kubernetes.io/component".to_owned(), "backup".to_owned());
    labels
}

fn backup_container(db: &Database, kind: &str, mut name: Value, method: Method) -> Value {
    let mut container = container(db, "backup", "backup.sh", &["backups"]);
    let env = container["env"].as_array_mut().expect("a container must have its environment");
    let backup = super::backup(db);
    name["name"] = "BACKUP_NAME".into();
    env.push(name);
    let variables = [
        ("PGHOST", super::read_write(db)),
        ("SERVICE_ADDRESS", service_address(db)),
        ("PGUSER", "postgres".to_owned()),
        ("BACKUP_ROOT", "/backups".to_owned()),
        ("BACKUP_KIND", kind.to_owned()),
        ("BACKUP_METHOD", method.as_str().to_owned()),
        ("BACKUP_KEEP", backup.retention.count.to_string()),
        ("BACKUP_DEADLINE", backup.active_deadline_seconds.to_string()),
    ];
    env.extend(variables.map(|(name, value)| json!({"name": name, "value": value})));
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

fn job_spec(db: &Database, container: &Value, more: &[Value], share: Share) -> Value {
    let volumes: Vec<Value> =
        [config_volume(db), temporary()].into_iter().chain(more.iter().cloned()).collect();
    finite(db.spec.pod.as_ref(), &json!(labels(db)), container.clone(), &volumes, share)
}

/// A Job's spec: one container that runs to its end.
fn finite(
    options: Option<&PodOptions>,
    labels: &Value,
    mut container: Value,
    volumes: &[Value],
    share: Share,
) -> Value {
    // Whoever asks why a Job failed is told what its Pod said last.
    container["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": pod_security(),
            "containers": [container],
            "volumes": volumes,
        },
    });
    let template = windlass::from_value(&template).expect("a template must fit its type");
    without_nulls(json!({"backoffLimit": 3, "template": options::of_job(options, share, template)}))
}
