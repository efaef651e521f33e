//! The flow of a WebServer: check, apply, report.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::ResourceExt;
use windlass::{
    Action, Applied, Context, Controller, Event, Object, ObjectKey, Reader, ReconcileError, Reconciler,
    conditions::{self, READY},
};

use super::{
    api::{WebServer, WebServerStatus},
    build::{self, InvalidName},
    status::{self, Problem, reasons},
};

/// Why a WebServer could not be brought in line with its spec.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The children cannot have this name.
    #[error("failed to name the children")]
    NameChildren(#[source] InvalidName),
    /// A child was refused, or could not be sent.
    #[error("failed to apply the children")]
    ApplyChildren(#[source] windlass::Error),
    /// The cache could not be read.
    #[error("failed to read the children")]
    ReadChildren(#[source] windlass::Error),
    /// The status was refused, or could not be sent.
    #[error("failed to update the status")]
    UpdateStatus(#[source] windlass::Error),
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::NameChildren(_) => reasons::INVALID_NAME,
            Self::ApplyChildren(source) | Self::ReadChildren(source) | Self::UpdateStatus(source) => {
                source.category()
            }
        }
    }

    fn retryable(&self) -> bool {
        match self {
            // A name never changes; and when a foreign child goes, `same_name` hears of it.
            Self::NameChildren(_) | Self::ApplyChildren(windlass::Error::NameConflict { .. }) => false,
            Self::ApplyChildren(source) | Self::ReadChildren(source) | Self::UpdateStatus(source) => {
                source.retryable()
            }
        }
    }
}

/// How the controller runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many WebServers are reconciled at the same time.
    pub concurrency: usize,
    /// How often every WebServer is looked at without a reason.
    ///
    /// Nothing depends on it: the watches bring every change of a WebServer and of its children at once. But a look
    /// that finds nothing to do reads the cache only and sends no request, so the usual 30 s cost next to nothing.
    pub resync: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrency: 4, resync: Some(Duration::from_secs(30)) }
    }
}

/// The controller of WebServers.
pub fn controller(settings: Settings) -> Controller<WebServers> {
    let controller = Controller::new(WebServers)
        .owns::<Deployment>()
        .owns::<Service>()
        .watches::<Deployment, _>(same_name)
        .watches::<Service, _>(same_name)
        .concurrency(settings.concurrency);
    match settings.resync {
        Some(period) => controller.resync(period),
        None => controller,
    }
}

/// The WebServer with the name of some object, whoever owns that: a foreign object that is in the way, or no longer.
fn same_name<K: Object>(object: &K, cache: &Reader) -> Vec<ObjectKey> {
    let key = ObjectKey::of(object);
    let web = cache.get::<WebServer>(key.namespace(), key.name());
    web.ok().flatten().map(|_| key).into_iter().collect()
}

/// The reconciler.
#[derive(Clone, Copy, Debug)]
pub struct WebServers;

impl Reconciler for WebServers {
    type Resource = WebServer;
    type Error = Error;

    async fn reconcile(&self, web: Arc<WebServer>, ctx: &Context<WebServer>) -> Result<Action, Error> {
        // Its children go by their owner references; to apply them again would bring them back.
        if web.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        if let Err(invalid) = build::check_name(&web) {
            let problem = Problem { reason: reasons::INVALID_NAME, message: invalid.to_string() };
            report(&web, ctx, status::failed(&web, None, &problem, ctx.now())).await?;
            return Err(Error::NameChildren(invalid));
        }
        let applied = match ctx.apply(build::children(&web)).await {
            Ok(applied) => applied,
            Err(error) => return Err(refused(&web, ctx, error).await),
        };
        announce(&web, ctx, &applied);
        let deployment = applied.get::<Deployment>(&web.name_any()).unwrap_or_default();
        report(&web, ctx, status::observed(&web, &deployment, ctx.now())).await?;
        Ok(Action::await_change())
    }
}

/// Reports an apply that failed, if it needs a person. Returns the failure; that of the report would hide it.
async fn refused(web: &WebServer, ctx: &Context<WebServer>, error: windlass::Error) -> Error {
    if let Some(problem) = Problem::of(&error) {
        let reported = match serving(web, ctx) {
            Ok(serving) => {
                report(web, ctx, status::failed(web, serving.as_deref(), &problem, ctx.now())).await
            }
            Err(error) => Err(error),
        };
        if let Err(unreported) = reported {
            tracing::warn!(error = %unreported, "could not report a failed apply");
        }
    }
    Error::ApplyChildren(error)
}

/// The Deployment of a WebServer all of whose children are there, in whatever form.
fn serving(web: &WebServer, ctx: &Context<WebServer>) -> Result<Option<Arc<Deployment>>, Error> {
    let named = |name: String| name == web.name_any();
    let deployments = ctx.owned::<Deployment>().map_err(Error::ReadChildren)?;
    let services = ctx.owned::<Service>().map_err(Error::ReadChildren)?;
    let has_service = services.iter().any(|service| named(service.name_any()));
    Ok(deployments.into_iter().find(|deployment| has_service && named(deployment.name_any())))
}

/// Tells what was done to the children.
fn announce(web: &WebServer, ctx: &Context<WebServer>, applied: &Applied) {
    if applied.written() > 0 {
        let (name, generation) = (web.name_any(), web.metadata.generation.unwrap_or_default());
        let note = format!("Applied Deployment and Service {name} for generation {generation}");
        ctx.event(Event::normal("Applied", note));
    }
    let observed = web.status.as_ref().and_then(|status| status.observed_generation);
    if observed != web.metadata.generation && build::is_floating(&web.spec.image) {
        let note = format!(
            "Image {} names no version: Pods that start later may run another one. Name a tag or a digest.",
            web.spec.image
        );
        ctx.event(Event::warning("FloatingImage", note));
    }
}

/// Writes the status, and tells when the WebServer has become ready or has ceased to be.
async fn report(web: &WebServer, ctx: &Context<WebServer>, new: WebServerStatus) -> Result<(), Error> {
    let change = readiness_change(web, &new);
    ctx.update_status(new).await.map_err(Error::UpdateStatus)?;
    if let Some(event) = change {
        ctx.event(event);
    }
    Ok(())
}

/// The event for a WebServer that has become ready, or has ceased to be while its spec asked for nothing new.
fn readiness_change(web: &WebServer, new: &WebServerStatus) -> Option<Event> {
    let old = web.status.as_ref().and_then(|status| conditions::find(&status.conditions, READY));
    let (was, is) = (old.is_some_and(|old| old.status == "True"), conditions::find(&new.conditions, READY)?);
    match (was, is.status == "True") {
        (false, true) => Some(Event::normal("Ready", is.message.clone())),
        (true, false) if old?.observed_generation == web.metadata.generation => {
            Some(Event::warning("NotReady", is.message.clone()))
        }
        _ => None,
    }
}
