//! The types of `database.example.com/v1`, kind `Database`.

#![allow(unreachable_pub, reason = "KubeSchema makes a public copy of each struct inside a function")]
#![allow(
    clippy::doc_lazy_continuation,
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the descriptions are the definition's"
)]
#![allow(clippy::duplicated_attributes, reason = "two columns may be of the same type")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::api::core::v1::PodSecurityContext;
use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::k8s_openapi::api::core::v1::SecurityContext;
use windlass::k8s_openapi::api::core::v1::Toleration;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::kube::{CustomResource, KubeSchema};

/// What a Database should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "database.example.com", version = "v1", kind = "Database")]
#[kube(plural = "databases", singular = "database", shortname = "db", category = "windlass", namespaced)]
#[kube(status = "DatabaseStatus")]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(doc = "Database runs a PostgreSQL server with its storage, credentials and backups.")]
#[kube(printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "integer",
    json_path = ".status.readyInstances",
    description = "Servers that answer"
))]
#[kube(printcolumn(name = "Storage", type_ = "string", json_path = ".status.storageSize"))]
#[kube(printcolumn(
    name = "Status",
    type_ = "string",
    json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
    description = "Why it is ready, or is not"
))]
#[kube(printcolumn(name = "Last-Backup", type_ = "date", json_path = ".status.lastSuccessfulBackup"))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[kube(attr = r#"x_kube(crates(kube_core = "windlass::kube::core"))"#)]
#[kube(
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')").message("the name is also the Services': at most 40 lower-case letters, digits and '-', starting with a letter, ending with a letter or digit")
)]
#[kube(crates(
    kube = "windlass::kube",
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(validation = Rule::new("self.engine == oldSelf.engine").message("engine cannot be changed"))]
#[x_kube(
    validation = Rule::new("has(self.bootstrap) == has(oldSelf.bootstrap) && (!has(self.bootstrap) || self.bootstrap == oldSelf.bootstrap)").message("bootstrap cannot be changed: create another Database")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// Scheduled backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Backup")]
    pub backup: Option<Backup>,

    /// How the data comes to be. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bootstrap")]
    pub bootstrap: Option<Bootstrap>,

    /// What becomes of the volumes and the credentials when the Database is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Holds a deletion back until this is false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub deletion_protection: Option<bool>,

    /// The kind of database.
    #[serde(default)]
    pub engine: Engine,

    /// The container image; the stock image of the version unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub image: Option<String>,

    /// Settings of the server, as in `postgresql.conf`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 200))]
    #[x_kube(
        validation = Rule::new("self.all(name, !(name in ['listen_addresses', 'port', 'data_directory', 'config_file', 'hba_file', 'ident_file', 'unix_socket_directories', 'archive_command', 'restore_command', 'shared_preload_libraries_dir', 'external_pid_file']))").message("a parameter that the operator sets itself")
    )]
    pub parameters: BTreeMap<String, String>,

    /// More about the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Pod")]
    pub pod: Option<Pod>,

    /// Where the data is kept.
    pub storage: PersistentVolumeClaim,

    /// The major version of PostgreSQL.
    #[schemars(regex(pattern = "^[1-9][0-9]$"))]
    pub version: String,
}

/// Scheduled backups.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// How long one backup may take, in seconds. One that takes longer is ended, and has failed.
    #[serde(default = "default_active_deadline_seconds")]
    #[schemars(range(min = 60, max = 604800))]
    pub active_deadline_seconds: i64,

    /// Copies of the files, or a dump of the database.
    #[serde(default)]
    pub method: Method,

    /// How many scheduled backups are kept.
    #[serde(default = "default_retention")]
    #[schemars(extend("default" = {"count": 7}))]
    pub retention: Retention,

    /// When, as in cron: minute, hour, day of the month, month, day of the week; or a word such as `@daily`.
    #[serde(default = "default_schedule")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: String,

    /// Whether the schedule rests. On-demand backups work either way.
    #[serde(default)]
    pub suspend: bool,

    /// Where backups are kept. A volume that can grow and cannot shrink: unless set, of the size of the
    /// data's for each copy
    /// that is kept and for one more, which is being taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Target")]
    pub target: Option<Target>,

    /// The time zone of the schedule, such as `Europe/Rome`.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

/// Copies of the files, or a dump of the database.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    #[default]
    Physical,
    Logical,
}

/// How many scheduled backups are kept.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// The number.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: i32,
}

/// Where backups are kept. A volume that can grow and cannot shrink: unless set, of the size of the data's
/// for each copy
/// that is kept and for one more, which is being taken.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// A volume of their own.
    pub persistent_volume_claim: PersistentVolumeClaim,
}

/// A volume of their own.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(
    validation = Rule::new("!quantity(self.size).isLessThan(quantity(oldSelf.size))").message("size cannot shrink")
)]
#[x_kube(
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)").message("storageClassName cannot be changed")
)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaim {
    /// The size, such as `10Gi`. It can grow while the server runs, and cannot shrink.
    #[schemars(length(max = 32))]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"))]
    pub size: String,

    /// The class of the volume; the cluster's default unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
}

