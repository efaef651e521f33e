//! What a Database wants to exist. Pure: a spec comes in, children leave.

mod jobs;
mod options;
mod server;

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    api::{Backup, Bootstrap, Database, Storage},
    cron, parameters, quantity,
};
use crate::workload::{INSTANCE, Problem, reasons};

pub(super) use jobs::{
    FAILED_HISTORY, MADE_FROM, SCHEDULED, STARTING_DEADLINE, backup_job, backup_job_name, check_job,
    cron_job, is_no_backup, is_scheduled, last_backup, last_backup_name, location, login_job, removal_job,
    restore_job, restore_name, schedule_name, scheduled_backup,
};
pub(super) use server::{SERVER_HASH, stateful_set};

/// The label that ties objects to one Database and no other, even one of the same name that came before.
pub(super) const UID: &str = "database.example.com/uid";
/// The label of what outlives a Database: a Database of the same name finds it by this.
pub(super) const NAME: &str = "database.example.com/name";
/// The port of PostgreSQL.
const PORT: i32 = 5432;
/// The user and group that the stock image runs as.
const USER: i64 = 999;
/// The versions that can be run, and the first of them that its makers still mend.
const VERSIONS: std::ops::RangeInclusive<u32> = 13..=18;
const FIRST_MAINTAINED: u32 = 14;

/// Refuses what the schema refuses too, for objects that are older than a rule, and what no schema can see.
pub(super) fn check(db: &Database) -> Result<(), Problem> {
    let name = db.name_any();
    if !crate::workload::is_dns_label(&name) || name.len() > 40 {
        let message = format!(
            "the name {name:?} is also the Services': at most 40 lower-case letters, digits and '-', starting with a \
             letter; create the Database under another name"
        );
        return Err(Problem::new(reasons::INVALID_NAME, message));
    }
    let known = major(db).is_some_and(|major| VERSIONS.contains(&major));
    if !known {
        let (from, to) = (VERSIONS.start(), VERSIONS.end());
        return Err(Problem::spec(format!(
            "spec.version is {:?}; write a version from {from} to {to}",
            db.spec.version
        )));
    }
    if quantity::bytes(&db.spec.storage.size).is_none_or(|size| size == 0) {
        return Err(Problem::spec(format!(
            "spec.storage.size is {:?}; write such as 10Gi",
            db.spec.storage.size
        )));
    }
    check_bootstrap(db)?;
    parameters::check(db)?;
    check_schedule(db)
}

/// The superuser has a password of its own, and roles that begin with `pg_` are PostgreSQL's.
fn check_bootstrap(db: &Database) -> Result<(), Problem> {
    let bootstrap = bootstrap(db);
    if bootstrap.owner == "postgres" || bootstrap.owner.starts_with("pg_") {
        return Err(Problem::spec(format!(
            "spec.bootstrap.owner is {:?}, which is a role of PostgreSQL's own; write another one, such as app. In a \
             Database that is there already, take a Logical DatabaseBackup and restore it into a new one",
            bootstrap.owner
        )));
    }
    if ["template0", "template1"].contains(&bootstrap.database.as_str()) {
        return Err(Problem::spec(format!(
            "spec.bootstrap.database is {:?}, which is a template for others; write another one, such as app",
            bootstrap.database
        )));
    }
    Ok(())
}

fn check_schedule(db: &Database) -> Result<(), Problem> {
    let Some(backup) = &db.spec.backup else { return Ok(()) };
    cron::parse(&backup.schedule).map_err(|why| Problem::spec(format!("spec.backup.schedule: {why}")))?;
    match cron::zone(&backup.time_zone) {
        Some(_) => Ok(()),
        None => Err(Problem::spec(format!(
            "spec.backup.timeZone is {:?}; write the name of a time zone such as Europe/Rome, or Etc/UTC",
            backup.time_zone
        ))),
    }
}

/// Refuses a version that the data cannot be opened with. The data's own version decides, not the last spec: to
/// take a failed change back must be possible.
pub(super) fn check_version(db: &Database) -> Result<(), Problem> {
    let data = db.status.as_ref().and_then(|status| status.version.clone());
    match data {
        Some(data) if data != db.spec.version => Err(Problem::new(
            "UpgradeBlocked",
            format!(
                "the data is of version {data} and spec.version is {}; set it back, or take a Logical DatabaseBackup \
                 and restore it into a new Database of the other version",
                db.spec.version
            ),
        )),
        _ => Ok(()),
    }
}

/// The major version.
pub(super) fn major(db: &Database) -> Option<u32> {
    db.spec.version.parse().ok()
}

