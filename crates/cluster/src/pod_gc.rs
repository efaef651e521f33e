//! Pods that nobody looks after: their node is gone or out of service, they are deleted before they had one, or there are
//! too many that have ended.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Action, Context, Controller, ObjectKey, Predicate, ReconcileError, Reconciler, Watch,
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{Node, Pod, PodCondition},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    kube::api::{DeleteParams, Preconditions},
    rbac,
};

use crate::{pods, resources, scheduler::taints};

/// Pods by the node that they are on.
const ON_NODE: &str = "pod-gc-node";

/// Pods that have ended, under one key.
const ENDED: &str = "pod-gc-ended";

/// So long a node may be away before its Pods are given up.
const QUARANTINE: Duration = Duration::from_secs(40);

/// So many Pods that have ended are kept.
const MOST_ENDED: usize = 12_500;
/// How often those are counted, at most.
const COUNT_PERIOD: Duration = Duration::from_secs(20);

/// The taint by which people say that a node that is down will not come back.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

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
    Controller::new(LostPods::default())
        .name("pod-garbage-collector")
        .filter(Predicate::new(|old: &Pod, new: &Pod| {
            let state = |pod: &Pod| {
                let terminating = pods::is_terminating(&pod.metadata);
                (pods::node(pod).map(str::to_owned), terminating, pods::is_finished(pod))
            };
            state(old) != state(new)
        }))
        .watches_with(
            // Only a node that goes, or is given up, leaves Pods behind.
            Watch::<Node>::new()
                .filter(Predicate::new(|old: &Node, new: &Node| is_given_up(old) != is_given_up(new))),
            |node: &Node, cache| {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let pods = cache.indexed::<Pod>(ON_NODE, name).unwrap_or_default();
                pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
            },
        )
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .index::<Pod>(ENDED, |pod| pods::is_finished(pod).then(String::new).into_iter().collect())
        .permits([rbac::rule("", ["pods"], ["delete"]), rbac::rule("", ["nodes"], ["get"])])
}

/// Whether nobody expects a node to end its Pods any more.
fn is_given_up(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
    !ready && taints::of(node).any(|taint| taint.key == OUT_OF_SERVICE)
}

/// Collects Pods that no node will end.
#[derive(Default)]
pub(crate) struct LostPods {
    /// Nodes that are not there although Pods are on them, and since when that is known.
    missing: Mutex<BTreeMap<String, Timestamp>>,
    /// When the Pods that have ended were counted last.
    counted: Mutex<Option<Timestamp>>,
}

impl LostPods {
    /// How long a node must still be missing before its Pods are given up: it may register a little later, or only be
    /// replaced.
    fn left(&self, node: &str, now: Timestamp) -> Option<Duration> {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *missing.entry(node.to_owned()).or_insert(now);
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        QUARANTINE.checked_sub(passed).filter(|left| *left > Duration::ZERO)
    }

    fn found(&self, node: &str) {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
    }

    /// Whether it is time to count the Pods that have ended.
    fn counts(&self, now: Timestamp) -> bool {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = counted.is_none_or(|last| {
            Duration::try_from(now.duration_since(last)).unwrap_or_default() >= COUNT_PERIOD
        });
        if passed {
            *counted = Some(now);
        }
        passed
    }
}

impl Reconciler for LostPods {
    type Resource = Pod;
    type Error = Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, Error> {
        if pods::is_finished(&pod) && self.counts(ctx.now()) {
            for one in surplus(ctx.indexed::<Pod>(ENDED, "")?, MOST_ENDED) {
                collect(&one, None, ctx).await?;
            }
        }
        let Some(node) = pods::node(&pod) else {
            // Only finalizers keep it, and whoever set them may wait for its end.
            if pods::is_terminating(&pod.metadata) {
                collect(&pod, None, ctx).await?;
            }
            return Ok(Action::await_change());
        };
        if let Some(host) = ctx.get::<Node>(None, node)? {
            self.found(node);
            if pods::is_terminating(&pod.metadata) && is_given_up(&host) {
                collect(&pod, None, ctx).await?;
            }
            return Ok(Action::await_change());
        }
        if let Some(left) = self.left(node, ctx.now()) {
            return Ok(Action::requeue(left));
        }
        if ctx.fetch::<Node>(None, node).await?.is_some() {
            self.found(node);
            return Ok(Action::await_change());
        }
        collect(&pod, Some("PodGC: node no longer exists"), ctx).await?;
        Ok(Action::await_change())
    }
}

/// Of Pods that have ended, those that are too many: evicted ones first, then the oldest.
fn surplus(mut ended: Vec<Arc<Pod>>, most: usize) -> Vec<Arc<Pod>> {
    let count = ended.len().saturating_sub(most);
    if count == 0 {
        return Vec::new();
    }
    let evicted =
        |pod: &Pod| pod.status.as_ref().and_then(|status| status.reason.as_deref()) == Some("Evicted");
    ended.sort_by_key(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (!evicted(pod), created, pod.metadata.name.clone())
    });
    ended.truncate(count);
    ended
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
    let key = ObjectKey::of(pod);
    let api = resources::untyped::<Pod>(ctx.client(), key.namespace().unwrap_or_default());
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(key.name(), &params).await {
        Ok(_) => Ok(()),
        Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(source) => Err(Error::Delete(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::{PodFixture, at};

    #[test]
    fn a_node_is_missed_from_the_first_sight_of_its_absence() {
        let lost = LostPods::default();
        assert_eq!(lost.left("n", at(1000)), Some(QUARANTINE));
        assert_eq!(lost.left("n", at(1030)), Some(Duration::from_secs(10)));
        assert_eq!(lost.left("n", at(1040)), None);
        lost.found("n");
        assert_eq!(lost.left("n", at(2000)), Some(QUARANTINE));
    }

    #[test]
    fn of_too_many_pods_that_have_ended_the_evicted_and_the_oldest_go() {
        let mut evicted = Pod::test("evicted").created_at(9).phase("Failed");
        evicted.status.as_mut().unwrap().reason = Some("Evicted".into());
        let old = |name: &str, second| Pod::test(name).created_at(second).phase("Succeeded");
        let all = [old("b", 2), evicted, old("a", 1), old("c", 3)].map(Arc::new).to_vec();
        let names = |most| -> Vec<String> {
            surplus(all.clone(), most).iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
        };
        assert_eq!(names(2), ["evicted", "a"]);
        assert!(names(4).is_empty());
    }
}
