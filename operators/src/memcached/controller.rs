//! The flow of a Memcached: check, apply, report, as every kind on a Deployment does it.

use std::sync::Arc;

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use windlass::{Action, Children, Context, Controller, Event, ObjectKey, Reconciler};

use super::{
    api::{Memcached, MemcachedStatus},
    build, status,
};
use crate::workload::{
    Error, Living, Problem, Rollout, Settings,
    deployed::{self, Workload},
    pods,
};

/// The controller of Memcacheds.
pub fn controller(settings: Settings) -> Controller<Memcacheds> {
    let controller = Controller::new(Memcacheds::default())
        .owns::<Deployment>()
        .owns::<Service>()
        .owns::<PodDisruptionBudget>();
    settings.apply(pods::watched(controller, build::UID))
}

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct Memcacheds {
    living: Living,
}

impl Reconciler for Memcacheds {
    type Resource = Memcached;
    type Error = Error;

    async fn reconcile(&self, cache: Arc<Memcached>, ctx: &Context<Memcached>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        deployed::reconcile(&*cache, ctx, &()).await
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<Memcached>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

impl Workload for Memcached {
    const UID: &'static str = build::UID;
    type Given = ();

    fn check(&self) -> Result<(), Problem> {
        build::check(self)
    }

    fn children(&self, _: &Context<Self>, (): &()) -> windlass::Result<Children> {
        Ok(build::children(self))
    }

    fn wanted(&self, _: &Deployment) -> i32 {
        self.spec.size
    }

    fn image(&self) -> &str {
        &self.spec.image
    }

    fn reported(
        &self,
        _: &Context<Self>,
        seen: Option<&Rollout>,
        conditions: Vec<Condition>,
    ) -> MemcachedStatus {
        status::reported(self, seen, conditions)
    }

    fn can_serve(&self, ctx: &Context<Self>) -> windlass::Result<bool> {
        deployed::has_service(self, ctx)
    }

    fn became_ready(_: &Condition) -> Event {
        Event::normal("Reconciled", "Memcached reconciled successfully")
    }
}