/// Whether the version is no longer mended by its makers.
pub(super) fn is_out_of_life(db: &Database) -> bool {
    major(db).is_some_and(|major| major < FIRST_MAINTAINED)
}

pub(super) fn image(db: &Database) -> String {
    db.spec.image.clone().unwrap_or_else(|| format!("postgres:{}", db.spec.version))
}

pub(super) fn bootstrap(db: &Database) -> Bootstrap {
    db.spec.bootstrap.clone().unwrap_or_default()
}

pub(super) fn backup(db: &Database) -> Backup {
    db.spec.backup.clone().unwrap_or(Backup { suspend: true, ..Backup::default() })
}

pub(super) fn selector_labels(db: &Database) -> BTreeMap<String, String> {
    BTreeMap::from([(INSTANCE.to_owned(), db.name_any()), (UID.to_owned(), db.uid().unwrap_or_default())])
}

pub(super) fn selector(db: &Database) -> String {
    let pairs: Vec<String> =
        selector_labels(db).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

fn labels(db: &Database) -> BTreeMap<String, String> {
    let mut labels = selector_labels(db);
    labels.insert("app.kubernetes.io/name".to_owned(), "postgresql".to_owned());
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "database-operator".to_owned());
    labels.insert(NAME.to_owned(), db.name_any());
    labels
}

/// The labels of what may outlive the Database: no uid, which the next one of the name would not have.
fn lasting_labels(db: &Database) -> BTreeMap<String, String> {
    let mut labels = labels(db);
    labels.remove(UID);
    labels
}

fn metadata(db: &Database, name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), labels: Some(labels(db)), ..ObjectMeta::default() }
}

fn lasting(db: &Database, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: db.namespace(),
        labels: Some(lasting_labels(db)),
        ..ObjectMeta::default()
    }
}

pub(super) fn secret_name(db: &Database) -> String {
    format!("{}-credentials", db.name_any())
}

/// The Database that a Secret of this name is for, if it is for one.
pub(super) fn database_of_secret(name: &str) -> Option<&str> {
    name.strip_suffix("-credentials")
}

/// The address of a database for clients that take it in one piece.
pub(super) fn uri(user: &str, password: &str, host: &str, port: &str, database: &str) -> String {
    let [user, password, database] = [user, password, database].map(escaped);
    format!("postgresql://{user}:{password}@{host}:{port}/{database}")
}

/// A text as it stands in a part of a URI.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let letter = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(letter).collect()
}

pub(super) fn config_name(db: &Database) -> String {
    format!("{}-config", db.name_any())
}

/// The claim of the data's volume, as the StatefulSet names it.
pub(super) fn data_claim(db: &Database) -> String {
    format!("data-{}-0", db.name_any())
}

pub(super) fn backup_claim(name: &str) -> String {
    format!("{name}-backups")
}

pub(super) fn read_write(db: &Database) -> String {
    format!("{}-rw", db.name_any())
}

pub(super) fn read_only(db: &Database) -> String {
    format!("{}-ro", db.name_any())
}

/// The credentials, with passwords that were just made.
pub(super) fn secret(db: &Database, password: &str, superuser: &str) -> Secret {
    let (bootstrap, namespace) = (bootstrap(db), db.namespace().unwrap_or_default());
    let host = format!("{}.{namespace}.svc", read_write(db));
    let (owner, database) = (&bootstrap.owner, &bootstrap.database);
    let port = PORT.to_string();
    let uri = uri(owner, password, &host, &port, database);
    let entries = [
        ("username", owner.as_str()),
        ("password", password),
        ("database", database),
        ("host", &host),
        ("port", &port),
        ("uri", &uri),
        ("superuser-password", superuser),
    ];
    let data = entries.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret {
        metadata: lasting(db, secret_name(db)),
        type_: Some("Opaque".into()),
        data: Some(data.into()),
        ..Secret::default()
    }
}

/// The annotation of a volume for backups whose size follows the data's and the retention.
pub(super) const SIZED: &str = "database.example.com/sized-by-default";

/// The volume for backups that the spec asks for, or that holds all copies that are kept and the one that is being taken.
/// The second says whether the spec asks.
pub(super) fn backup_storage(db: &Database) -> (Storage, bool) {
    let backup = backup(db);
    if let Some(target) = backup.target {
        return (target.persistent_volume_claim, true);
    }
    let copies = u32::try_from(backup.retention.count).unwrap_or_default().saturating_add(1);
    let size = quantity::times(&db.spec.storage.size, copies);
    let size = size.unwrap_or_else(|| db.spec.storage.size.clone());
    (Storage { size, ..db.spec.storage.clone() }, false)
}

