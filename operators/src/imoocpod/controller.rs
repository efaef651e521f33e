//! The flow of an ImoocPod: plan, Pods, status.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use windlass::{Action, Context, Controller, Event, ObjectKey, Reconciler, Watch};

use super::{api::ImoocPod, build, status};
use crate::workload::{
    Error, Living, Problem, Settings, called,
    fleet::{self, Observed, Plan},
    ready_event, report,
};

/// The controller of ImoocPods.
pub fn controller(settings: Settings) -> Controller<ImoocPods> {
    settings.apply(Controller::new(ImoocPods::default()).owns_with(Watch::<Pod>::new().labels(build::UID)))
}

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct ImoocPods {
    living: Living,
}

impl Reconciler for ImoocPods {
    type Resource = ImoocPod;
    type Error = Error;

    async fn reconcile(&self, imooc: Arc<ImoocPod>, ctx: &Context<ImoocPod>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        called(&*imooc, ctx);
        // Its Pods go by their owner references.
        if imooc.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let hash = fleet::hash(&build::template(&imooc));
        if let Err(problem) = build::check(&imooc) {
            observe(&imooc, ctx, &hash, Some(&problem)).await?;
            return Err(Error::Build(problem));
        }
        let owned = ctx.owned::<Pod>().map_err(Error::ReadChildren)?;
        let plan = fleet::plan(&owned, imooc.spec.replicas as usize, &hash, ctx.now());
        let next = plan.next();
        let done = carry_out(&imooc, ctx, plan, &hash).await;
        let problem = done.as_ref().err().and_then(Error::creation_problem);
        observe(&imooc, ctx, &hash, problem.as_ref()).await?;
        done?;
        Ok(next)
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<ImoocPod>) -> Result<(), Error> {
        self.living.gone(key);
        Ok(())
    }
}

async fn carry_out(imooc: &ImoocPod, ctx: &Context<ImoocPod>, plan: Plan, hash: &str) -> Result<(), Error> {
    let (surplus, missing) = plan.size();
    if surplus + missing > 0 {
        let (current, expected) =
            (ctx.owned::<Pod>().map_err(Error::ReadChildren)?.len(), imooc.spec.replicas);
        tracing::info!(key = %ctx.key(), current, expected, surplus, missing, "changing the Pods");
    }
    for pod in plan.clear.iter().chain(&plan.delete) {
        ctx.delete(&**pod).await.map_err(Error::DeletePod)?;
        ctx.event(Event::normal("Deleted", format!("Deleted pod {}", pod.name_any())));
    }
    let template = &build::template(imooc);
    fleet::create(plan.create, |failures| async move {
        let made = ctx.create_child(build::pod(imooc, template, hash, failures)).await;
        let made = made.map_err(Error::CreatePod)?;
        ctx.event(Event::normal("Created", format!("Created pod {}", made.name_any())));
        Ok(())
    })
    .await
}

/// Reports what is there after all that was done: the cache has it already.
async fn observe(
    imooc: &ImoocPod,
    ctx: &Context<ImoocPod>,
    hash: &str,
    failure: Option<&Problem>,
) -> Result<(), Error> {
    let owned = ctx.owned::<Pod>().map_err(Error::ReadChildren)?;
    let seen = Observed { owned: &owned, wanted: imooc.spec.replicas, hash, failure };
    let new = status::observed(imooc, &seen, ctx.now());
    report(imooc, ctx, new, ready_event).await.map_err(Error::UpdateStatus)
}
