//! DatabaseBackup: one backup, on demand or by a schedule.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Method, Reference};
use crate::workload::Reported;

/// What a DatabaseBackup should be. It cannot be changed.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "database.example.com",
    version = "v1",
    kind = "DatabaseBackup",
    plural = "databasebackups",
    shortname = "dbb",
    category = "windlass",
    namespaced,
    doc = "DatabaseBackup takes one backup of a Database. Deleting it deletes the backup's files.",
    derive = "PartialEq",
    status = "DatabaseBackupStatus",
    printcolumn(name = "Database", type_ = "string", json_path = ".spec.databaseRef.name"),
    printcolumn(name = "Method", type_ = "string", json_path = ".spec.method"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Size-KiB", type_ = "integer", json_path = ".status.sizeKiB"),
    printcolumn(name = "Completed", type_ = "date", json_path = ".status.completionTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 56").message("the name is also the Job's: at most 56 characters")
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("a backup cannot be changed: create another one"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseBackupSpec {
    /// The Database.
    pub database_ref: Reference,

    /// Copies of the files, or a dump of the database.
    #[serde(default)]
    pub method: Method,
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// It waits for its Database.
    #[default]
    Pending,
    /// It is being taken.
    Running,
    /// It can be restored.
    Succeeded,
    /// It could not be taken.
    Failed,
}

/// Where the files of a backup are.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The PersistentVolumeClaim.
    pub claim: String,
    /// The directory on it.
    pub directory: String,
    /// How the backup was taken.
    pub method: Method,
    /// The major version of the server.
    pub version: String,
    /// The image that has the programs to read it.
    #[serde(default)]
    pub image: String,
}

/// What was last seen of a DatabaseBackup.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseBackupStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// How far it is.
    #[serde(default)]
    pub phase: Phase,

    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub start_time: Option<Time>,

    /// When it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub completion_time: Option<Time>,

    /// Where its files are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Location")]
    pub location: Option<Location>,

    /// How large it is.
    #[serde(default, rename = "sizeKiB", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub size_kib: Option<i64>,

    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub error: Option<String>,

    /// Ready: it can be restored. Progressing: it is being taken. Degraded: it could not be taken.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Reported for DatabaseBackupStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}
