//! The StatefulSet controller: Pods with names, volumes and an order.
//!
//! Enters: a StatefulSet, its Pods, their claims and its ControllerRevisions. Leaves: Pods created, updated and
//! deleted one after the other (or all at once, where the set allows it), claims from templates, revisions, and the
//! status. Names and Pods ([`identity`]) and the status ([`status`]) are pure.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Reader, Reconciler,
    k8s_openapi::api::{
        apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    owner, rbac,
};

use crate::{
    claim::{self, Claim},
    history, pod_control, pods, selector,
};

mod claims;
mod identity;
mod rollout;
mod status;

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<StatefulSets> {
    Controller::new(StatefulSets)
        .name("statefulset-controller")
        .core_events("statefulset-controller")
        .owns::<Pod>()
        .watches::<Pod, _>(adopters)
        .reads::<ControllerRevision>()
        .watches::<PersistentVolumeClaim, _>(claimants)
        .index::<Pod>(claim::ORPHANS, claim::orphans)
        .concurrency(4)
        .permits([
            rbac::rule("", ["pods"], ["create", "delete", "patch"]),
            rbac::rule("", ["persistentvolumeclaims"], ["create", "patch"]),
            rbac::rule("apps", ["controllerrevisions"], ["create", "delete", "patch"]),
        ])
}

/// The StatefulSets that may want a Pod that nobody controls.
fn adopters(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    if owner::controller_of(&pod.metadata).is_some() || pod.metadata.labels.is_none() {
        return Vec::new();
    }
    let sets = cache.list::<StatefulSet>(pod.metadata.namespace.as_deref()).unwrap_or_default();
    sets.iter().filter(|set| wants(set, pod)).map(|set| ObjectKey::of(&**set)).collect()
}

/// The StatefulSets that wait for a claim: a Pod cannot be made as long as its old claim is being deleted.
fn claimants(claim: &PersistentVolumeClaim, cache: &Reader) -> Vec<ObjectKey> {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let sets = cache.list::<StatefulSet>(claim.metadata.namespace.as_deref()).unwrap_or_default();
    sets.iter().filter(|set| identity::may_claim(set, name)).map(|set| ObjectKey::of(&**set)).collect()
}

fn wants(set: &StatefulSet, pod: &Pod) -> bool {
    selector::matches(&set.spec.selector, pod.metadata.labels.as_ref())
        && identity::parent(pod) == set.metadata.name.as_deref()
}

/// Reconciles StatefulSets.
pub(crate) struct StatefulSets;

impl Reconciler for StatefulSets {
    type Resource = StatefulSet;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        set: Arc<StatefulSet>,
        ctx: &Context<StatefulSet>,
    ) -> Result<Action, windlass::Error> {
        let spec = set.spec.clone();
        if selector::is_empty(&spec.selector) {
            return Ok(Action::await_change());
        }
        crate::retry_conflicts(Box::pin(reconcile(set, spec, ctx)).await)
    }
}

async fn reconcile(
    set: Arc<StatefulSet>,
    spec: StatefulSetSpec,
    ctx: &Context<StatefulSet>,
) -> windlass::Result<Action> {
    let revisions = history::list(&set.metadata, &spec.selector, ctx).await?;
    let claim = Claim {
        wants: &|pod| wants(&set, pod),
        movable: |pod| !pods::is_terminating(&pod.metadata),
        finalizer: None,
    };
    let pods = claim.pods(&set.metadata, ctx).await?;
    let mut collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let known = history::Revisions { all: &revisions, label: history::REVISION_HASH };
    let update = history::current(&set.metadata, &spec.template, &known, &mut collisions, ctx).await?;
    let status_revision = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
    let current = revisions.iter().find(|revision| revision.metadata.name.as_deref() == status_revision);
    let current = current.cloned().unwrap_or_else(|| update.clone());
    let run = Run { ctx, set: set.clone(), spec, current, update, collisions };
    let (observed, managed) = run.manage(&pods).await;
    let status = status::completed(&run.spec, observed);
    ctx.patch_status(&*set, &status).await?;
    managed?;
    let live = |name: &str| {
        status.current_revision.as_deref() == Some(name)
            || run.update.metadata.name.as_deref() == Some(name)
            || pods.iter().any(|pod| identity::revision(pod) == name)
    };
    history::truncate(&revisions, live, run.spec.revision_history_limit.unwrap_or(10), ctx).await?;
    Ok(run.next_check(&pods))
}

