//! The flow of a HelloWorld: check, apply, report, as every kind on a Deployment does it.

use std::sync::Arc;

use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Condition};
use windlass::{Action, Children, Context, Controller, ObjectKey, Reconciler};

use super::{
    api::{HelloWorld, HelloWorldStatus},
    build, status,
};
use crate::workload::{
    Error, Living, Problem, Rollout, Settings,
    deployed::{self, Workload},
    pods,
};

/// The controller of HelloWorlds.
pub fn controller(settings: Settings) -> Controller<HelloWorlds> {
    let controller = Controller::new(HelloWorlds::default()).owns::<Deployment>();
    settings.apply(pods::watched(controller, build::UID))
}

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct HelloWorlds {
    living: Living,
}

impl Reconciler for HelloWorlds {
    type Resource = HelloWorld;
    type Error = Error;

    async fn reconcile(&self, hello: Arc<HelloWorld>, ctx: &Context<HelloWorld>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        deployed::reconcile(&*hello, ctx, &()).await
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<HelloWorld>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

impl Workload for HelloWorld {
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
    ) -> HelloWorldStatus {
        status::reported(self, seen, conditions)
    }

    fn can_serve(&self, _: &Context<Self>) -> windlass::Result<bool> {
        Ok(true)
    }
}
