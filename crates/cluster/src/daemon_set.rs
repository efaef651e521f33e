//! The DaemonSet controller: a Pod on every node that may have one.
//!
//! Enters: a DaemonSet, its Pods and the Nodes. Leaves: Pods created for nodes and deleted from them, revisions, and
//! the status. Which nodes may have a Pod and what a Pod looks like ([`placement`]), what to create and delete
//! ([`plan`]) and the status ([`status`]) are pure.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reader, Reconciler, Watch,
    k8s_openapi::api::{
        apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec},
        core::v1::{Node, Pod},
    },
    owner, rbac,
};

use crate::{
    claim::{self, Claim},
    history,
    pod_control::{self, BURST},
    pods, selector,
};

mod failures;
mod placement;
mod plan;
mod status;

use failures::Failures;

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<DaemonSets> {
    Controller::new(DaemonSets::default())
        .name("daemonset-controller")
        .core_events("daemonset-controller")
        .owns::<Pod>()
        .watches::<Pod, _>(adopters)
        .reads::<ControllerRevision>()
        .watches_with(Watch::<Node>::new().filter(Predicate::new(matters)), |_: &Node, cache| {
            let sets = cache.list::<DaemonSet>(None).unwrap_or_default();
            sets.iter().map(|set| ObjectKey::of(&**set)).collect()
        })
        .index::<Pod>(claim::ORPHANS, claim::orphans)
        .concurrency(2)
        .permits([
            rbac::rule("", ["pods"], ["create", "delete", "patch"]),
            rbac::rule("apps", ["controllerrevisions"], ["create", "delete", "patch"]),
        ])
}

/// Whether a node changed in what decides about Pods; heartbeats do not count.
fn matters(old: &Node, new: &Node) -> bool {
    old.spec != new.spec || old.metadata.labels != new.metadata.labels
}

/// The DaemonSets that may want a Pod that nobody controls.
fn adopters(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    if owner::controller_of(&pod.metadata).is_some() || pod.metadata.labels.is_none() {
        return Vec::new();
    }
    let sets = cache.list::<DaemonSet>(pod.metadata.namespace.as_deref()).unwrap_or_default();
    sets.iter().filter(|set| wants(&set.spec, pod)).map(|set| ObjectKey::of(&**set)).collect()
}

fn wants(spec: &DaemonSetSpec, pod: &Pod) -> bool {
    selector::matches(&spec.selector, pod.metadata.labels.as_ref())
}

/// Reconciles DaemonSets.
#[derive(Default)]
pub(crate) struct DaemonSets {
    failures: Failures,
}

impl Reconciler for DaemonSets {
    type Resource = DaemonSet;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        set: Arc<DaemonSet>,
        ctx: &Context<DaemonSet>,
    ) -> Result<Action, windlass::Error> {
        if selector::is_empty(&set.spec.selector) {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            ctx.event(Event::warning("SelectingAll", note).action("Sync"));
            return Ok(Action::await_change());
        }
        crate::retry_conflicts(Box::pin(reconcile(set, &self.failures, ctx)).await)
    }
}

async fn reconcile(
    set: Arc<DaemonSet>,
    failures: &Failures,
    ctx: &Context<DaemonSet>,
) -> windlass::Result<Action> {
    let spec = &set.spec;
    let claim = Claim {
        wants: &|pod| wants(spec, pod),
        movable: |pod| !pods::is_terminating(&pod.metadata),
        finalizer: None,
    };
    let all = claim.pods(&set.metadata, ctx).await?;
    let revisions = history::list(&set.metadata, &spec.selector, ctx).await?;
    let mut collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let known = history::Revisions { all: &revisions, label: history::HASH };
    let update = history::current(&set.metadata, &spec.template, &known, &mut collisions, ctx).await?;
    let hash = update.metadata.labels.as_ref().and_then(|labels| labels.get(history::HASH).cloned());
    let hash = hash.unwrap_or_default();
    let nodes = ctx.list::<Node>(None)?;
    let nodes = nodes.iter().map(|node| plan::Place::new(spec, node)).collect();
    let resting = failures.resting(&set.metadata, ctx.now());
    let scene = plan::Scene { spec, hash: &hash, nodes, pods: &all, now: ctx.now(), resting };
    let mut next = None;
    let managed = if pods::is_terminating(&set.metadata) {
        Ok(())
    } else {
        let template = placement::template(&set, &hash);
        let plan = plan::plan(&scene);
        failures.note(&set.metadata, &plan.failed, ctx.now());
        next = plan.next;
        act(&set, plan, &template, ctx).await
    };
    let mut status = status::observed(&set, &scene);
    if collisions > 0 {
        status.collision_count = Some(collisions);
    }
    ctx.patch_status(&*set, &status).await?;
    managed?;
    let live = |name: &str| {
        update.metadata.name.as_deref() == Some(name) || all.iter().any(|pod| name.ends_with(plan::hash(pod)))
    };
    history::truncate(&revisions, live, spec.revision_history_limit.unwrap_or(10), ctx).await?;
    Ok(next_check(spec, &all, next, ctx))
}

/// Deletes and creates what was planned.
async fn act(
    set: &DaemonSet,
    plan: plan::Plan,
    template: &windlass::k8s_openapi::api::core::v1::PodTemplateSpec,
    ctx: &Context<DaemonSet>,
) -> windlass::Result<()> {
    plan.notes.into_iter().for_each(|note| ctx.event(note));
    for pod in plan.delete.iter().take(BURST) {
        pod_control::delete(pod, ctx).await?;
    }
    let prefix = format!("{}-", set.metadata.name.as_deref().unwrap_or_default());
    let pod = |node: &String| placement::pod(template, &prefix, node);
    pod_control::create_all(plan.create.iter().take(BURST).map(pod).collect(), ctx).await.1
}

/// When the next ready Pod becomes available, or a failed one may be replaced.
fn next_check(
    spec: &DaemonSetSpec,
    all: &[Arc<Pod>],
    next: Option<Duration>,
    ctx: &Context<DaemonSet>,
) -> Action {
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let waits = all.iter().filter_map(|pod| pods::available_in(pod, min_ready, ctx.now()));
    match waits.chain(next).filter(|wait| *wait > Duration::ZERO).min() {
        Some(wait) => Action::requeue(wait),
        None => Action::await_change(),
    }
}
