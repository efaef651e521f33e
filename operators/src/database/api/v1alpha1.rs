//! `database.example.com/v1alpha1`: few fields, and another word for some of them. It is served beside v1 and
//! converted to and from it; what only v1 can say is kept in an annotation.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::webhook::{ConversionError, Spoke, keep, kept};

use super::{DatabaseStatus, default_schedule};

/// The version whose fields an annotation keeps.
const HUB: &str = "v1";

/// What a Database should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "database.example.com",
    version = "v1alpha1",
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
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name is also the Services': at most 40 lower-case letters, digits and '-', starting with a letter, ending with a letter or digit")
)]
#[x_kube(validation = Rule::new("self.type == oldSelf.type").message("type cannot be changed"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// The kind of database.
    #[serde(default, rename = "type")]
    pub type_: Type,

    /// The major version of PostgreSQL.
    #[schemars(regex(pattern = "^[1-9][0-9]$"))]
    pub version: String,

    /// Where the data is kept.
    pub storage: Storage,

    /// Scheduled backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Backup")]
    pub backup: Option<Backup>,
}

/// The kinds of databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Type {
    /// PostgreSQL.
    #[default]
    #[serde(rename = "postgresql")]
    PostgreSql,
}

/// A volume.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("!quantity(self.size).isLessThan(quantity(oldSelf.size))").message("size cannot shrink"))]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The size, such as `10Gi`. It can grow while the server runs, and cannot shrink.
    #[schemars(length(max = 32), regex(pattern = "^[0-9]+(\\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"))]
    pub size: String,
}

/// Scheduled backups.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Whether the schedule is kept.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// When, as in cron: minute, hour, day of the month, month, day of the week; or a word such as `@daily`.
    #[serde(default = "default_schedule")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: String,
}

fn yes() -> bool {
    true
}

impl DatabaseSpec {
    /// What this version can say of a hub.
    fn of(hub: &super::DatabaseSpec) -> Self {
        let super::Engine::PostgreSql = hub.engine;
        let backup =
            |backup: &super::Backup| Backup { enabled: !backup.suspend, schedule: backup.schedule.clone() };
        Self {
            type_: Type::PostgreSql,
            version: hub.version.clone(),
            storage: Storage { size: hub.storage.size.clone() },
            backup: hub.backup.as_ref().map(backup),
        }
    }

    /// The hub that says this, and for the rest what `more` says.
    fn hub(self, more: super::DatabaseSpec) -> super::DatabaseSpec {
        let Type::PostgreSql = self.type_;
        let (storage, known) = (more.storage, more.backup.unwrap_or_default());
        super::DatabaseSpec {
            engine: super::Engine::PostgreSql,
            version: self.version,
            storage: super::Storage { size: self.storage.size, ..storage },
            backup: self.backup.map(|backup| super::Backup {
                suspend: !backup.enabled,
                schedule: backup.schedule,
                ..known
            }),
            ..more
        }
    }
}

impl Spoke for Database {
    type Hub = super::Database;

    fn into_hub(mut self) -> Result<super::Database, ConversionError> {
        let more = kept::<super::DatabaseSpec, _>(&mut self, HUB)?.unwrap_or_default();
        Ok(super::Database { metadata: self.metadata, spec: self.spec.hub(more), status: self.status })
    }

    fn from_hub(mut hub: super::Database) -> Result<Self, ConversionError> {
        // The annotation is ours: one that is on a hub already came from nowhere.
        kept::<serde::de::IgnoredAny, _>(&mut hub, HUB)?;
        let spec = DatabaseSpec::of(&hub.spec);
        let says_all = spec.clone().hub(super::DatabaseSpec::default()) == hub.spec;
        let mut object = Self { metadata: hub.metadata, spec, status: hub.status };
        if !says_all {
            keep(&mut object, HUB, &hub.spec)?;
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests;
