//! What can be seen from outside: statuses that caught up, children that changed.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};

use crate::WebServer;

/// Watches both kinds; events wait in the connections until someone asks.
pub(super) struct Observer {
    webservers: BoxStream<'static, watcher::Result<WebServer>>,
    deployments: BoxStream<'static, watcher::Result<Deployment>>,
    observed: BTreeMap<String, i64>,
}

impl Observer {
    pub(super) async fn start(client: &Client) -> Result<Self> {
        let mut observer = Self {
            webservers: watched::<WebServer>(client).boxed(),
            deployments: watched::<Deployment>(client).boxed(),
            observed: BTreeMap::new(),
        };
        // The lists are done before anything is measured: there is a WebServer, so its stream has a first item.
        observer.next_webserver().await?;
        Ok(observer)
    }

    async fn next_webserver(&mut self) -> Result<WebServer> {
        let web = self.webservers.try_next().await?.context("the watch of WebServers ended")?;
        let observed = web.status.as_ref().and_then(|status| status.observed_generation);
        if let Some(generation) = observed {
            self.observed.insert(web.name_any(), generation);
        }
        Ok(web)
    }

    /// When the last of `count` statuses was seen.
    pub(super) async fn all_observed(&mut self, count: usize) -> Result<Instant> {
        while self.observed.len() < count {
            self.next_webserver().await?;
        }
        Ok(Instant::now())
    }

    /// Takes what waits about Deployments, so that it is not counted as the time of the next change.
    pub(super) async fn catch_up(&mut self) -> Result<()> {
        const QUIET: Duration = Duration::from_millis(500);
        while let Ok(next) = tokio::time::timeout(QUIET, self.deployments.try_next()).await {
            next?.context("the watch of Deployments ended")?;
        }
        Ok(())
    }

    /// When a Deployment with so many replicas was seen.
    pub(super) async fn child_changed(&mut self, name: &str, replicas: i32) -> Result<Instant> {
        loop {
            let next = self.deployments.try_next().await?.context("the watch of Deployments ended")?;
            if next.name_any() == name && next.spec.replicas == Some(replicas) {
                return Ok(Instant::now());
            }
        }
    }

    /// Returns when a status is about this generation.
    pub(super) async fn status_caught_up(&mut self, name: &str, generation: i64) -> Result<()> {
        while self.observed.get(name) < Some(&generation) {
            self.next_webserver().await?;
        }
        Ok(())
    }
}

fn watched<K>(client: &Client) -> impl Stream<Item = watcher::Result<K>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    watcher(Api::<K>::all(client.clone()), watcher::Config::default()).default_backoff().applied_objects()
}
