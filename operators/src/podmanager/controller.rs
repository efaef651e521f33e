//! The flow of a PodManager: finalizer, plan, Pods, status.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::ResourceExt;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter as Count, family::Family},
};
use windlass::{Action, Context, Controller, Event, ObjectKey, Reconciler, Watch};

use super::{api::PodManager, build, status};
use crate::workload::{
    Error, Living, Problem, Settings, called,
    fleet::{self, Observed, Plan},
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
    settings.apply(
        Controller::new(PodManagers { counter, living: Living::default() })
            .owns_with(Watch::<Pod>::new().labels(build::UID)),
    )
}

/// The reconciler.
#[derive(Clone, Debug)]
pub struct PodManagers {
    counter: Counter,
    living: Living,
}

impl Reconciler for PodManagers {
    type Resource = PodManager;
    type Error = Error;

    async fn reconcile(&self, manager: Arc<PodManager>, ctx: &Context<PodManager>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        let result = if manager.metadata.deletion_timestamp.is_some() {
            finalize(&manager, ctx).await
        } else {
            converge(&manager, ctx).await
        };
        self.counter.count(&result);
        result
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<PodManager>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

async fn converge(manager: &PodManager, ctx: &Context<PodManager>) -> Result<Action, Error> {
    called(manager, ctx);
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
    let next = plan.next();
    match carry_out(manager, ctx, plan, &template, &hash).await {
        Ok(()) => observe(manager, ctx, &hash, None).await?,
        Err(error) => {
            let problem = error.creation_problem();
            observe(manager, ctx, &hash, problem.as_ref()).await?;
            return Err(error);
        }
    }
    Ok(next)
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
    let (removed, made) = plan.size();
    if removed + made > 0 {
        let expected = manager.spec.replicas;
        tracing::info!(key = %ctx.key(), expected, removed, made, "changing the Pods");
    }
    // An unreadable cache ends in an error on creation.
    let own = ctx.owned::<Pod>().unwrap_or_default();
    let places = &build::Places::new(manager, own.iter().map(|pod| pod.name_any()));
    fleet::create(plan.create, |failures| async move {
        loop {
            let name = places.next();
            match ctx.create_child(build::pod(name.clone(), template, hash, failures)).await {
                Ok(_) => {
                    ctx.event(Event::normal("Created", format!("Created pod {name}")));
                    return Ok(());
                }
                // Somebody else's, which the cache does not hold: the next place will do.
                Err(error) if error.is_already_exists() && places.may_go_on() => {}
                Err(error) => {
                    let said = error.status().map(|status| status.message.clone());
                    let why = said.unwrap_or_else(|| error.to_string());
                    ctx.event(Event::warning("Failed", format!("Failed to create pod {name}: {why}")));
                    return Err(Error::CreatePod(error));
                }
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
    let seen = Observed { owned: &owned, wanted: manager.spec.replicas, hash, failure };
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
    let left: Vec<&Arc<Pod>> = owned.iter().filter(|pod| !pods::is_terminating(pod)).collect();
    for pod in left.iter().take(fleet::BURST) {
        ctx.delete(&***pod).await.map_err(Error::DeletePod)?;
        ctx.event(Event::normal("Deleted", format!("Deleted pod {}", pod.name_any())));
    }
    if left.len() > fleet::BURST {
        return Ok(Action::requeue(Duration::ZERO));
    }
    // The end of each Pod brings the object back here.
    Ok(Action::await_change())
}
