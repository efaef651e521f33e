//! Adoption and release of ReplicaSets.

use std::sync::Arc;

use windlass::{
    Context,
    k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet},
    owner,
};

use super::ORPHANS;
use crate::{pods, selector};

/// Whether the selector of a Deployment matches a ReplicaSet.
pub(super) fn wants(spec: &DeploymentSpec, set: &ReplicaSet) -> bool {
    selector::matches(&spec.selector, set.metadata.labels.as_ref())
}

/// The ReplicaSets of a Deployment: controlled ones that no longer match are released, matching ones that nobody
/// controls are adopted.
pub(super) async fn claim(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    ctx: &Context<Deployment>,
) -> windlass::Result<Vec<Arc<ReplicaSet>>> {
    let going = pods::is_terminating(&deployment.metadata);
    let mut claimed = Vec::new();
    for set in ctx.owned::<ReplicaSet>()? {
        if wants(spec, &set) {
            claimed.push(set);
        } else if !going && !pods::is_terminating(&set.metadata) {
            release(&set, deployment, ctx).await?;
        }
    }
    if going {
        return Ok(claimed);
    }
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
    for set in ctx.indexed::<ReplicaSet>(ORPHANS, namespace)? {
        if wants(spec, &set)
            && !pods::is_terminating(&set.metadata)
            && let Some(adopted) = adopt(&set, ctx).await?
        {
            claimed.push(adopted);
        }
    }
    Ok(claimed)
}

async fn adopt(set: &ReplicaSet, ctx: &Context<Deployment>) -> windlass::Result<Option<Arc<ReplicaSet>>> {
    // The cached Deployment may be gone already; a set must not be adopted by a ghost.
    let key = ctx.key();
    let live = ctx.fetch::<Deployment>(key.namespace(), key.name()).await?;
    let reference = ctx.controller_reference()?;
    let same = live.is_some_and(|live| {
        live.metadata.uid.as_deref() == Some(&reference.uid) && !pods::is_terminating(&live.metadata)
    });
    if !same {
        return Ok(None);
    }
    match ctx.modify(set, |set| owner::set_controller(&mut set.metadata, reference)).await {
        Ok(set) => Ok(Some(set)),
        // A conflict is an error: the set may still be this Deployment's, so no other must be made in its place.
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn release(
    set: &ReplicaSet,
    deployment: &Deployment,
    ctx: &Context<Deployment>,
) -> windlass::Result<()> {
    let released = ctx.modify(set, |set| {
        if let Some(owners) = &mut set.metadata.owner_references {
            owners.retain(|owner| Some(&owner.uid) != deployment.metadata.uid.as_ref());
        }
    });
    match released.await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}
