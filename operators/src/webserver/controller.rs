//! The flow of a WebServer: check, apply, report, as every kind on a Deployment does it.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use windlass::{Action, Children, Context, Controller, ObjectKey, Reconciler, Watch};

use super::{
    api::{WebServer, WebServerStatus},
    build, status,
};
use crate::workload::{
    Error, Living, Problem, Rollout, Settings,
    deployed::{self, Workload},
    pods,
};

/// The controller of WebServers.
pub fn controller(settings: Settings) -> Controller<WebServers> {
    // A cluster has many ConfigMaps, and large ones: only those of WebServers are cached.
    let content = Watch::<ConfigMap>::new().labels(build::UID);
    let controller =
        Controller::new(WebServers::default()).owns::<Deployment>().owns::<Service>().owns_with(content);
    settings.apply(pods::watched(controller, build::UID))
}

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct WebServers {
    living: Living,
}

impl Reconciler for WebServers {
    type Resource = WebServer;
    type Error = Error;

    async fn reconcile(&self, web: Arc<WebServer>, ctx: &Context<WebServer>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        deployed::reconcile(&*web, ctx, &()).await
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<WebServer>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

impl Workload for WebServer {
    const UID: &'static str = build::UID;
    type Given = ();

    fn check(&self) -> Result<(), Problem> {
        build::check(self)
    }

    fn children(&self, _: &Context<Self>, (): &()) -> windlass::Result<Children> {
        Ok(build::children(self))
    }

    fn wanted(&self, _: &Deployment) -> i32 {
        self.spec.replicas
    }

    fn image(&self) -> &str {
        &self.spec.image
    }

    fn reported(
        &self,
        _: &Context<Self>,
        seen: Option<&Rollout>,
        conditions: Vec<Condition>,
    ) -> WebServerStatus {
        status::reported(self, seen, conditions)
    }

    fn can_serve(&self, ctx: &Context<Self>) -> windlass::Result<bool> {
        deployed::has_service(self, ctx)
    }
}
