//! The Deployment controller: rolls Pods from one template to the next by growing and shrinking ReplicaSets.
//!
//! Enters: a Deployment, its ReplicaSets, and for `Recreate` their Pods. Leaves: ReplicaSets created, scaled and
//! cleaned up, the revision annotations, and the status. How far to roll ([`rolling`]), how to share a new size
//! among several ReplicaSets ([`proportion`]) and what the status says ([`status`]) are pure functions.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Reader, Reconciler,
    k8s_openapi::api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet},
        core::v1::Pod,
    },
    owner, rbac,
};

use crate::{pods, selector};

mod claim;
mod limits;
mod proportion;
mod revision;
mod rolling;
mod scale;
mod status;
mod template;

/// ReplicaSets without a controller, by namespace.
const ORPHANS: &str = "deployment-orphans";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Deployments> {
    Controller::new(Deployments)
        .name("deployment-controller")
        .core_events("deployment-controller")
        .owns::<ReplicaSet>()
        .watches::<ReplicaSet, _>(adopters)
        .watches::<Pod, _>(recreated)
        .index::<ReplicaSet>(ORPHANS, |set| {
            let orphan = owner::controller_of(&set.metadata).is_none();
            set.metadata.namespace.iter().filter(|_| orphan).cloned().collect()
        })
        .concurrency(4)
        .permits([rbac::rule("apps", ["replicasets"], ["create", "delete", "patch"])])
}

/// The Deployments that may want a ReplicaSet that nobody controls.
fn adopters(set: &ReplicaSet, cache: &Reader) -> Vec<ObjectKey> {
    if owner::controller_of(&set.metadata).is_some() || set.metadata.labels.is_none() {
        return Vec::new();
    }
    let deployments = cache.list::<Deployment>(set.metadata.namespace.as_deref()).unwrap_or_default();
    let wants = |deployment: &&Arc<Deployment>| claim::wants(&deployment.spec, set);
    deployments.iter().filter(wants).map(|d| ObjectKey::of(&**d)).collect()
}

/// The Deployment of a Pod, if it waits for its old Pods to be gone.
fn recreated(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    let find = || {
        let set = owner::controller_key::<ReplicaSet>(&pod.metadata)?;
        let set = cache.get::<ReplicaSet>(set.namespace(), set.name()).ok()??;
        let key = owner::controller_key::<Deployment>(&set.metadata)?;
        let deployment = cache.get::<Deployment>(key.namespace(), key.name()).ok()??;
        (!limits::is_rolling(&deployment.spec)).then_some(key)
    };
    find().into_iter().collect()
}

/// Reconciles Deployments.
pub(crate) struct Deployments;

impl Reconciler for Deployments {
    type Resource = Deployment;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        deployment: Arc<Deployment>,
        ctx: &Context<Deployment>,
    ) -> Result<Action, windlass::Error> {
        crate::retry_conflicts(Box::pin(Run::new(deployment, ctx).reconcile()).await)
    }
}

/// One run: the Deployment, and its status as it grows in the course of the run.
struct Run<'a> {
    ctx: &'a Context<Deployment>,
    deployment: Arc<Deployment>,
    spec: DeploymentSpec,
    status: DeploymentStatus,
    /// Whether it was paused until this run.
    resumed: bool,
}

/// The ReplicaSets of a Deployment: the one of its present template, and the others, oldest first.
#[derive(Clone, Default)]
struct Sets {
    new: Option<Arc<ReplicaSet>>,
    old: Vec<Arc<ReplicaSet>>,
}

impl Sets {
    fn all(&self) -> Vec<Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new).cloned().collect()
    }

    /// Replaces a set by its newer copy.
    fn put(&mut self, set: Arc<ReplicaSet>) {
        let slots = self.old.iter_mut().chain(&mut self.new);
        for slot in slots.filter(|slot| slot.metadata.uid == set.metadata.uid) {
            *slot = set.clone();
        }
    }
}

impl<'a> Run<'a> {
    fn new(deployment: Arc<Deployment>, ctx: &'a Context<Deployment>) -> Self {
        let spec = deployment.spec.clone();
        let status = deployment.status.clone().unwrap_or_default();
        Self { ctx, deployment, spec, status, resumed: false }
    }

