//! Database: a PostgreSQL server with its storage, credentials, backups and restores.
//!
//! [`api`] holds the types, [`controller`] the flow of a Database, [`restore`] how its data comes from a backup,
//! [`credentials`] how its passwords follow its Secret, [`parameters`] which settings its server gets, [`conflict`] what is
//! in its way, [`deletion`] its end; [`backups`] the flow of a DatabaseBackup, [`schedule`] how scheduled backups become one,
//! [`jobs`] how Jobs are made; [`build`] what is wanted (pure), [`storage`] how volumes grow, [`status`] what is reported
//! (pure), [`cron`] when the next backup is due (pure), [`webhook`] what is refused before it is stored. What runs in the Pods
//! stands in `scripts/`.

use kube::core::ObjectMeta;
use windlass::{Operator, webhook::Conversion};

pub mod api;
mod backups;
mod build;
mod conflict;
mod controller;
mod credentials;
mod cron;
mod deletion;
mod jobs;
mod parameters;
mod quantity;
mod restore;
mod schedule;
mod status;
mod storage;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use api::{Database, DatabaseBackup, DatabaseBackupSpec, DatabaseSpec, v1alpha1};
pub use backups::{DatabaseBackups, FINALIZER as FILES_FINALIZER, controller as backup_controller};
pub use controller::{Databases, Error, FINALIZER, controller};

use crate::workload::Settings;

/// Adds both kinds and their controllers to an operator.
pub fn register(operator: Operator) -> Operator {
    kinds(operator)
        .controller(controller(Settings::default()))
        .controller(backup_controller(Settings::default()))
}

/// Adds both kinds in all their versions.
pub fn kinds(operator: Operator) -> Operator {
    webhooks(operator.crd::<Database>().crd::<v1alpha1::Database>().crd::<DatabaseBackup>())
}

/// Adds the conversion between the versions of Database, and the rules that no schema can say.
pub fn webhooks(operator: Operator) -> Operator {
    operator.converts(Conversion::hub::<Database>().spoke::<v1alpha1::Database>()).webhook(webhook::webhook())
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> Database {
    let spec = DatabaseSpec {
        version: "13".into(),
        storage: api::Storage { size: "10Gi".into(), storage_class_name: None },
        backup: Some(api::Backup { schedule: "0 2 * * *".into(), ..api::Backup::default() }),
        ..DatabaseSpec::default()
    };
    let metadata = ObjectMeta { name: Some("my-db".into()), ..ObjectMeta::default() };
    Database { metadata, spec, status: None }
}

/// The same in the older version.
pub fn v1alpha1_sample() -> v1alpha1::Database {
    let spec = v1alpha1::DatabaseSpec {
        version: "13".into(),
        storage: v1alpha1::Storage { size: "10Gi".into() },
        backup: Some(v1alpha1::Backup { enabled: true, schedule: "0 2 * * *".into() }),
        ..v1alpha1::DatabaseSpec::default()
    };
    let metadata = ObjectMeta { name: Some("my-db".into()), ..ObjectMeta::default() };
    v1alpha1::Database { metadata, spec, status: None }
}

/// The sample of an on-demand backup.
pub fn backup_sample() -> DatabaseBackup {
    let spec = DatabaseBackupSpec {
        database_ref: api::Reference { name: "my-db".into() },
        method: api::Method::Physical,
    };
    let metadata = ObjectMeta { name: Some("my-db-now".into()), ..ObjectMeta::default() };
    DatabaseBackup { metadata, spec, status: None }
}
