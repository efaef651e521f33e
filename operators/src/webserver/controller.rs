//! The flow of a WebServer: check, apply, report, as every kind on a Deployment does it.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use windlass::{Action, Children, Context, Controller, Reconciler};

use super::{
    api::{WebServer, WebServerStatus},
    build, status,
};
use crate::workload::{
    Error, Problem, Rollout, Settings,
    deployed::{self, Workload},
    pods,
};

/// The controller of WebServers.
pub fn controller(settings: Settings) -> Controller<WebServers> {
    let controller = Controller::new(WebServers).owns::<Deployment>().owns::<Service>().owns::<ConfigMap>();
    settings.apply(pods::watched(controller, build::UID))
}

/// The reconciler.
#[derive(Clone, Copy, Debug)]
pub struct WebServers;

impl Reconciler for WebServers {
    type Resource = WebServer;
    type Error = Error;

    async fn reconcile(&self, web: Arc<WebServer>, ctx: &Context<WebServer>) -> Result<Action, Error> {
        deployed::reconcile(&*web, ctx).await
    }
}

impl Workload for WebServer {
    const UID: &'static str = build::UID;

    fn check(&self) -> Result<(), Problem> {
        build::check(self)
    }

    fn children(&self, _: &Context<Self>) -> windlass::Result<Children> {
        Ok(build::children(self))
    }

    fn wanted(&self, _: &Deployment) -> i32 {
        self.spec.replicas
    }

    fn image(&self) -> &str {
        &self.spec.image
    }

    fn reported(&self, seen: Option<&Rollout>, conditions: Vec<Condition>) -> WebServerStatus {
        status::reported(self, seen, conditions)
    }

    fn can_serve(&self, ctx: &Context<Self>) -> windlass::Result<bool> {
        deployed::has_service(self, ctx)
    }
}
