//! The types of `database.example.com/v1`, from which the CRDs are generated. It is what is stored, and the hub that
//! [`v1alpha1`] is converted through.

#![expect(
    unreachable_pub,
    reason = "KubeSchema's derive makes a public copy of each struct inside a function"
)]

mod backup;
pub mod v1alpha1;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use backup::{DatabaseBackup, DatabaseBackupSpec, DatabaseBackupStatus, Location, Phase};

use crate::workload::{PodOptions, Reported};

/// What a Database should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "database.example.com",
    version = "v1",
    kind = "Database",
    plural = "databases",
    shortname = "db",
    category = "windlass",
    namespaced,
    doc = "Database runs a PostgreSQL server with its storage, credentials and backups.",
    derive = "PartialEq",
    status = "DatabaseStatus",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyInstances", description = "Servers that answer"),
    printcolumn(name = "Storage", type_ = "string", json_path = ".status.storageSize"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Why it is ready, or is not"
    ),
    printcolumn(name = "Last-Backup", type_ = "date", json_path = ".status.lastSuccessfulBackup"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // The longest child's name has 11 characters more, and a CronJob's name has at most 52.
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name is also the Services': at most 40 lower-case letters, digits and '-', starting with a letter, ending with a letter or digit")
)]
#[x_kube(
    validation = Rule::new("self.engine == oldSelf.engine").message("engine cannot be changed"),
    validation = Rule::new("has(self.bootstrap) == has(oldSelf.bootstrap) && (!has(self.bootstrap) || self.bootstrap == oldSelf.bootstrap)")
        .message("bootstrap cannot be changed: create another Database")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// The kind of database.
    #[serde(default)]
    pub engine: Engine,

    /// The major version of PostgreSQL.
    #[schemars(regex(pattern = "^[1-9][0-9]$"))]
    pub version: String,

    /// The container image; the stock image of the version unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub image: Option<String>,

    /// Where the data is kept.
    pub storage: Storage,

    /// Scheduled backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Backup")]
    pub backup: Option<Backup>,

    /// How the data comes to be. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bootstrap")]
    pub bootstrap: Option<Bootstrap>,

    /// Settings of the server, as in `postgresql.conf`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(
        validation = Rule::new("self.all(name, !(name in ['listen_addresses', 'port', 'data_directory', 'config_file', 'hba_file', 'ident_file', 'unix_socket_directories', 'archive_command', 'restore_command', 'shared_preload_libraries_dir', 'external_pid_file']))")
            .message("a parameter that the operator sets itself")
    )]
    #[schemars(extend("maxProperties" = 200))]
    pub parameters: BTreeMap<String, String>,

    /// What becomes of the volumes and the credentials when the Database is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Holds a deletion back until this is false again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_protection: bool,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodOptions")]
    pub pod: Option<PodOptions>,
}

/// The kinds of databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Engine {
    /// PostgreSQL.
    #[default]
    #[serde(rename = "PostgreSQL")]
    PostgreSql,
}

/// A volume.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("!quantity(self.size).isLessThan(quantity(oldSelf.size))").message("size cannot shrink"),
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("storageClassName cannot be changed")
)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The size, such as `10Gi`. It can grow while the server runs, and cannot shrink.
    #[schemars(length(max = 32), regex(pattern = "^[0-9]+(\\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"))]
    pub size: String,

    /// The class of the volume; the cluster's default unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
}

/// Scheduled backups.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Whether the schedule rests. On-demand backups work either way.
    #[serde(default)]
    pub suspend: bool,

    /// When, as in cron: minute, hour, day of the month, month, day of the week; or a word such as `@daily`.
    #[serde(default = "default_schedule")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: String,

    /// The time zone of the schedule, such as `Europe/Rome`.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,

    /// Copies of the files, or a dump of the database.
    #[serde(default)]
    pub method: Method,

    /// How many scheduled backups are kept.
    #[serde(default)]
    pub retention: Retention,

    /// How long one backup may take, in seconds. One that takes longer is ended, and has failed.
    #[serde(default = "default_deadline")]
    #[schemars(range(min = 60, max = 604_800))]
    pub active_deadline_seconds: i64,

    /// Where backups are kept. A volume that can grow and cannot shrink: unless set, of the size of the data's for each copy
    /// that is kept and for one more, which is being taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Target")]
    pub target: Option<Target>,
}

