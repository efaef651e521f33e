//! Adoption and release of Pods: those that a workload counts are those that it controls and that match.

use std::sync::Arc;

use windlass::{
    Context, Object,
    k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    owner,
    serde_json::json,
};

use crate::pods;

/// Pods without a controller, by namespace: an index that every controller with Pods of its own declares.
pub(crate) const ORPHANS: &str = "pod-orphans";

/// The values of [`ORPHANS`].
pub(crate) fn orphans(pod: &Pod) -> Vec<String> {
    let orphan = owner::controller_of(&pod.metadata).is_none();
    pod.metadata.namespace.iter().filter(|_| orphan).cloned().collect()
}

/// How a workload claims Pods.
pub(crate) struct Claim<'a> {
    /// Whether the workload's selector matches a Pod.
    pub(crate) wants: &'a (dyn Fn(&Pod) -> bool + Send + Sync),
    /// Whether a Pod can still be taken or given away.
    pub(crate) movable: fn(&Pod) -> bool,
    /// A finalizer that Pods get when they are adopted.
    pub(crate) finalizer: Option<&'a str>,
}

impl Claim<'_> {
    /// Releases controlled Pods that no longer match, adopts matching ones that nobody controls, and returns the
    /// Pods of the workload: all of them, finished and terminating ones too.
    pub(crate) async fn pods<R: Object>(
        &self,
        owner: &ObjectMeta,
        ctx: &Context<R>,
    ) -> windlass::Result<Vec<Arc<Pod>>> {
        let going = pods::is_terminating(owner);
        let mut claimed = Vec::new();
        for pod in ctx.owned::<Pod>()? {
            if (self.wants)(&pod) {
                claimed.push(pod);
            } else if (self.movable)(&pod) && !going {
                release(&pod, owner, ctx).await?;
            }
        }
        if going {
            return Ok(claimed);
        }
        let namespace = owner.namespace.as_deref().unwrap_or_default();
        for pod in ctx.indexed::<Pod>(ORPHANS, namespace)? {
            if (self.movable)(&pod)
                && (self.wants)(&pod)
                && let Some(pod) = self.adopt(&pod, ctx).await?
            {
                claimed.push(pod);
            }
        }
        Ok(claimed)
    }

    /// Takes a Pod over; `None` if it is gone. A conflict is an error: the Pod has changed, and may still be this
    /// workload's, so nothing must be made in its place.
    async fn adopt<R: Object>(&self, pod: &Pod, ctx: &Context<R>) -> windlass::Result<Option<Arc<Pod>>> {
        // The cached owner may be gone already; a Pod must not be adopted by a ghost.
        let key = ctx.key();
        let live = ctx.fetch::<R>(key.namespace(), key.name()).await?;
        let reference = ctx.controller_reference()?;
        let same = live.is_some_and(|live| {
            live.meta().uid.as_deref() == Some(&reference.uid) && !pods::is_terminating(live.meta())
        });
        if !same {
            return Ok(None);
        }
        let adopted = ctx.modify(pod, |pod| {
            owner::set_controller(&mut pod.metadata, reference);
            if let Some(finalizer) = self.finalizer {
                let finalizers = pod.metadata.finalizers.get_or_insert_default();
                if !finalizers.iter().any(|one| one == finalizer) {
                    finalizers.push(finalizer.to_owned());
                }
            }
        });
        match adopted.await {
            Ok(pod) => Ok(Some(pod)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

async fn release<R: Object>(pod: &Pod, owner: &ObjectMeta, ctx: &Context<R>) -> windlass::Result<()> {
    let uid = owner.uid.as_deref().unwrap_or_default();
    let kept: Vec<_> =
        pod.metadata.owner_references.iter().flatten().filter(|reference| reference.uid != uid).collect();
    let kept = if kept.is_empty() { json!(null) } else { json!(kept) };
    let patch = json!({ "metadata": {
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
        "ownerReferences": kept,
    }});
    match ctx.patch(pod, &patch).await {
        // Losing a race for a Pod is no failure: the next event of it leads back here.
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}
