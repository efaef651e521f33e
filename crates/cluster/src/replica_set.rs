//! The ReplicaSet controller: keeps as many Pods as asked for.
//!
//! Enters: a ReplicaSet, its Pods, and Pods without a controller that it may adopt. Leaves: created, adopted,
//! released and deleted Pods, and the status. Which Pods go ([`victims`]) and what the status says ([`status`])
//! are pure functions.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, ObjectKey, Reader, Reconciler,
    k8s_openapi::api::{
        apps::v1::{ReplicaSet, ReplicaSetSpec},
        core::v1::Pod,
    },
    owner, rbac,
};

use crate::{
    claim::{self, Claim},
    pod_control::{self, BURST},
    pods, selector,
};

mod status;
pub(crate) mod victims;

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<ReplicaSets> {
    Controller::new(ReplicaSets)
        .name("replicaset-controller")
        .core_events("replicaset-controller")
        .owns::<Pod>()
        .watches::<Pod, _>(adopters)
        .index::<Pod>(claim::ORPHANS, claim::orphans)
        .concurrency(4)
        .permits([rbac::rule("", ["pods"], ["create", "delete", "patch"])])
}

/// The ReplicaSets that may want a Pod that nobody controls.
fn adopters(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    if owner::controller_of(&pod.metadata).is_some() || pod.metadata.labels.is_none() {
        return Vec::new();
    }
    let sets = cache.list::<ReplicaSet>(pod.metadata.namespace.as_deref()).unwrap_or_default();
    let matching = sets.iter().filter(|set| wants(&set.spec, pod));
    matching.map(|set| ObjectKey::of(&**set)).collect()
}

/// Whether the selector of a ReplicaSet matches a Pod.
fn wants(spec: &ReplicaSetSpec, pod: &Pod) -> bool {
    selector::matches(&spec.selector, pod.metadata.labels.as_ref())
}

/// Reconciles ReplicaSets.
pub(crate) struct ReplicaSets;

impl Reconciler for ReplicaSets {
    type Resource = ReplicaSet;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        set: Arc<ReplicaSet>,
        ctx: &Context<ReplicaSet>,
    ) -> Result<Action, windlass::Error> {
        let spec = &set.spec;
        if selector::is_empty(&spec.selector) {
            return Ok(Action::await_change());
        }
        let claim = Claim { wants: &|pod| wants(spec, pod), movable: pods::is_active, finalizer: None };
        let claimed = claim.pods(&set.metadata, ctx).await?;
        let terminating = claimed.iter().filter(|pod| pods::is_stopping(pod)).count();
        let active: Vec<_> = claimed.into_iter().filter(|pod| pods::is_active(pod)).collect();
        let managed =
            if pods::is_terminating(&set.metadata) { Ok(()) } else { manage(&set, spec, &active, ctx).await };
        let failure = managed.as_ref().err().map(|error| status::failure(error, &active, spec));
        let pods = status::Pods { active: &active, terminating };
        let status = status::observed(&set, spec, &pods, failure, ctx.now());
        ctx.patch_status(&*set, &status).await?;
        managed?;
        Ok(next_check(spec, &active, ctx))
    }
}

/// Creates what is missing or deletes what is too much.
async fn manage(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    active: &[Arc<Pod>],
    ctx: &Context<ReplicaSet>,
) -> windlass::Result<()> {
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    if active.len() < wanted {
        let missing = (wanted - active.len()).min(BURST);
        let prefix = format!("{}-", set.metadata.name.as_deref().unwrap_or_default());
        let template = spec.template.clone().unwrap_or_default();
        let new = (0..missing).map(|_| pod_control::from_template(&template, &prefix)).collect();
        return pod_control::create_all(new, ctx).await.1;
    }
    let surplus = (active.len() - wanted).min(BURST);
    if surplus == 0 {
        return Ok(());
    }
    let related = related(set, active, ctx)?;
    for pod in victims::choose(active, &related, surplus, ctx.now()) {
        pod_control::delete(&pod, ctx).await?;
    }
    Ok(())
}

/// The Pods of all ReplicaSets of the same owner: a node that holds many of them should lose one first.
fn related(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    ctx: &Context<ReplicaSet>,
) -> windlass::Result<Vec<Arc<Pod>>> {
    let Some(owner) = owner::controller_of(&set.metadata) else { return Ok(active.to_vec()) };
    let mut all = Vec::new();
    for sibling in ctx.cache().owned_by::<ReplicaSet>(&owner.uid)? {
        all.extend(ctx.cache().owned_by::<Pod>(sibling.metadata.uid.as_deref().unwrap_or_default())?);
    }
    Ok(all)
}

/// When the next ready Pod becomes available.
fn next_check(spec: &ReplicaSetSpec, active: &[Arc<Pod>], ctx: &Context<ReplicaSet>) -> Action {
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let waits = active.iter().filter_map(|pod| pods::available_in(pod, min_ready, ctx.now()));
    match waits.filter(|wait| *wait > Duration::ZERO).min() {
        Some(wait) => Action::requeue(wait),
        None => Action::await_change(),
    }
}
