//! Pods on nodes with `NoExecute` taints that they do not tolerate, or no longer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reconciler, Watch,
    jiff::{SignedDuration, Timestamp},
    k8s_openapi::{
        api::core::v1::{Node, Pod, PodCondition, Taint, Toleration},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    rbac,
};

use crate::{pods, scheduler::taints};

/// Pods by the node that they are on.
const ON_NODE: &str = "taint-eviction-node";

const DISRUPTION: &str = "DisruptionTarget";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Evictions> {
    Controller::new(Evictions::default())
        .name("taint-eviction-controller")
        .core_events("taint-eviction-controller")
        .filter(Predicate::new(|old: &Pod, new: &Pod| {
            pods::node(old) != pods::node(new) || tolerations(old) != tolerations(new)
        }))
        .watches_with(
            Watch::<Node>::new().filter(Predicate::new(|old: &Node, new: &Node| taints(old) != taints(new))),
            |node: &Node, cache| {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let pods = cache.indexed::<Pod>(ON_NODE, name).unwrap_or_default();
                pods.iter().map(|pod| ObjectKey::of(&**pod)).collect()
            },
        )
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .permits([rbac::rule("", ["pods"], ["delete"])])
}

fn taints(node: &Node) -> Vec<Taint> {
    let all = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    all.filter(|taint| taint.effect == "NoExecute").cloned().collect()
}

/// Deletes Pods from nodes that they cannot stay on.
#[derive(Default)]
pub(crate) struct Evictions {
    /// When Pods go that may stay for some time: so long after they were first seen beside the taint, whatever the taint
    /// says of its own age, and whatever else happens to the node meanwhile.
    due: Mutex<BTreeMap<ObjectKey, (String, Timestamp)>>,
}

impl Evictions {
    /// How much longer a Pod stays; `None` for ever.
    fn left(&self, key: &ObjectKey, uid: &str, stay: Stay, now: Timestamp) -> Option<Duration> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let Stay::For(time) = stay else {
            due.remove(key);
            return (stay == Stay::Not).then_some(Duration::ZERO);
        };
        let end = now.saturating_add(time).unwrap_or(Timestamp::MAX);
        let entry = due.entry(key.clone()).or_insert_with(|| (uid.to_owned(), end));
        if entry.0 != uid {
            *entry = (uid.to_owned(), end);
        }
        Some(Duration::try_from(entry.1.duration_since(now)).unwrap_or_default())
    }

    fn forget(&self, key: &ObjectKey) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Reconciler for Evictions {
    type Resource = Pod;
    type Error = windlass::Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, windlass::Error> {
        let node = pods::node(&pod).filter(|_| pods::is_active(&pod));
        let node = node.map(|node| ctx.get::<Node>(None, node)).transpose()?.flatten();
        let Some(node) = node else {
            self.forget(ctx.key());
            return Ok(Action::await_change());
        };
        match self.left(ctx.key(), pods::uid(&pod), stay(&pod, &taints(&node)), ctx.now()) {
            None => Ok(Action::await_change()),
            Some(left) if left > Duration::ZERO => Ok(Action::requeue(left)),
            Some(_) => evict(&pod, ctx).await.map(|()| Action::await_change()),
        }
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<Pod>) -> Result<(), windlass::Error> {
        self.forget(key);
        Ok(())
    }
}

/// Whether a Pod may be on a node with some taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    ForEver,
    For(SignedDuration),
    Not,
}

fn stay(pod: &Pod, taints: &[Taint]) -> Stay {
    let tolerations = tolerations(pod);
    let mut least: Option<i64> = None;
    for taint in taints {
        let fitting = tolerations.iter().filter(|one| taints::tolerates(std::slice::from_ref(one), taint));
        let times: Vec<Option<i64>> = fitting.map(|toleration| toleration.toleration_seconds).collect();
        if times.is_empty() {
            return Stay::Not;
        }
        // The shortest of the tolerations that have a time; without any it is for ever.
        least = least.into_iter().chain(times.into_iter().flatten()).min();
    }
    least.map_or(Stay::ForEver, |seconds| Stay::For(SignedDuration::from_secs(seconds.max(0))))
}

fn tolerations(pod: &Pod) -> &[Toleration] {
    pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
}

async fn evict(pod: &Pod, ctx: &Context<Pod>) -> windlass::Result<()> {
    ctx.event(
        Event::normal("TaintManagerEviction", format!("Marking for deletion Pod {}", ctx.key()))
            .action("Evict"),
    );
    let mut status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != DISRUPTION);
    conditions.push(PodCondition {
        type_: DISRUPTION.into(),
        status: "True".into(),
        reason: Some("DeletionByTaintManager".into()),
        message: Some("Taint manager: deleting due to NoExecute taint".into()),
        last_transition_time: Some(Time(ctx.now())),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    });
    match ctx.patch_status(pod, &status).await {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    ctx.delete(pod).await
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn stay_with(tolerations: Value) -> Stay {
        let mut pod = Pod::test("p").on("n1");
        pod.spec.as_mut().unwrap().tolerations = from_value(tolerations).unwrap();
        let taint = |key: &str| Taint {
            key: key.into(),
            effect: "NoExecute".into(),
            time_added: Some(Time(at(100))),
            value: None,
        };
        stay(&pod, &[taint("k"), taint("l")])
    }

    #[test]
    fn a_toleration_may_have_an_end() {
        let all = json!({"operator": "Exists"});
        let limited = |seconds: i64| json!({"key": "k", "operator": "Exists", "tolerationSeconds": seconds});
        assert_eq!(stay_with(json!([])), Stay::Not);
        assert_eq!(stay_with(json!([limited(300)])), Stay::Not, "the other taint is not tolerated");
        assert_eq!(stay_with(json!([all])), Stay::ForEver);
        assert_eq!(stay_with(json!([all, limited(300)])), Stay::For(SignedDuration::from_mins(5)));
        assert_eq!(stay_with(json!([all, limited(-1)])), Stay::For(SignedDuration::ZERO));
        assert_eq!(
            stay_with(json!([all, limited(i64::MAX)])),
            Stay::For(SignedDuration::from_secs(i64::MAX))
        );
    }

    #[test]
    fn the_time_runs_from_the_first_sight_of_a_pod() {
        let (evictions, key) = (Evictions::default(), ObjectKey::namespaced("shop", "p"));
        let minute = Stay::For(SignedDuration::from_mins(1));
        let left = |uid: &str, stay: Stay, second: i64| {
            evictions.left(&key, uid, stay, at(second)).map(|left| left.as_secs())
        };
        assert_eq!(left("a", minute, 1000), Some(60));
        assert_eq!(left("a", minute, 1040), Some(20), "it does not start anew");
        assert_eq!(left("b", minute, 1050), Some(60), "another Pod of the same name");
        assert_eq!(left("b", minute, 1110), Some(0));
        assert_eq!(left("b", Stay::ForEver, 1111), None);
        assert_eq!(left("b", minute, 1200), Some(60), "the taint was gone in between");
        assert_eq!(left("b", Stay::Not, 1201), Some(0));
        let ages = left("b", Stay::For(SignedDuration::from_secs(i64::MAX)), 1202);
        assert!(ages.is_some_and(|seconds| seconds > 1 << 36), "{ages:?}");
    }
}
