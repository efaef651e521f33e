//! The ReplicationController controller: a ReplicaSet of the old kind, with a plain map as its selector.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, ObjectKey, Reader, Reconciler,
    k8s_openapi::{
        api::core::v1::{
            Pod, ReplicationController, ReplicationControllerCondition, ReplicationControllerSpec,
            ReplicationControllerStatus,
        },
        apimachinery::pkg::apis::meta::v1::Time,
    },
    owner, rbac,
};

use crate::{
    claim::{self, Claim},
    pod_control::{self, BURST},
    pods,
    replica_set::victims,
    selector,
};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<ReplicationControllers> {
    Controller::new(ReplicationControllers)
        .name("replication-controller")
        .core_events("replication-controller")
        .owns::<Pod>()
        .watches::<Pod, _>(adopters)
        .index::<Pod>(claim::ORPHANS, claim::orphans)
        .permits([rbac::rule("", ["pods"], ["create", "delete", "patch"])])
}

fn adopters(pod: &Pod, cache: &Reader) -> Vec<ObjectKey> {
    if owner::controller_of(&pod.metadata).is_some() || pod.metadata.labels.is_none() {
        return Vec::new();
    }
    let all = cache.list::<ReplicationController>(pod.metadata.namespace.as_deref()).unwrap_or_default();
    let matching = all.iter().filter(|one| one.spec.as_ref().is_some_and(|spec| wants(spec, pod)));
    matching.map(|one| ObjectKey::of(&**one)).collect()
}

fn wants(spec: &ReplicationControllerSpec, pod: &Pod) -> bool {
    let some = spec.selector.as_ref().filter(|selector| !selector.is_empty());
    some.is_some_and(|selector| selector::contains(Some(selector), pod.metadata.labels.as_ref()))
}

/// Reconciles ReplicationControllers.
pub(crate) struct ReplicationControllers;

impl Reconciler for ReplicationControllers {
    type Resource = ReplicationController;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        object: Arc<ReplicationController>,
        ctx: &Context<ReplicationController>,
    ) -> Result<Action, windlass::Error> {
        let Some(spec) = &object.spec else { return Ok(Action::await_change()) };
        let claim = Claim { wants: &|pod| wants(spec, pod), movable: pods::is_active, finalizer: None };
        let mut active = claim.pods(&object.metadata, ctx).await?;
        active.retain(|pod| pods::is_active(pod));
        let managed = if pods::is_terminating(&object.metadata) {
            Ok(())
        } else {
            manage(&object, spec, &active, ctx).await
        };
        let status = observed(&object, spec, &active, managed.as_ref().err(), ctx);
        ctx.patch_status(&*object, &status).await?;
        managed?;
        let min_ready = spec.min_ready_seconds.unwrap_or(0);
        let waits = active.iter().filter_map(|pod| pods::available_in(pod, min_ready, ctx.now()));
        Ok(match waits.filter(|wait| *wait > Duration::ZERO).min() {
            Some(wait) => Action::requeue(wait),
            None => Action::await_change(),
        })
    }
}

/// Creates what is missing or deletes what is too much.
async fn manage(
    object: &ReplicationController,
    spec: &ReplicationControllerSpec,
    active: &[Arc<Pod>],
    ctx: &Context<ReplicationController>,
) -> windlass::Result<()> {
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    if let Some(missing) = wanted.checked_sub(active.len()) {
        let prefix = format!("{}-", object.metadata.name.as_deref().unwrap_or_default());
        let template = spec.template.clone().unwrap_or_default();
        let new = (0..missing.min(BURST)).map(|_| pod_control::from_template(&template, &prefix)).collect();
        return pod_control::create_all(new, ctx).await.1;
    }
    let surplus = (active.len() - wanted).min(BURST);
    for pod in victims::choose(active, active, surplus, ctx.now()) {
        pod_control::delete(&pod, ctx).await?;
    }
    Ok(())
}

fn observed(
    object: &ReplicationController,
    spec: &ReplicationControllerSpec,
    active: &[Arc<Pod>],
    failure: Option<&windlass::Error>,
    ctx: &Context<ReplicationController>,
) -> ReplicationControllerStatus {
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let labels = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let some = |test: &dyn Fn(&Pod) -> bool| {
        let count = active.iter().filter(|pod| test(pod)).count() as i32;
        (count != 0).then_some(count)
    };
    let mut conditions =
        object.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    match failure {
        None => conditions.retain(|condition| condition.type_ != REPLICA_FAILURE),
        // The first failure stays until it is over: its message would change with every retry.
        Some(_) if conditions.iter().any(|condition| condition.type_ == REPLICA_FAILURE) => {}
        Some(error) => conditions.push(ReplicationControllerCondition {
            type_: REPLICA_FAILURE.into(),
            status: "True".into(),
            reason: Some("FailedCreate".into()),
            message: Some(pod_control::reason(error)),
            last_transition_time: Some(Time(ctx.now())),
        }),
    }
    ReplicationControllerStatus {
        replicas: active.len() as i32,
        fully_labeled_replicas: some(&|pod| selector::contains(labels, pod.metadata.labels.as_ref())),
        ready_replicas: some(&pods::is_ready),
        available_replicas: some(&|pod| {
            pods::available_in(pod, min_ready, ctx.now()) == Some(Duration::ZERO)
        }),
        observed_generation: object.metadata.generation,
        conditions: Some(conditions).filter(|conditions| !conditions.is_empty()),
    }
}