/// The claim of the volume for backups.
pub(super) fn backups(db: &Database) -> PersistentVolumeClaim {
    let (storage, asked) = backup_storage(db);
    let mut claim = claim(db, backup_claim(&db.name_any()), &storage);
    if !asked {
        claim.metadata.annotations.get_or_insert_default().insert(SIZED.to_owned(), "true".to_owned());
    }
    claim
}

/// The Database as it is, not as it is asked to be: another major version than the data's runs nothing.
pub(super) fn of_data(db: &Database) -> Database {
    let mut db = db.clone();
    if let Some(version) = db.status.as_ref().and_then(|status| status.version.clone()) {
        db.spec.version = version;
    }
    db
}

/// A claim that outlives the Database unless its deletion policy says otherwise.
pub(super) fn claim(db: &Database, name: String, storage: &Storage) -> PersistentVolumeClaim {
    let spec: Value = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage.storage_class_name,
        "resources": {"requests": {"storage": storage.size}},
    });
    PersistentVolumeClaim {
        metadata: lasting(db, name),
        spec: Some(windlass::from_value(&spec).expect("a claim must fit its type")),
        status: None,
    }
}

/// Settings and scripts of the Pods.
pub(super) fn config(db: &Database) -> ConfigMap {
    let entries = [
        ("postgresql.conf", settings(db)),
        (
            "pg_hba.conf",
            "local all all trust\nhost all all all scram-sha-256\nhost replication all all scram-sha-256\n"
                .to_owned(),
        ),
        ("prepare.sh", include_str!("scripts/prepare.sh").to_owned()),
        ("run.sh", include_str!("scripts/run.sh").to_owned()),
        ("ready.sh", include_str!("scripts/ready.sh").to_owned()),
        ("stop.sh", include_str!("scripts/stop.sh").to_owned()),
        ("backup.sh", include_str!("scripts/backup.sh").to_owned()),
        ("passwords.sh", include_str!("scripts/passwords.sh").to_owned()),
        ("login.sh", include_str!("scripts/login.sh").to_owned()),
        ("check.sh", include_str!("scripts/check.sh").to_owned()),
    ];
    ConfigMap {
        metadata: metadata(db, config_name(db)),
        data: Some(entries.map(|(key, value)| (key.to_owned(), value)).into()),
        ..ConfigMap::default()
    }
}

/// `postgresql.conf`: what initdb has found out about this system, what follows from the memory limit, the user's settings,
/// and behind them those that the operator needs.
fn settings(db: &Database) -> String {
    // A backslash begins an escape within quotes.
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('\'', "''");
    let line = |name: &str, value: &str| format!("{name} = '{}'\n", quoted(value));
    let made = format!("include_if_exists '{}/postgresql.conf'\n", server::PGDATA);
    let memory = memory_settings(db).into_iter().map(|(name, value)| line(name, &value));
    let wal = line("wal_level", "replica");
    let user = db.spec.parameters.iter().map(|(name, value)| line(name, value));
    let own = [
        ("listen_addresses", "*"),
        ("port", "5432"),
        ("unix_socket_directories", "/tmp"),
        ("password_encryption", "scram-sha-256"),
    ];
    let own = own.map(|(name, value)| line(name, value));
    std::iter::once(made).chain(memory).chain([wal]).chain(user).chain(own).collect()
}

/// A quarter of the memory for the server's own cache, as its makers advise, and three for what the system caches too.
fn memory_settings(db: &Database) -> Vec<(&'static str, String)> {
    let resources = db.spec.pod.as_ref().and_then(|pod| pod.resources.as_ref());
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("memory"));
    let limit = limit.and_then(|limit| quantity::bytes(&limit.0)).map(|bytes| bytes >> 20);
    let Some(limit) = limit.filter(|limit| *limit >= 64) else { return Vec::new() };
    vec![
        ("shared_buffers", format!("{}MB", limit / 4)),
        ("effective_cache_size", format!("{}MB", limit * 3 / 4)),
    ]
}

/// The Services: for the StatefulSet, for writing, for reading.
pub(super) fn services(db: &Database) -> Vec<Service> {
    let service = |name: String, headless: bool| {
        let mut spec = json!({
            "selector": selector_labels(db),
            "ports": [{"name": "postgresql", "port": PORT, "protocol": "TCP", "targetPort": "postgresql"}],
        });
        if headless {
            spec["clusterIP"] = "None".into();
            // Members find each other before they are ready.
            spec["publishNotReadyAddresses"] = true.into();
        }
        Service {
            metadata: metadata(db, name),
            spec: Some(windlass::from_value(&spec).expect("a Service must fit its type")),
            status: None,
        }
    };
    vec![service(db.name_any(), true), service(read_write(db), false), service(read_only(db), false)]
}