/// One run: the set, and the revisions between which it moves.
struct Run<'a> {
    ctx: &'a Context<StatefulSet>,
    set: Arc<StatefulSet>,
    spec: StatefulSetSpec,
    current: Arc<ControllerRevision>,
    update: Arc<ControllerRevision>,
    collisions: i32,
}

/// The Pods of a set by their place.
struct Places {
    /// The ordinals that should have a Pod. There may be two billion of them, so they are never all looked at.
    wanted: Range<i32>,
    /// Those Pods that should be there, by ordinal.
    replicas: BTreeMap<i32, Arc<Pod>>,
    /// Those that are too many, the highest first.
    condemned: Vec<Arc<Pod>>,
}

impl Run<'_> {
    /// Brings the set on by as much as its order allows. Returns the status, also after a failure.
    async fn manage(&self, all: &[Arc<Pod>]) -> (StatefulSetStatus, windlass::Result<()>) {
        let places = self.places(all);
        let counted = |deleted: i32| {
            let mut status = status::observed(&self.status_of(), all, self.ctx.now());
            status.current_replicas = status.current_replicas.map(|count| (count - deleted).max(0));
            status
        };
        if pods::is_terminating(&self.set.metadata) {
            return (counted(0), Ok(()));
        }
        match Box::pin(self.scale(&places)).await {
            Ok(true) => {}
            Ok(false) => return (counted(0), Ok(())),
            Err(error) => return (counted(0), Err(error)),
        }
        let rolling = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        if rolling == Some("OnDelete") {
            return (counted(0), Ok(()));
        }
        let (deleted, result) = self.roll(&places).await;
        (counted(deleted), result)
    }

    fn status_of(&self) -> status::Inputs<'_> {
        status::Inputs {
            set: &self.set,
            spec: &self.spec,
            current: self.current.metadata.name.as_deref().unwrap_or_default(),
            update: self.update.metadata.name.as_deref().unwrap_or_default(),
            collisions: self.collisions,
        }
    }

    fn places(&self, all: &[Arc<Pod>]) -> Places {
        let wanted = identity::ordinals(&self.spec);
        // Of two names with one ordinal, such as `db-0` and `db-00`, the first counts.
        let placed = all.iter().rev().filter_map(|pod| Some((identity::ordinal(pod)?, pod.clone())));
        let (replicas, outside): (BTreeMap<_, _>, BTreeMap<_, _>) =
            placed.partition(|(ordinal, _)| wanted.contains(ordinal));
        Places { wanted, replicas, condemned: outside.into_values().rev().collect() }
    }

    fn is_ordered(&self) -> bool {
        self.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = self.spec.min_ready_seconds.unwrap_or(0);
        pods::available_in(pod, min_ready, self.ctx.now()) == Some(Duration::ZERO)
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        !self.is_available(pod) || pods::is_terminating(&pod.metadata)
    }

    /// When the next ready Pod becomes available.
    fn next_check(&self, all: &[Arc<Pod>]) -> Action {
        let min_ready = self.spec.min_ready_seconds.unwrap_or(0);
        let waits = all.iter().filter_map(|pod| pods::available_in(pod, min_ready, self.ctx.now()));
        match waits.filter(|wait| *wait > Duration::ZERO).min() {
            Some(wait) => Action::requeue(wait),
            None => Action::await_change(),
        }
    }

    fn name(&self) -> &str {
        self.set.metadata.name.as_deref().unwrap_or_default()
    }

    /// Says what became of a Pod.
    fn report(&self, verb: &str, pod: &str, result: &windlass::Result<()>) {
        let name = self.name();
        let event = match result {
            Ok(()) => Event::normal(
                format!("Successful{verb}"),
                format!("{verb} Pod {pod} in StatefulSet {name} successful"),
            ),
            Err(error) => Event::warning(
                format!("Failed{verb}"),
                format!(
                    "{verb} Pod {pod} in StatefulSet {name} failed error: {}",
                    pod_control::reason(error)
                ),
            ),
        };
        self.ctx.event(event.action(verb));
    }
}