    async fn reconcile(mut self) -> windlass::Result<Action> {
        if selector::is_empty(&self.spec.selector) {
            let note = "This deployment is selecting all pods. A non-empty selector is required.";
            self.ctx.event(Event::warning("SelectingAll", note));
            return Ok(Action::await_change());
        }
        let all = claim::claim(&self.deployment, &self.spec, self.ctx).await?;
        let mut sets = revision::split(&self.spec, all);
        let going = pods::is_terminating(&self.deployment.metadata);
        if !going && status::note_pause(&mut self.status, &self.spec, self.ctx.now()) {
            // Written at once: what the rollout says next is progress, not a beginning.
            self.deployment = self.ctx.patch_status(&*self.deployment, &self.status).await?;
            self.resumed = true;
        }
        self.keep_revision(&mut sets).await?;
        if going {
            return self.write(&sets, false).await;
        }
        let paused = self.spec.paused == Some(true);
        if paused || scale::is_due(&self.spec, &sets) {
            self.scale(&mut sets).await?;
            if paused {
                self.clean_up(&sets).await?;
            }
            return self.write(&sets, false).await;
        }
        if limits::is_rolling(&self.spec) {
            self.roll(&mut sets).await?;
        } else {
            self.recreate(&mut sets).await?;
        }
        self.write(&sets, true).await
    }

    /// One step of a rolling update: grow the new set, else shrink the old ones, else clean up.
    async fn roll(&mut self, sets: &mut Sets) -> windlass::Result<()> {
        let new = self.ensure_new(sets).await?;
        if let Some(size) = rolling::scale_up(&self.spec, &new, &sets.all()) {
            return self.resize(sets, &new, size).await;
        }
        let down = rolling::scale_down(&self.spec, &new, &sets.old);
        for (set, size) in &down {
            self.resize(sets, set, *size).await?;
        }
        if down.is_empty() && status::is_complete(&self.deployment, &self.spec, &self.status) {
            self.clean_up(sets).await?;
        }
        Ok(())
    }

    /// One step of a recreation: first no old Pod is left, then the new set comes.
    async fn recreate(&mut self, sets: &mut Sets) -> windlass::Result<()> {
        let active: Vec<_> = sets.old.iter().filter(|set| limits::replicas(set) > 0).cloned().collect();
        for set in &active {
            self.resize(sets, set, 0).await?;
        }
        if !active.is_empty() || self.old_pods_run(sets)? {
            return Ok(());
        }
        let new = self.ensure_new(sets).await?;
        self.resize(sets, &new, limits::desired(&self.spec)).await?;
        if status::is_complete(&self.deployment, &self.spec, &self.status) {
            self.clean_up(sets).await?;
        }
        Ok(())
    }

    fn old_pods_run(&self, sets: &Sets) -> windlass::Result<bool> {
        for set in &sets.old {
            if set.status.as_ref().is_some_and(|status| status.replicas > 0) {
                return Ok(true);
            }
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            if self.ctx.cache().owned_by::<Pod>(uid)?.iter().any(|pod| !pods::is_finished(pod)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the status, and says when to look again for lack of progress.
    async fn write(self, sets: &Sets, rollout: bool) -> windlass::Result<Action> {
        let Self { ctx, deployment, spec, status, .. } = self;
        let now = ctx.now();
        let mut new = status::counted(&deployment, &spec, status, sets, now);
        if rollout {
            status::note_progress(&mut new, &deployment, &spec, sets, now);
        }
        ctx.patch_status(&*deployment, &new).await?;
        // The run that finds the rollout complete is the one after the run that says so; it tidies up.
        let changed = deployment.status.as_ref() != Some(&new);
        if rollout
            && changed
            && scale::has_surplus(&spec, sets)
            && status::is_complete(&deployment, &spec, &new)
        {
            return Ok(Action::requeue(Duration::ZERO));
        }
        let left = if rollout { status::time_left(&new, &deployment, &spec, now) } else { None };
        // A second more, because timestamps have no fractions.
        Ok(left.map_or_else(Action::await_change, |left| Action::requeue(left + Duration::from_secs(1))))
    }
}
