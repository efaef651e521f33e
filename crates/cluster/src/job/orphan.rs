//! Pods whose Job is gone: nobody will count them, so their finalizer goes.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, ObjectKey, Predicate, Reconciler,
    k8s_openapi::api::{batch::v1::Job, core::v1::Pod},
    owner, rbac,
};

use super::{TRACKING, verdict};

/// Pods that are tracked, by the key of their Job.
const TRACKED: &str = "job-tracked";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<OrphanPods> {
    Controller::new(OrphanPods)
        .name("job-orphan-controller")
        .filter(Predicate::new(|_: &Pod, new: &Pod| verdict::is_tracked(new)))
        .watches_with(
            // Only a Job that goes, or comes to its end, leaves Pods behind.
            windlass::Watch::<Job>::new()
                .filter(Predicate::new(|_: &Job, new: &Job| super::finished(new).is_some())),
            |job: &Job, cache| {
                let pods = cache.indexed::<Pod>(TRACKED, &ObjectKey::of(job).to_string()).unwrap_or_default();
                pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
            },
        )
        .index::<Pod>(TRACKED, |pod| {
            let job = owner::controller_key::<Job>(&pod.metadata).filter(|_| verdict::is_tracked(pod));
            job.map(|job| job.to_string()).into_iter().collect()
        })
        .permits([rbac::rule("", ["pods"], ["patch"])])
}

/// Takes the finalizer off Pods that no Job counts.
pub(crate) struct OrphanPods;

impl Reconciler for OrphanPods {
    type Resource = Pod;
    type Error = windlass::Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, windlass::Error> {
        if !verdict::is_tracked(&pod) || counted(&pod, ctx)? {
            return Ok(Action::await_change());
        }
        let released = ctx.modify(&*pod, |pod| {
            pod.metadata.finalizers.iter_mut().for_each(|all| all.retain(|one| one != TRACKING));
        });
        match released.await {
            Err(error) if !error.is_not_found() => crate::retry_conflicts(Err(error)),
            _ => Ok(Action::await_change()),
        }
    }
}

/// Whether the Pod's Job is there and goes on counting.
fn counted(pod: &Pod, ctx: &Context<Pod>) -> windlass::Result<bool> {
    let Some(reference) = owner::controller_of(&pod.metadata).filter(|owner| owner.kind == "Job") else {
        return Ok(false);
    };
    let namespace = pod.metadata.namespace.as_deref();
    let job = ctx.get::<Job>(namespace, &reference.name)?;
    Ok(job.is_some_and(|job| {
        job.metadata.uid.as_deref() == Some(&reference.uid) && super::finished(&job).is_none()
    }))
}
