//! Objects of somebody else under the names that a Database's own would have. What outlives a Database has no owner, so a
//! label says whose it is.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::ResourceExt;
use windlass::{Context, Object, ObjectKey, Reader};

use super::{api::Database, build, controller::Error};
use crate::workload::Problem;

/// The first object that is in the way, and what to do about it.
///
/// A Database without data waits until it is out of the way. One with data goes on with it, for that is what it runs on by
/// now, but neither writes to it nor deletes it.
pub(super) fn find(db: &Database, ctx: &Context<Database>) -> Result<Option<Problem>, Error> {
    let namespace = db.namespace();
    let secret = ctx.get::<Secret>(namespace.as_deref(), &build::secret_name(db)).map_err(Error::Read)?;
    if let Some(problem) = secret.and_then(|secret| foreign(db, "Secret", &*secret)) {
        return Ok(Some(problem));
    }
    for name in [build::data_claim(db), build::backup_claim(&db.name_any())] {
        let claim = ctx.get::<PersistentVolumeClaim>(namespace.as_deref(), &name).map_err(Error::Read)?;
        if let Some(problem) = claim.and_then(|claim| foreign(db, "PersistentVolumeClaim", &*claim)) {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

fn foreign<K: Object>(db: &Database, kind: &str, object: &K) -> Option<Problem> {
    let (name, label) = (db.name_any(), build::NAME);
    let labels = object.meta().labels.as_ref();
    if labels.and_then(|labels| labels.get(label)) == Some(&name) {
        return None;
    }
    let message = format!(
        "the {kind} {} is not this Database's; delete or rename it, or hand it over with the label {label}={name}",
        object.meta().name.as_deref().unwrap_or_default()
    );
    Some(Problem::new("NameConflict", message))
}

/// The Database that a claim is of: by its label, or by its name where somebody else has made it.
pub(super) fn of_claim(claim: &PersistentVolumeClaim, _: &Reader) -> Vec<ObjectKey> {
    let name = claim.name_any();
    let by_name = || {
        let data = name.strip_prefix("data-").and_then(|rest| rest.strip_suffix("-0"));
        data.or_else(|| name.strip_suffix("-backups"))
    };
    let owner = claim.labels().get(build::NAME).map(String::as_str).or_else(by_name);
    owner.map(|owner| ObjectKey::new(claim.namespace().as_deref(), owner)).into_iter().collect()
}
