//! Adoption and release: the Pods that a ReplicaSet counts are those that it controls and that match.

use std::sync::Arc;

use windlass::{
    Context,
    k8s_openapi::api::{
        apps::v1::{ReplicaSet, ReplicaSetSpec},
        core::v1::Pod,
    },
    owner,
    serde_json::json,
};

use super::ORPHANS;
use crate::{pods, selector};

/// The Pods of a ReplicaSet.
pub(super) struct Claimed {
    /// Those that count as replicas.
    pub(super) active: Vec<Arc<Pod>>,
    /// How many are on their way out.
    pub(super) terminating: usize,
}

/// Whether the selector of a ReplicaSet matches a Pod.
pub(super) fn wants(spec: &ReplicaSetSpec, pod: &Pod) -> bool {
    selector::matches(&spec.selector, pod.metadata.labels.as_ref())
}

/// Releases controlled Pods that no longer match, adopts matching ones that nobody controls.
pub(super) async fn claim(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    ctx: &Context<ReplicaSet>,
) -> windlass::Result<Claimed> {
    let going = pods::is_terminating(&set.metadata);
    let mut claimed = Claimed { active: Vec::new(), terminating: 0 };
    for pod in ctx.owned::<Pod>()? {
        if !wants(spec, &pod) {
            if pods::is_active(&pod) && !going {
                release(&pod, set, ctx).await?;
            }
        } else if pods::is_active(&pod) {
            claimed.active.push(pod);
        } else if pods::is_terminating(&pod.metadata) && !pods::is_finished(&pod) {
            claimed.terminating += 1;
        }
    }
    if going {
        return Ok(claimed);
    }
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    for pod in ctx.indexed::<Pod>(ORPHANS, namespace)? {
        if pods::is_active(&pod)
            && wants(spec, &pod)
            && let Some(pod) = adopt(&pod, ctx).await?
        {
            claimed.active.push(pod);
        }
    }
    Ok(claimed)
}

/// Takes a Pod over; `None` if somebody else was faster or it is gone.
async fn adopt(pod: &Pod, ctx: &Context<ReplicaSet>) -> windlass::Result<Option<Arc<Pod>>> {
    // The cached set may be gone already; a Pod must not be adopted by a ghost.
    let key = ctx.key();
    let live = ctx.fetch::<ReplicaSet>(key.namespace(), key.name()).await?;
    let reference = ctx.controller_reference()?;
    let same = live.is_some_and(|live| {
        live.metadata.uid.as_deref() == Some(&reference.uid) && !pods::is_terminating(&live.metadata)
    });
    if !same {
        return Ok(None);
    }
    let adopted = ctx.modify(pod, |pod| owner::set_controller(&mut pod.metadata, reference)).await;
    tolerate(adopted)
}

async fn release(pod: &Pod, set: &ReplicaSet, ctx: &Context<ReplicaSet>) -> windlass::Result<()> {
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let kept: Vec<_> =
        pod.metadata.owner_references.iter().flatten().filter(|reference| reference.uid != uid).collect();
    let kept = if kept.is_empty() { json!(null) } else { json!(kept) };
    let patch = json!({ "metadata": {
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
        "ownerReferences": kept,
    }});
    tolerate(ctx.patch(pod, &patch).await).map(drop)
}

/// Losing a race for a Pod is no failure: the next event of it leads back here.
fn tolerate(result: windlass::Result<Arc<Pod>>) -> windlass::Result<Option<Arc<Pod>>> {
    match result {
        Ok(pod) => Ok(Some(pod)),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}
