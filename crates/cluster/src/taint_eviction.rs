//! Pods on nodes with `NoExecute` taints that they do not tolerate, or no longer.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reconciler, Watch,
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{Node, Pod, PodCondition, Taint},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    rbac,
};

use crate::{pods, scheduler::fit};

/// Pods by the node that they are on.
const ON_NODE: &str = "taint-eviction-node";

const DISRUPTION: &str = "DisruptionTarget";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Evictions> {
    Controller::new(Evictions)
        .name("taint-eviction-controller")
        .filter(Predicate::new(|old: &Pod, new: &Pod| pods::node(old) != pods::node(new)))
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
pub(crate) struct Evictions;

impl Reconciler for Evictions {
    type Resource = Pod;
    type Error = windlass::Error;

    async fn reconcile(&self, pod: Arc<Pod>, ctx: &Context<Pod>) -> Result<Action, windlass::Error> {
        let Some(node) = pods::node(&pod).filter(|_| pods::is_active(&pod)) else {
            return Ok(Action::await_change());
        };
        let Some(node) = ctx.get::<Node>(None, node)? else { return Ok(Action::await_change()) };
        match left(&pod, &taints(&node), ctx.now()) {
            None => Ok(Action::await_change()),
            Some(left) if left > Duration::ZERO => Ok(Action::requeue(left)),
            Some(_) => evict(&pod, ctx).await.map(|()| Action::await_change()),
        }
    }
}

/// How long the Pod may stay; `None` for ever.
fn left(pod: &Pod, taints: &[Taint], now: Timestamp) -> Option<Duration> {
    let nothing = Vec::new();
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref()).unwrap_or(&nothing);
    let mut least: Option<Duration> = None;
    for taint in taints {
        let fitting = tolerations.iter().filter(|one| fit::tolerates(std::slice::from_ref(one), taint));
        let times: Vec<Option<i64>> = fitting.map(|toleration| toleration.toleration_seconds).collect();
        if times.is_empty() {
            return Some(Duration::ZERO);
        }
        // The shortest of the tolerations that have a time; without any it is for ever.
        if let Some(seconds) = times.into_iter().flatten().min() {
            let since = taint.time_added.as_ref().map_or(now, |time| time.0);
            let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            let wait = Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).saturating_sub(passed);
            least = Some(least.map_or(wait, |least| least.min(wait)));
        }
    }
    least
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

    fn stay(tolerations: Value, second: i64) -> Option<u64> {
        let mut pod = Pod::test("p").on("n1");
        pod.spec.as_mut().unwrap().tolerations = from_value(tolerations).unwrap();
        let taint = Taint {
            key: "k".into(),
            effect: "NoExecute".into(),
            time_added: Some(Time(at(100))),
            value: None,
        };
        left(&pod, &[taint], at(second)).map(|left| left.as_secs())
    }

    #[test]
    fn a_toleration_may_have_an_end() {
        assert_eq!(stay(json!([]), 100), Some(0));
        assert_eq!(stay(json!([{"key": "k", "operator": "Exists"}]), 100), None);
        let five_minutes = json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}]);
        assert_eq!(stay(five_minutes.clone(), 160), Some(240));
        assert_eq!(stay(five_minutes, 500), Some(0));
    }
}
