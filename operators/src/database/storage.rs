//! How a volume grows while its server runs.
//!
//! A StatefulSet's claim template cannot be changed, so growth has steps, and any of them may be the operator's last:
//!
//! 1. the target is recorded in the status;
//! 2. the claim asks for the target;
//! 3. the StatefulSet is deleted without its Pods, and made anew with the new template, which takes them back.
//!
//! Each step looks at what is there, not at what was done before, so that a new operator goes on where one ended.

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Preconditions, PropagationPolicy},
};
use serde_json::json;
use windlass::{Context, Event};

use super::{api::Database, build, controller::Error, quantity};
use crate::workload::Problem;

/// The size in the claim template of the StatefulSet that is there.
pub(super) fn template_size(set: &StatefulSet) -> Option<String> {
    let claim = set.spec.volume_claim_templates.as_ref()?.first()?;
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage").map(|size| size.0.clone())
}

fn requested(claim: &PersistentVolumeClaim) -> Option<String> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage").map(|size| size.0.clone())
}

/// Whether the spec asks for more than the volume was made with, and nobody has recorded that yet.
pub(super) fn must_record(db: &Database, claim: Option<&PersistentVolumeClaim>) -> bool {
    let target = &db.spec.storage.size;
    let recorded = db.status.as_ref().and_then(|status| status.resizing_to.as_ref());
    let grows = claim.and_then(requested).is_some_and(|size| quantity::is_less(&size, target));
    grows && recorded != Some(target)
}

/// Steps 2 and 3: whatever of them is left to do. The StatefulSet that goes is made anew with the other children.
pub(super) async fn grow(
    db: &Database,
    ctx: &Context<Database>,
    set: Option<&StatefulSet>,
    claim: Option<&PersistentVolumeClaim>,
) -> Result<(), Error> {
    let target = &db.spec.storage.size;
    if let Some(claim) = claim
        && requested(claim).is_some_and(|size| quantity::is_less(&size, target))
    {
        let patch = json!({"spec": {"resources": {"requests": {"storage": target}}}});
        ctx.patch(claim, &patch).await.map_err(Error::GrowVolume)?;
        tracing::info!(key = %ctx.key(), claim = claim.name_any(), to = target, "resized the volume");
        let note = format!("Volume {} grows to {target}", claim.name_any());
        ctx.event(Event::normal("StorageResizing", note));
    }
    if let Some(set) = set
        && template_size(set).is_some_and(|size| quantity::is_less(&size, target))
    {
        let namespace = db.namespace().unwrap_or_default();
        let kind = ApiResource::erase::<StatefulSet>(&());
        let api = Api::<DynamicObject>::namespaced_with(ctx.client().clone(), &namespace, &kind);
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Orphan),
            preconditions: Some(Preconditions { uid: set.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match api.delete(&set.name_any(), &params).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(source) => return Err(Error::ReplaceStatefulSet(Box::new(source))),
        }
    }
    Ok(())
}

/// Grows the volume for backups, if the spec asks for more than it has. What hinders that is told, and hinders nothing else.
pub(super) async fn grow_backups(db: &Database, ctx: &Context<Database>) -> Result<Option<Problem>, Error> {
    let name = build::backup_claim(&db.name_any());
    let claim = ctx.get::<PersistentVolumeClaim>(db.namespace().as_deref(), &name).map_err(Error::Read)?;
    let Some(claim) = claim.filter(|claim| claim.labels().get(build::NAME) == Some(&db.name_any())) else {
        return Ok(None);
    };
    let (storage, asked) = build::backup_storage(db);
    // One whose size nobody has asked for, and that an earlier operator made smaller, is left as it is.
    let follows = asked || claim.annotations().contains_key(build::SIZED);
    let Some(size) = requested(&claim).filter(|_| follows) else { return Ok(None) };
    let target = &storage.size;
    if asked && quantity::is_less(target, &size) {
        let message = format!(
            "spec.backup.target asks for {target} and the volume {name} has {size}: volumes cannot shrink; ask for \
             {size}"
        );
        return Ok(Some(Problem::new("ShrinkRefused", message)));
    }
    // Only a volume that is there can grow; a claim that no backup has asked for yet may have none.
    let bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    if !bound || !quantity::is_less(&size, target) {
        return Ok(None);
    }
    let patch = json!({"spec": {"resources": {"requests": {"storage": target}}}});
    match ctx.patch(&*claim, &patch).await {
        Ok(_) => {
            tracing::info!(key = %ctx.key(), claim = name, to = target, "resized the volume");
            let note = format!("Volume {name} grows from {size} to {target}");
            ctx.event(Event::normal("StorageResizing", note));
            Ok(None)
        }
        Err(error) => match Problem::of(&error) {
            Some(problem) => {
                let message = format!(
                    "the volume {name} has {size}, and the backups may need {target}: {}; to leave it as it is, set \
                     spec.backup.target to {size}",
                    problem.message
                );
                Ok(Some(Problem::new(problem.reason, message)))
            }
            None => Err(Error::GrowVolume(error)),
        },
    }
}

/// The size that a StatefulSet's claim template is to have: that of the one that is there, which cannot be changed.
pub(super) fn wanted_template(db: &Database, set: Option<&StatefulSet>) -> String {
    set.and_then(template_size).unwrap_or_else(|| db.spec.storage.size.clone())
}

/// The StatefulSet that is wanted, with what cannot be changed on the one that is there as it is there: an earlier operator
/// may have made it with other words, and to be refused for ever helps nobody.
pub(super) fn unchanged(mut wanted: StatefulSet, live: Option<&StatefulSet>) -> StatefulSet {
    let Some(live) = live.map(|live| &live.spec) else { return wanted };
    let spec = &mut wanted.spec;
    let says_as_much = |new: &Option<Vec<PersistentVolumeClaim>>,
                        old: &Option<Vec<PersistentVolumeClaim>>| {
        let (new, old) = (new.as_deref().unwrap_or_default(), old.as_deref().unwrap_or_default());
        new.len() == old.len()
            && new.iter().zip(old).all(|(new, old)| {
                let class = |claim: &PersistentVolumeClaim| {
                    claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone())
                };
                let same_class = class(new).is_none() || class(new) == class(old);
                let modes =
                    |claim: &PersistentVolumeClaim| claim.spec.as_ref().map(|spec| spec.access_modes.clone());
                new.metadata.name == old.metadata.name
                    && new.labels() == old.labels()
                    && same_class
                    && modes(new) == modes(old)
            })
    };
    if !says_as_much(&spec.volume_claim_templates, &live.volume_claim_templates) {
        spec.volume_claim_templates.clone_from(&live.volume_claim_templates);
    }
    spec.service_name.clone_from(&live.service_name);
    spec.pod_management_policy.clone_from(&live.pod_management_policy);
    wanted
}

/// Whether the spec asks for less than there is.
pub(super) fn shrinks(db: &Database, claim: Option<&PersistentVolumeClaim>) -> Option<String> {
    let size = claim.and_then(requested)?;
    quantity::is_less(&db.spec.storage.size, &size).then(|| {
        format!(
            "spec.storage.size is {} and the volume {} has {size}: volumes cannot shrink; set it back",
            db.spec.storage.size,
            build::data_claim(db)
        )
    })
}
