//! The flow of a PodManager: finalizer, plan, Pods, status.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::ResourceExt;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter as Count, family::Family},
};
use windlass::{Action, Context, Controller, Event, Reconciler};

use super::{api::PodManager, build, status};
use crate::workload::{
    Error, Problem, Settings,
    fleet::{self, Plan, Seen},
    pods, ready_event, report,
};

/// What keeps a PodManager from going before its Pods are gone.
pub const FINALIZER: &str = "apps.mycompany.com/podmanager";

/// `podmanager_reconcile_total{result}`.
#[derive(Clone, Debug, Default)]
pub struct Counter(Family<Outcome, Count>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

impl Counter {
    /// The metric, to be registered.
    pub(super) fn family(&self) -> impl prometheus_client::registry::Metric {
        self.0.clone()
    }

    fn count(&self, result: &Result<Action, Error>) {
        let result = if result.is_ok() { "success" } else { "error" };
        self.0.get_or_create(&Outcome { result }).inc();
    }
}

/// The controller of PodManagers.
pub fn controller(settings: Settings, counter: Counter) -> Controller<PodManagers> {
    settings.apply(Controller::new(PodManagers { counter }).owns::<Pod>())
}

/// The reconciler.
#[derive(Clone, Debug)]
pub struct PodManagers {
    counter: Counter,
}

impl Reconciler for PodManagers {
    type Resource = PodManager;
    type Error = Error;

    async fn reconcile(&self, manager: Arc<PodManager>, ctx: &Context<PodManager>) -> Result<Action, Error> {
        let result = if manager.metadata.deletion_timestamp.is_some() {
            finalize(&manager, ctx).await
        } else {
            converge(&manager, ctx).await
        };
        self.counter.count(&result);
        result
    }
}

async fn converge(manager: &PodManager, ctx: &Context<PodManager>) -> Result<Action, Error> {
    let template = build::template(manager);
    let hash = fleet::hash(&template);
    if let Err(problem) = build::check(manager) {
        observe(manager, ctx, &hash, Some(&problem)).await?;
        return Err(Error::Build(problem));
    }
    if ctx.guard(FINALIZER).await.map_err(Error::Finalize)?.is_finished() {
        // It was deleted since this run began; the next one takes the other path.
        return Ok(Action::await_change());
    }
    let owned = ctx.owned::<Pod>().map_err(Error::ReadChildren)?;
    let plan = fleet::plan(&owned, manager.spec.replicas as usize, &hash, ctx.now());
    let wait = plan.wait;
    match carry_out(manager, ctx, plan, &template, &hash).await {
        Ok(()) => observe(manager, ctx, &hash, None).await?,
        Err(error) => {
            let problem = error.creation_problem();
            observe(manager, ctx, &hash, problem.as_ref()).await?;
            return Err(error);
        }
    }
    Ok(wait.map_or_else(Action::await_change, Action::requeue))
}

async fn carry_out(
    manager: &PodManager,
    ctx: &Context<PodManager>,
    plan: Plan,
    template: &PodTemplateSpec,
    hash: &str,
) -> Result<(), Error> {
    for pod in plan.clear.iter().chain(&plan.delete) {
        ctx.delete(&**pod).await.map_err(Error::DeletePod)?;
        ctx.event(Event::normal("Deleted", format!("Deleted pod {}", pod.name_any())));
    }
    let namespace = manager.namespace();
    let is_taken = |index: usize| {
        let name = build::name(manager, index);
        // An unreadable cache ends in an error below, on creation.
        ctx.get::<Pod>(namespace.as_deref(), &name).is_ok_and(|found| found.is_some())
    };
    let indexes = build::free_indexes(plan.create.len(), is_taken);
    let wanted: Vec<(usize, u32)> = indexes.into_iter().zip(plan.create).collect();
    fleet::create(wanted, |(index, failures)| async move {
        let name = build::name(manager, index);
        match ctx.create_child(build::pod(name.clone(), template, hash, failures)).await {
            Ok(_) => {
                ctx.event(Event::normal("Created", format!("Created pod {name}")));
                Ok(())
            }
            Err(error) => {
                let why = error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
                ctx.event(Event::warning("Failed", format!("Failed to create pod {name}: {why}")));
                Err(Error::CreatePod(error))
            }
        }
    })
    .await
}

/// Reports what is there after all that was done: the cache has it already.
async fn observe(
    manager: &PodManager,
    ctx: &Context<PodManager>,
    hash: &str,
    failure: Option<&Problem>,
) -> Result<(), Error> {
    let owned = ctx.owned::<Pod>().map_err(Error::ReadChildren)?;
    let seen = Seen { owned: &owned, wanted: manager.spec.replicas, hash, failure };
    let new = status::observed(manager, &seen, ctx.now());
    report(manager, ctx, new, ready_event).await.map_err(Error::UpdateStatus)
}

/// Removes the Pods, and lets the PodManager go when the last one is gone.
async fn finalize(manager: &PodManager, ctx: &Context<PodManager>) -> Result<Action, Error> {
    if !manager.finalizers().iter().any(|name| name == FINALIZER) {
        return Ok(Action::await_change());
    }
    let owned = ctx.owned::<Pod>().map_err(Error::ReadChildren)?;
    if owned.is_empty() {
        ctx.release(FINALIZER).await.map_err(Error::Finalize)?;
        tracing::info!(key = %ctx.key(), "Cleaned up resources");
        return Ok(Action::await_change());
    }
    for pod in owned.iter().filter(|pod| !pods::is_terminating(pod)) {
        ctx.delete(&**pod).await.map_err(Error::DeletePod)?;
        ctx.event(Event::normal("Deleted", format!("Deleted pod {}", pod.name_any())));
    }
    // The end of each Pod brings the object back here.
    Ok(Action::await_change())
}
