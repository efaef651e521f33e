//! The operator on kube's own `Controller`, which applies always: the way its documentation shows.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use futures::StreamExt;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Service},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        Controller,
        controller::{Action, Config},
        watcher,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use windlass_bench::{CONCURRENCY, Progress, WebServer, deployment, observed, service, terminated};

struct Shared {
    client: Client,
    progress: Arc<Progress>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to apply {0}")]
    Apply(&'static str, #[source] kube::Error),
    #[error("a WebServer must have a namespace and a uid")]
    NoOwner,
}

async fn apply<K>(shared: &Shared, web: &WebServer, what: &'static str, mut child: K) -> Result<K, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let namespace = web.namespace().ok_or(Error::NoOwner)?;
    let owner = web.controller_owner_ref(&()).ok_or(Error::NoOwner)?;
    child.meta_mut().owner_references = Some(vec![owner]);
    let api: Api<K> = Api::namespaced(shared.client.clone(), &namespace);
    let params = PatchParams::apply("bench").force();
    api.patch(&child.name_any(), &params, &Patch::Apply(&child))
        .await
        .map_err(|error| Error::Apply(what, error))
}

async fn reconcile(web: Arc<WebServer>, shared: Arc<Shared>) -> Result<Action, Error> {
    let deployment = apply(&shared, &web, "the Deployment", deployment(&web)).await?;
    apply(&shared, &web, "the Service", service(&web)).await?;
    let namespace = web.namespace().ok_or(Error::NoOwner)?;
    let api: Api<WebServer> = Api::namespaced(shared.client.clone(), &namespace);
    let status = json!({
        "apiVersion": WebServer::api_version(&()),
        "kind": WebServer::kind(&()),
        "status": observed(&web, Some(&deployment)),
    });
    let params = PatchParams::apply("bench").force();
    api.patch_status(&web.name_any(), &params, &Patch::Apply(&status))
        .await
        .map_err(|error| Error::Apply("the status", error))?;
    shared.progress.reconciled(&web.name_any());
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> Result<()> {
    let progress = Arc::new(Progress::from_env()?);
    let client = Client::try_default().await.context("failed to make a client")?;
    let shared = Arc::new(Shared { client: client.clone(), progress: Arc::clone(&progress) });
    let any = watcher::Config::default;
    Controller::new(Api::<WebServer>::all(client.clone()), any())
        .owns(Api::<Deployment>::all(client.clone()), any())
        .owns(Api::<Service>::all(client), any())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .graceful_shutdown_on(terminated())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), shared)
        .for_each(|_| futures::future::ready(()))
        .await;
    progress.finish();
    Ok(())
}
