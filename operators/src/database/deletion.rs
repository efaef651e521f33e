//! The end of a Database: not while it is protected; a last backup if it asks for one; its server; its data if it says
//! so; and only then the object itself.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod, Secret},
};
use kube::{Resource, ResourceExt};
use windlass::{Action, Context};

use super::{
    api::{Database, DatabaseBackup, DeletionPolicy, Phase},
    build,
    controller::{Error, FINALIZER, converge, ensure_lasting, look, tell},
    restore,
};
use crate::workload::{Problem, pods};

/// How often to look whether a Pod that restores is gone: no watch tells.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Lets a Database go: not while it is protected, and with its data only if it says so.
pub(super) async fn finalize(db: &Database, ctx: &Context<Database>) -> Result<Action, Error> {
    if !db.finalizers().iter().any(|name| name == FINALIZER) {
        return Ok(Action::await_change());
    }
    if db.spec.deletion_protection {
        let mut seen = look(db, ctx)?;
        let message = "the Database is to be deleted and is protected; set spec.deletionProtection to false to let it \
                       go. Until then it goes on serving";
        seen.problem = Some(Problem::new("DeletionProtected", message));
        let can_be = build::check(db).and_then(|()| build::check_version(db)).is_ok();
        if !can_be || restore::is_due(db, &seen) {
            tell(db, ctx, &seen).await?;
            return Ok(Action::await_change());
        }
        ensure_lasting(db, ctx).await?;
        return Box::pin(converge(db, ctx, seen)).await;
    }
    if db.spec.deletion_policy == DeletionPolicy::BackupThenDelete && !is_backed_up(db, ctx).await? {
        return Ok(Action::await_change());
    }
    // The server and the restore first: a volume that is in use is not let go.
    let owned = ctx.owned::<StatefulSet>().map_err(Error::Read)?;
    for set in owned.iter().filter(|set| set.meta().deletion_timestamp.is_none()) {
        tracing::info!(key = %ctx.key(), "deleting the StatefulSet");
        ctx.delete(&**set).await.map_err(Error::DeleteData)?;
    }
    let uid = db.uid().unwrap_or_default();
    let left = ctx.indexed::<Pod>(build::UID, &uid).map_err(Error::Read)?;
    if !left.is_empty() || !owned.is_empty() {
        return Ok(Action::await_change());
    }
    if is_being_restored(db, ctx).await? {
        return Ok(Action::requeue(LOOK_AGAIN));
    }
    delete_data(db, ctx).await?;
    ctx.release(FINALIZER).await.map_err(Error::Finalize)?;
    Ok(Action::await_change())
}

/// Whether the last backup is there. It is asked for first, while the server still runs.
async fn is_backed_up(db: &Database, ctx: &Context<Database>) -> Result<bool, Error> {
    if !db.status.as_ref().is_some_and(|status| status.initialized) {
        // There never was any data.
        return Ok(true);
    }
    let name = build::last_backup_name(db);
    let found = ctx.get::<DatabaseBackup>(db.namespace().as_deref(), &name).map_err(Error::Read)?;
    if found.is_none() {
        match ctx.create(build::last_backup(db)).await {
            Err(error) if !error.is_already_exists() => return Err(Error::CreateBackup(error)),
            _ => {}
        }
    }
    let mut seen = look(db, ctx)?;
    let status = found.and_then(|backup| backup.status.clone()).unwrap_or_default();
    match status.phase {
        Phase::Succeeded => return Ok(true),
        Phase::Failed => {
            let message = format!(
                "the last backup {name} failed: {}; delete that DatabaseBackup to try again, or set \
                 spec.deletionPolicy to Delete or Retain",
                status.error.unwrap_or_default()
            );
            seen.problem = Some(Problem::new("LastBackupFailed", message));
        }
        Phase::Pending | Phase::Running => {
            let message = format!("the last backup {name} is being taken before the data is deleted");
            seen.waiting = Some(Problem::new("TakingLastBackup", message));
        }
    }
    tell(db, ctx, &seen).await?;
    Ok(false)
}

/// Whether a Pod that restores may still write. Its Job goes first, or there would be another one.
async fn is_being_restored(db: &Database, ctx: &Context<Database>) -> Result<bool, Error> {
    let name = build::restore_name(db);
    let jobs = ctx.owned::<Job>().map_err(Error::Read)?;
    for job in jobs.iter().filter(|job| job.name_any() == name && job.meta().deletion_timestamp.is_none()) {
        ctx.delete(&**job).await.map_err(Error::DeleteData)?;
    }
    let all = ctx.list::<Pod>(db.namespace().as_deref()).map_err(Error::Read)?;
    let writes = |pod: &Pod| {
        pod.labels().get("batch.kubernetes.io/job-name") == Some(&name) && !pods::is_finished(pod)
    };
    Ok(all.iter().any(|pod| writes(pod)))
}

/// Deletes what the policy says, unless it is the data of an earlier Database that this one has never opened.
async fn delete_data(db: &Database, ctx: &Context<Database>) -> Result<(), Error> {
    let namespace = db.namespace();
    let data = ctx.get::<PersistentVolumeClaim>(namespace.as_deref(), &build::data_claim(db));
    if !restore::owns_data(db, data.map_err(Error::Read)?.as_deref()) {
        return Ok(());
    }
    let mut claims = vec![build::data_claim(db)];
    match db.spec.deletion_policy {
        DeletionPolicy::Retain => return Ok(()),
        DeletionPolicy::Delete => claims.push(build::backup_claim(&db.name_any())),
        DeletionPolicy::BackupThenDelete => {}
    }
    for name in claims {
        let found = ctx.get::<PersistentVolumeClaim>(namespace.as_deref(), &name).map_err(Error::Read)?;
        if let Some(claim) = found.filter(|claim| claim.labels().get(build::NAME) == Some(&db.name_any())) {
            tracing::info!(key = %ctx.key(), claim = name, "deleting the claim of a volume");
            ctx.delete(&*claim).await.map_err(Error::DeleteData)?;
        }
    }
    if db.spec.deletion_policy == DeletionPolicy::Delete {
        // Their files went with the volume.
        let backups = ctx.list::<DatabaseBackup>(namespace.as_deref()).map_err(Error::Read)?;
        let ours = |backup: &DatabaseBackup| {
            build::is_scheduled(backup) && backup.spec.database_ref.name == db.name_any()
        };
        for backup in backups.iter().filter(|backup| ours(backup)) {
            ctx.delete(&**backup).await.map_err(Error::DeleteData)?;
        }
    }
    let secret = ctx.get::<Secret>(namespace.as_deref(), &build::secret_name(db)).map_err(Error::Read)?;
    if let Some(secret) = secret.filter(|secret| secret.labels().get(build::NAME) == Some(&db.name_any())) {
        ctx.delete(&*secret).await.map_err(Error::DeleteData)?;
    }
    Ok(())
}
