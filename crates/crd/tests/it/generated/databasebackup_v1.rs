//! The types of `database.example.com/v1`, kind `DatabaseBackup`.

#![allow(unreachable_pub, reason = "KubeSchema makes a public copy of each struct inside a function")]
#![allow(
    clippy::doc_lazy_continuation,
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the descriptions are the definition's"
)]
#![allow(clippy::duplicated_attributes, reason = "two columns may be of the same type")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::kube::{CustomResource, KubeSchema};

/// What a DatabaseBackup should be. It cannot be changed.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "database.example.com", version = "v1", kind = "DatabaseBackup")]
#[kube(
    plural = "databasebackups",
    singular = "databasebackup",
    shortname = "dbb",
    category = "windlass",
    namespaced
)]
#[kube(status = "DatabaseBackupStatus")]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(doc = "DatabaseBackup takes one backup of a Database. Deleting it deletes the backup's files.")]
#[kube(printcolumn(name = "Database", type_ = "string", json_path = ".spec.databaseRef.name"))]
#[kube(printcolumn(name = "Method", type_ = "string", json_path = ".spec.method"))]
#[kube(printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(name = "Size-KiB", type_ = "integer", json_path = ".status.sizeKiB"))]
#[kube(printcolumn(name = "Completed", type_ = "date", json_path = ".status.completionTime"))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[kube(attr = r#"x_kube(crates(kube_core = "windlass::kube::core"))"#)]
#[kube(
    validation = Rule::new("self.metadata.name.size() <= 56").message("the name is also the Job's: at most 56 characters")
)]
#[kube(crates(
    kube = "windlass::kube",
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[x_kube(validation = Rule::new("self == oldSelf").message("a backup cannot be changed: create another one"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseBackupSpec {
    /// The Database.
    pub database_ref: DatabaseRef,

    /// Copies of the files, or a dump of the database.
    #[serde(default)]
    pub method: Method,
}

/// The Database.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseRef {
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Copies of the files, or a dump of the database.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    #[default]
    Physical,
    Logical,
}

/// What was last seen of a DatabaseBackup.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(crates(kube_core = "windlass::kube::core"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseBackupStatus {
    /// When it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub completion_time: Option<Time>,

    /// Ready: it can be restored. Progressing: it is being taken. Degraded: it could not be taken.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub error: Option<String>,

    /// Where its files are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Location")]
    pub location: Option<Location>,

    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,

    /// How far it is.
    #[serde(default)]
    pub phase: Phase,

    /// How large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub size_ki_b: Option<i64>,

    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub start_time: Option<Time>,
}

/// Where its files are.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
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

/// How far it is.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
}
