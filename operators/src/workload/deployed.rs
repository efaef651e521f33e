//! The flow of every kind that stands on a Deployment of its own name: check, apply, report.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Pod, Service},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{ResourceExt, core::object::HasStatus};
use serde::Serialize;
use windlass::{Action, Applied, Children, Context, Event, Object, ReconcileError};

use super::{
    Problem, Reported, Rollout, called, is_floating, known, observed_generation, ready_event, reasons, report,
};

/// Why an object could not be brought in line with its spec.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The spec or the name asks for something impossible.
    #[error("failed to build the children")]
    Build(#[source] Problem),
    /// A child was refused, or could not be sent.
    #[error("failed to apply the children")]
    ApplyChildren(#[source] windlass::Error),
    /// The cache could not be read.
    #[error("failed to read the children")]
    ReadChildren(#[source] windlass::Error),
    /// A Pod could not be created.
    #[error("failed to create a Pod")]
    CreatePod(#[source] windlass::Error),
    /// A Pod could not be deleted.
    #[error("failed to delete a Pod")]
    DeletePod(#[source] windlass::Error),
    /// The finalizer could not be added or removed.
    #[error("failed to change the finalizer")]
    Finalize(#[source] windlass::Error),
    /// The number of replicas could not be left to the autoscaler.
    #[error("failed to hand the replicas over to the autoscaler")]
    HandOver(#[source] Box<kube::Error>),
    /// The status was refused, or could not be sent.
    #[error("failed to update the status")]
    UpdateStatus(#[source] windlass::Error),
}

impl Error {
    fn request(&self) -> Option<&windlass::Error> {
        match self {
            Self::Build(_) | Self::HandOver(_) => None,
            Self::ApplyChildren(source)
            | Self::ReadChildren(source)
            | Self::CreatePod(source)
            | Self::DeletePod(source)
            | Self::Finalize(source)
            | Self::UpdateStatus(source) => Some(source),
        }
    }
}

impl Error {
    /// Why Pods cannot be made, if a person can do something about it.
    pub(crate) fn creation_problem(&self) -> Option<Problem> {
        match self {
            Self::CreatePod(source) => {
                Problem::of(source).map(|problem| Problem::new(reasons::FAILED_CREATE, problem.message))
            }
            _ => None,
        }
    }
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Build(problem) => problem.reason,
            Self::HandOver(_) => "HandOverFailed",
            other => other.request().map_or("Failed", ReconcileError::category),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            // A change of the spec comes as an event, and so does it when a foreign child goes.
            Self::Build(_) | Self::ApplyChildren(windlass::Error::NameConflict { .. }) => false,
            other => other.request().is_none_or(ReconcileError::retryable),
        }
    }
}

/// A kind that stands on a Deployment of its own name.
pub(crate) trait Workload:
    Object + HasStatus<Status: Reported + Serialize + PartialEq + Send + Sync>
{
    /// The label of the Pods that holds the object's uid.
    const UID: &'static str;

    /// What the children depend on beside the spec, gathered before they are built.
    type Given: Sync;

    /// Refuses what the schema refuses too, for objects that are older than a rule.
    fn check(&self) -> Result<(), Problem>;

    /// What is wanted to exist. The context is for what stands in other objects.
    fn children(&self, ctx: &Context<Self>, given: &Self::Given) -> windlass::Result<Children>;

    /// How many replicas are asked for.
    fn wanted(&self, deployment: &Deployment) -> i32;

    /// The image that the Pods run.
    fn image(&self) -> &str;

    /// The status: what was seen, if anything could be, and what is to be said of it.
    fn reported(
        &self,
        ctx: &Context<Self>,
        seen: Option<&Rollout>,
        conditions: Vec<Condition>,
    ) -> Self::Status;

    /// Whether what is there, in whatever form, can serve: a Deployment without its Service cannot.
    fn can_serve(&self, ctx: &Context<Self>) -> windlass::Result<bool>;

    /// Conditions that only this kind has, or whose judgement goes before the Deployment's.
    fn more_conditions(&self, _: &Context<Self>, _: &Applied) -> windlass::Result<Vec<Condition>> {
        Ok(Vec::new())
    }

    /// The event of an object that has become ready.
    fn became_ready(ready: &Condition) -> Event {
        ready_event(ready)
    }
}

/// Brings an object in line with its spec.
pub(crate) async fn reconcile<W: Workload>(
    object: &W,
    ctx: &Context<W>,
    given: &W::Given,
) -> Result<Action, Error> {
    called(object, ctx);
    // Its children go by their owner references; to apply them again would bring them back.
    if object.meta().deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    if let Err(problem) = object.check() {
        condemn(object, ctx, None, &problem).await?;
        return Err(Error::Build(problem));
    }
    converge(object, ctx, given).await?;
    Ok(Action::await_change())
}

/// Applies the children and reports what has become of them.
async fn converge<W: Workload>(object: &W, ctx: &Context<W>, given: &W::Given) -> Result<(), Error> {
    let children = object.children(ctx, given).map_err(Error::ReadChildren)?;
    let before = own_deployment(object, ctx)?;
    let applied = match ctx.apply(children).await {
        Ok(applied) => applied,
        Err(error) => return Err(refused(object, ctx, error).await),
    };
    announce(object, ctx, &applied);
    let deployment = applied.get::<Deployment>(&object.name_any()).unwrap_or_default();
    trace(ctx, before.as_deref(), &deployment);
    let seen = rollout(object, ctx, deployment)?;
    let more = object.more_conditions(ctx, &applied).map_err(Error::ReadChildren)?;
    let conditions = seen.observe(object, known(object), more, ctx.now());
    tell(object, ctx, object.reported(ctx, Some(&seen), conditions)).await
}

/// What is there of an object whose Deployment is this one.
fn rollout<W: Workload>(object: &W, ctx: &Context<W>, deployment: Arc<Deployment>) -> Result<Rollout, Error> {
    let uid = object.uid().unwrap_or_default();
    let pods = ctx.indexed::<Pod>(W::UID, &uid).map_err(Error::ReadChildren)?;
    Ok(Rollout { wanted: object.wanted(&deployment), deployment, pods })
}

/// Reports an apply that failed, if it needs a person. Returns the failure; that of the report would hide it.
async fn refused<W: Workload>(object: &W, ctx: &Context<W>, error: windlass::Error) -> Error {
    if let Some(problem) = Problem::of(&error) {
        let reported = match serving(object, ctx) {
            Ok(serving) => condemn(object, ctx, serving.as_ref(), &problem).await,
            Err(error) => Err(error),
        };
        if let Err(unreported) = reported {
            tracing::warn!(error = %unreported, "could not report a failed apply");
        }
    }
    Error::ApplyChildren(error)
}

/// The rollout of an object whose children are there, in whatever form.
fn serving<W: Workload>(object: &W, ctx: &Context<W>) -> Result<Option<Rollout>, Error> {
    if !object.can_serve(ctx).map_err(Error::ReadChildren)? {
        return Ok(None);
    }
    own_deployment(object, ctx)?.map(|deployment| rollout(object, ctx, deployment)).transpose()
}

/// The object's Deployment as it is known.
fn own_deployment<W: Workload>(object: &W, ctx: &Context<W>) -> Result<Option<Arc<Deployment>>, Error> {
    let deployments = ctx.owned::<Deployment>().map_err(Error::ReadChildren)?;
    Ok(deployments.into_iter().find(|deployment| deployment.name_any() == object.name_any()))
}

/// Tells what has become of the Deployment.
fn trace<W: Workload>(ctx: &Context<W>, before: Option<&Deployment>, now: &Deployment) {
    let size = |deployment: &Deployment| deployment.spec.replicas.unwrap_or(1);
    let to = size(now);
    match before.map(size) {
        None => tracing::info!(key = %ctx.key(), replicas = to, "created the Deployment"),
        Some(from) if from != to => tracing::info!(key = %ctx.key(), from, to, "resized the Deployment"),
        Some(_) => {}
    }
}

/// Whether the object's own Service is there.
pub(crate) fn has_service<R: Object>(object: &R, ctx: &Context<R>) -> windlass::Result<bool> {
    Ok(ctx.owned::<Service>()?.iter().any(|service| service.name_any() == object.name_any()))
}

/// Reports a problem that a person has to put right.
async fn condemn<W: Workload>(
    object: &W,
    ctx: &Context<W>,
    serving: Option<&Rollout>,
    problem: &Problem,
) -> Result<(), Error> {
    let conditions = Rollout::condemn(serving, problem, object, known(object), ctx.now());
    tell(object, ctx, object.reported(ctx, serving, conditions)).await
}

async fn tell<W: Workload>(object: &W, ctx: &Context<W>, status: W::Status) -> Result<(), Error> {
    report(object, ctx, status, W::became_ready).await.map_err(Error::UpdateStatus)
}

/// Tells what was done to the children.
fn announce<W: Workload>(object: &W, ctx: &Context<W>, applied: &Applied) {
    if applied.written() + applied.pruned() > 0 {
        let generation = object.meta().generation.unwrap_or_default();
        let (written, pruned) = (applied.written(), applied.pruned());
        tracing::info!(key = %ctx.key(), generation, written, pruned, "applied the children");
        let removed = if pruned == 0 { String::new() } else { format!(", removed {pruned}") };
        let note = format!("Applied {written} objects for generation {generation}{removed}");
        ctx.event(Event::normal("Applied", note));
    }
    let observed = observed_generation(known(object));
    if observed != object.meta().generation && is_floating(object.image()) {
        let note = format!(
            "Image {} names no version: Pods that start later may run another one. Name a tag or a digest.",
            object.image()
        );
        ctx.event(Event::warning("FloatingImage", note));
    }
}