/// How the data comes to be. It cannot be changed.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The database that is made for the application.
    #[serde(default = "default_database")]
    #[schemars(length(max = 63), regex(pattern = "^[a-z_][a-z0-9_]*$"))]
    pub database: String,

    /// The role that owns it.
    #[serde(default = "default_owner")]
    #[schemars(length(max = 63), regex(pattern = "^[a-z_][a-z0-9_]*$"))]
    pub owner: String,

    /// The backup that the data is restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Recovery")]
    pub recovery: Option<Recovery>,
}

/// The backup that the data is restored from.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// A DatabaseBackup of the same namespace.
    pub backup_ref: BackupRef,
}

/// A DatabaseBackup of the same namespace.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupRef {
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What becomes of the volumes and the credentials when the Database is deleted.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    #[default]
    Retain,
    Delete,
    BackupThenDelete,
}

/// The kind of database.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    #[default]
    #[serde(rename = "PostgreSQL")]
    PostgreSql,
}

/// More about the Pods.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Annotations of the Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// The security context of the container, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityContext")]
    pub container_security_context: Option<SecurityContext>,

    /// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ImagePullPolicy")]
    pub image_pull_policy: Option<ImagePullPolicy>,

    /// Secrets with the credentials of private registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<ImagePullSecret>,

    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceRequirements")]
    pub resources: Option<ResourceRequirements>,

    /// The security context of the Pods, in place of the operator's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodSecurityContext")]
    pub security_context: Option<PodSecurityContext>,

    /// The service account of the Pods. They get no token of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub service_account_name: Option<String>,

    /// How long a Pod may take to end, in seconds: 30 days at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0, max = 2592000))]
    pub termination_grace_period_seconds: Option<i64>,

    /// Taints of nodes that the Pods bear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// When the node pulls the image. If unset: always for the tag `latest`, else only when it is missing.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// LocalObjectReference contains enough information to let you locate the referenced object inside the same
/// namespace.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullSecret {
    /// Name of the referent. This field is effectively required, but due to backwards compatibility is
    /// allowed to be empty. Instances of this type with an empty value here are almost certainly wrong. More
    /// info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names
    pub name: String,
}

/// What was last seen of a Database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// Ready: the server answers. Progressing: something is being made or changed. Degraded: something needs
    /// a person.
    /// BackupHealthy: the last backup succeeded, and none is overdue. CredentialsSynced: the server accepts
    /// what the Secret says.
    /// StorageResizing: a volume grows.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The credentials that the server was last seen to accept, as a digest of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub credentials: Option<String>,

    /// Whether the data is there: made, or restored.
    #[serde(default)]
    pub initialized: bool,

    /// Servers that exist.
    #[serde(default)]
    pub instances: i32,

    /// When the last backup that can be restored was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_successful_backup: Option<Time>,

    /// When the next scheduled backup is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub next_backup: Option<Time>,

    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// The parameters that the server has: those of the spec, once a server was seen to start with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,

    /// Servers that answer.
    #[serde(default)]
    pub ready_instances: i32,

    /// The size that the volume is growing to. It is recorded before anything is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub resizing_to: Option<String>,

    /// Where the data was restored from. It is recorded when the restore is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RestoredFrom")]
    pub restored_from: Option<RestoredFrom>,

    /// Where the data is being restored from. It is recorded before anything is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RestoredFrom")]
    pub restoring_from: Option<RestoredFrom>,

    /// The schedule that is kept, with its time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub schedule: Option<String>,

    /// Since when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub scheduled_since: Option<Time>,

    /// The Secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub secret_name: Option<String>,

    /// The label selector of the Pods.
    #[serde(default)]
    pub selector: String,

    /// The Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Services")]
    pub services: Option<Services>,

    /// The size of the data's volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub storage_size: Option<String>,

    /// The major version of the data. It never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<String>,
}

/// Where the data was restored from. It is recorded when the restore is complete.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoredFrom {
    /// The PersistentVolumeClaim.
    pub claim: String,

    /// The directory on it.
    pub directory: String,

    /// The image that has the programs to read it.
    #[serde(default)]
    pub image: String,

    /// How the backup was taken.
    pub method: Method,

    /// The major version of the server.
    pub version: String,
}

/// The Services.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    /// For reading.
    pub ro: String,

    /// For reading and writing.
    pub rw: String,
}

fn default_active_deadline_seconds() -> i64 {
    21600
}

fn default_count() -> i32 {
    7
}

fn default_database() -> String {
    "app".to_owned()
}

fn default_owner() -> String {
    "app".to_owned()
}

fn default_retention() -> Retention {
    windlass::serde_json::from_str(r#"{"count":7}"#).expect("the default must fit its type")
}

fn default_schedule() -> String {
    "0 2 * * *".to_owned()
}

fn default_time_zone() -> String {
    "Etc/UTC".to_owned()
}
