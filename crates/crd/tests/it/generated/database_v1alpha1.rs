//! The types of `database.example.com/v1alpha1`, kind `Database`.

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
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::kube::{CustomResource, KubeSchema};

/// What a Database should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "database.example.com", version = "v1alpha1", kind = "Database")]
#[kube(plural = "databases", singular = "database", shortname = "db", category = "windlass", namespaced)]
#[kube(status = "DatabaseStatus")]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(storage = false)]
#[kube(doc = "Database runs a PostgreSQL server with its storage, credentials and backups.")]
#[kube(printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "integer",
    json_path = ".status.readyInstances",
    description = "Servers that answer"
))]
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
#[x_kube(validation = Rule::new("self.type == oldSelf.type").message("type cannot be changed"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// Scheduled backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Backup")]
    pub backup: Option<Backup>,

    /// Where the data is kept.
    pub storage: Storage,

    /// The kind of database.
    #[serde(default)]
    pub r#type: Type,

    /// The major version of PostgreSQL.
    #[schemars(regex(pattern = "^[1-9][0-9]$"))]
    pub version: String,
}

/// Scheduled backups.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Whether the schedule is kept.
    #[serde(default = "default_enabled")]
    pub enabled: bool,

    /// When, as in cron: minute, hour, day of the month, month, day of the week; or a word such as `@daily`.
    #[serde(default = "default_schedule")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: String,
}

/// Where the data is kept.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(
    validation = Rule::new("!quantity(self.size).isLessThan(quantity(oldSelf.size))").message("size cannot shrink")
)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The size, such as `10Gi`. It can grow while the server runs, and cannot shrink.
    #[schemars(length(max = 32))]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"))]
    pub size: String,
}

/// The kind of database.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    #[default]
    #[serde(rename = "postgresql")]
    Postgresql,
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
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// How the backup was taken.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    Physical,
    Logical,
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

fn default_enabled() -> bool {
    true
}

fn default_schedule() -> String {
    "0 2 * * *".to_owned()
}
