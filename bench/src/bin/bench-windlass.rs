//! The operator on Windlass.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{Client, ResourceExt};
use windlass::{Action, Children, Context, Controller, Operator, Reconciler};
use windlass_bench::{CONCURRENCY, Progress, WebServer, deployment, observed, service, terminated};

struct WebServers {
    progress: Arc<Progress>,
    /// Nothing is written: what remains is the cost of the cache.
    read_only: bool,
}

impl Reconciler for WebServers {
    type Resource = WebServer;
    type Error = windlass::Error;

    async fn reconcile(&self, web: Arc<WebServer>, ctx: &Context<WebServer>) -> windlass::Result<Action> {
        if !self.read_only {
            let applied = ctx.apply(Children::new().with(deployment(&web)).with(service(&web))).await?;
            let deployment = applied.get::<Deployment>(&web.name_any());
            ctx.update_status(observed(&web, deployment.as_deref())).await?;
        }
        self.progress.reconciled(&web.name_any());
        Ok(Action::await_change())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let progress = Arc::new(Progress::from_env()?);
    let read_only = std::env::args().any(|argument| argument == "--read-only");
    let controller = Controller::new(WebServers { progress: Arc::clone(&progress), read_only })
        .owns::<Deployment>()
        .owns::<Service>()
        .concurrency(CONCURRENCY.into());
    let client = Client::try_default().await.context("failed to make a client")?;
    if read_only {
        client.apiserver_version().await.context("failed to reach the API server")?;
        progress.connected();
    }
    Operator::new("bench").controller(controller).run(client, terminated()).await?;
    progress.finish();
    Ok(())
}
