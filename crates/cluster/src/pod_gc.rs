//! Pods that nobody looks after: their node is gone, or they are deleted before they had one.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, ObjectKey, Predicate, ReconcileError, Reconciler, Watch,
    k8s_openapi::{
        api::core::v1::{Node, Pod, PodCondition},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    kube::api::{DeleteParams, Preconditions},
    rbac,
};

use crate::{pods, resources};

/// Pods by the node that they are on.
const ON_NODE: &str = "pod-gc-node";

/// So long a node may be away before its Pods are given up.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Why a Pod could not be collected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The cache or a status write failed.
    #[error(transparent)]
    Context(#[from] windlass::Error),
    /// The Pod could not be deleted.
    #[error("failed to delete a Pod without a node")]
    Delete(#[source] windlass::kube::Error),
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Context(error) => error.category(),
            Self::Delete(_) => "FailedDelete",
        }
    }
}

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<LostPods> {
    Controller::new(LostPods)
        .name("pod-garbage-collector")
        .filter(Predicate::new(|old: &Pod, new: &Pod| pods::node(old) != pods::node(new)))
        .watches_with(
            // Only a node that goes leaves Pods behind.
            Watch::<Node>::new().filter(Predicate::new(|_: &Node, _: &Node| false)),
            |node: &Node, cache| {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let pods = cache.indexed::<Pod>(ON_NODE, name).unwrap_or_default();
                pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
            },
        )
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .permits([rbac::rule("", ["pods"], ["delete"]), rbac::rule("", ["nodes"], ["get"])])
}

/// Collects Pods that no node will end.
pub(crate) struct LostPods;

impl Reconciler for LostPods {
    type Resource = Pod;
    type Error = Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, Error> {
        let Some(node) = pods::node(&pod) else {
            // Only finalizers keep it, and whoever set them may wait for its end.
            if pods::is_terminating(&pod.metadata) {
                collect(&pod, None, ctx).await?;
            }
            return Ok(Action::await_change());
        };
        if ctx.get::<Node>(None, node)?.is_some() {
            return Ok(Action::await_change());
        }
        // A Pod may be on a node that registers a little later, and a node may only be replaced.
        let since = pods::condition(&pod, pods::SCHEDULED).and_then(|c| c.last_transition_time.as_ref());
        let since = since.or(pod.metadata.creation_timestamp.as_ref()).map_or(ctx.now(), |time| time.0);
        if let Some(left) = QUARANTINE.checked_sub(ctx.since(since)).filter(|left| *left > Duration::ZERO) {
            return Ok(Action::requeue(left));
        }
        if ctx.fetch::<Node>(None, node).await?.is_some() {
            return Ok(Action::await_change());
        }
        collect(&pod, Some("PodGC: node no longer exists"), ctx).await?;
        Ok(Action::await_change())
    }
}

/// Ends a Pod, with a condition that says why if it was disrupted, and removes it.
async fn collect(pod: &Pod, disruption: Option<&str>, ctx: &Context<Pod>) -> Result<(), Error> {
    if !pods::is_finished(pod) {
        let mut status = pod.status.clone().unwrap_or_default();
        status.phase = Some("Failed".into());
        let condition = disruption.map(|message| PodCondition {
            type_: "DisruptionTarget".into(),
            status: "True".into(),
            reason: Some("DeletionByPodGC".into()),
            message: Some(message.into()),
            last_transition_time: Some(Time(ctx.now())),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        });
        status.conditions.get_or_insert_default().extend(condition);
        ctx.patch_status(pod, &status).await?;
    }
    let api = resources::untyped::<Pod>(ctx.client(), ctx.key().namespace().unwrap_or_default());
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(ctx.key().name(), &params).await {
        Ok(_) => Ok(()),
        Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(source) => Err(Error::Delete(source)),
    }
}
