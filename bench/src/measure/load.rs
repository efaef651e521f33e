//! What the measurer itself writes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Service},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::wait,
};
use serde_json::json;

use super::{Plan, watch::Observer};
use crate::{CONCURRENCY, WebServer, WebServerSpec, deployment, observed, service};

const NAMESPACE: &str = "default";
/// So many WebServers are created at the same time.
const CREATORS: usize = 16;

fn name(index: usize) -> String {
    format!("web-{index:06}")
}

fn webserver(index: usize) -> WebServer {
    let spec = WebServerSpec { replicas: 3, image: "nginx:1.29".to_owned(), port: 80 };
    WebServer::new(&name(index), spec)
}

/// Installs the kind and creates the objects.
pub async fn prepare(client: &Client, objects: usize) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = WebServer::crd();
    let params = PatchParams::apply("bench-measure").force();
    definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await?;
    let established = wait::conditions::is_crd_established();
    let waiting = wait::await_condition(definitions, WebServer::crd_name(), established);
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .context("the definition was not established")??;
    let api: Api<WebServer> = Api::namespaced(client.clone(), NAMESPACE);
    created(&api, 0).await.context("failed to create the first WebServer")?;
    stream::iter(1..objects)
        .map(|index| api_create(&api, index))
        .buffered(CREATORS)
        .try_for_each(|()| futures::future::ready(Ok(())))
        .await
}

async fn api_create(api: &Api<WebServer>, index: usize) -> Result<()> {
    api.create(&PostParams::default(), &webserver(index)).await.context("failed to create a WebServer")?;
    Ok(())
}

/// The path of a kind that was just established may take a moment.
async fn created(api: &Api<WebServer>, index: usize) -> Result<()> {
    let limit = Instant::now() + Duration::from_secs(10);
    loop {
        match api_create(api, index).await {
            Err(_) if Instant::now() < limit => tokio::time::sleep(Duration::from_millis(100)).await,
            outcome => return outcome,
        }
    }
}

/// Changes one spec after the other, and returns how long each child took from the server's answer.
pub(super) async fn change_one_by_one(
    client: &Client,
    observer: &mut Observer,
    plan: Plan,
) -> Result<Vec<Duration>> {
    let api: Api<WebServer> = Api::namespaced(client.clone(), NAMESPACE);
    let mut latencies = Vec::new();
    observer.catch_up().await?;
    let step = (plan.objects / plan.changes).max(1);
    for index in 0..plan.changes {
        let name = name(index * step % plan.objects);
        let replicas = 4 + i32::try_from(index * step / plan.objects)?;
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        let changed = api.patch(&name, &PatchParams::default(), &patch).await?;
        let answered = Instant::now();
        let seen = tokio::time::timeout(Duration::from_secs(30), observer.child_changed(&name, replicas))
            .await
            .with_context(|| format!("the Deployment of {name} did not follow"))??;
        latencies.push(seen.saturating_duration_since(answered));
        let generation = changed.metadata.generation.context("a WebServer must have a generation")?;
        tokio::time::timeout(Duration::from_secs(30), observer.status_caught_up(&name, generation))
            .await
            .with_context(|| format!("the status of {name} did not follow"))??;
    }
    Ok(latencies)
}

/// The same three writes an object without any operator: the floor. Returns the seconds.
pub async fn bare(client: &Client, objects: usize) -> Result<f64> {
    let start = Instant::now();
    stream::iter(0..objects)
        .map(|index| three_writes(client, index))
        .buffer_unordered(CONCURRENCY.into())
        .try_for_each(|()| futures::future::ready(Ok(())))
        .await?;
    Ok(start.elapsed().as_secs_f64())
}

async fn three_writes(client: &Client, index: usize) -> Result<()> {
    let web = webserver(index);
    let params = PostParams::default();
    Api::<Deployment>::namespaced(client.clone(), NAMESPACE).create(&params, &deployment(&web)).await?;
    Api::<Service>::namespaced(client.clone(), NAMESPACE).create(&params, &service(&web)).await?;
    let status = Patch::Merge(json!({ "status": observed(&web, None) }));
    let api: Api<WebServer> = Api::namespaced(client.clone(), NAMESPACE);
    api.patch_status(&name(index), &PatchParams::default(), &status).await?;
    Ok(())
}