/// Where backups are kept.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// A volume of their own.
    pub persistent_volume_claim: Storage,
}

impl Default for Backup {
    fn default() -> Self {
        Self {
            suspend: false,
            schedule: default_schedule(),
            time_zone: default_time_zone(),
            method: Method::default(),
            retention: Retention::default(),
            active_deadline_seconds: default_deadline(),
            target: None,
        }
    }
}

/// How many backups are kept.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// The number.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: i32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { count: default_count() }
    }
}

/// How a backup is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Method {
    /// `pg_basebackup`, verified by `pg_verifybackup`: all databases, for the same major version.
    #[default]
    Physical,
    /// `pg_dump`: one database, for this and later major versions.
    Logical,
}

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Physical => "Physical",
            Self::Logical => "Logical",
        }
    }
}

/// How the data comes to be.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The database that is made for the application.
    #[serde(default = "default_name")]
    #[schemars(length(max = 63), regex(pattern = "^[a-z_][a-z0-9_]*$"))]
    pub database: String,

    /// The role that owns it.
    #[serde(default = "default_name")]
    #[schemars(length(max = 63), regex(pattern = "^[a-z_][a-z0-9_]*$"))]
    pub owner: String,

    /// The backup that the data is restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Recovery")]
    pub recovery: Option<Recovery>,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { database: default_name(), owner: default_name(), recovery: None }
    }
}

/// A restore.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// A DatabaseBackup of the same namespace.
    pub backup_ref: Reference,
}

/// The name of another object of the same namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What becomes of the data of a Database that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Volumes and credentials stay: a Database of the same name finds them again.
    #[default]
    Retain,
    /// Volumes and credentials are deleted with it.
    Delete,
    /// A last backup is taken, then the data and the credentials are deleted. The backups stay.
    BackupThenDelete,
}

/// The Services of a Database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    /// For reading and writing.
    pub rw: String,
    /// For reading.
    pub ro: String,
}

/// What was last seen of a Database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// Servers that exist.
    #[serde(default)]
    pub instances: i32,

    /// Servers that answer.
    #[serde(default)]
    pub ready_instances: i32,

    /// The major version of the data. It never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<String>,

    /// The size of the data's volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub storage_size: Option<String>,

    /// The size that the volume is growing to. It is recorded before anything is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub resizing_to: Option<String>,

    /// The Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Services")]
    pub services: Option<Services>,

    /// The Secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub secret_name: Option<String>,

    /// The credentials that the server was last seen to accept, as a digest of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub credentials: Option<String>,

    /// Where the data is being restored from. It is recorded before anything is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Location")]
    pub restoring_from: Option<Location>,

    /// Where the data was restored from. It is recorded when the restore is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Location")]
    pub restored_from: Option<Location>,

    /// The parameters that the server has: those of the spec, once a server was seen to start with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub parameters: Option<BTreeMap<String, String>>,

    /// Whether the data is there: made, or restored.
    #[serde(default)]
    pub initialized: bool,

    /// When the last backup that can be restored was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_successful_backup: Option<Time>,

    /// When the next scheduled backup is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub next_backup: Option<Time>,

    /// The schedule that is kept, with its time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub schedule: Option<String>,

    /// Since when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub scheduled_since: Option<Time>,

    /// The label selector of the Pods.
    #[serde(default)]
    pub selector: String,

    /// Ready: the server answers. Progressing: something is being made or changed. Degraded: something needs a person.
    /// BackupHealthy: the last backup succeeded, and none is overdue. CredentialsSynced: the server accepts what the Secret says.
    /// StorageResizing: a volume grows.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for DatabaseStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

fn default_schedule() -> String {
    "0 2 * * *".into()
}

fn default_time_zone() -> String {
    "Etc/UTC".into()
}

/// Six hours: before the next one of the default schedule is due, and enough for a terabyte at 50 MB/s.
fn default_deadline() -> i64 {
    6 * 60 * 60
}

fn default_count() -> i32 {
    7
}

fn default_name() -> String {
    "app".into()
}
