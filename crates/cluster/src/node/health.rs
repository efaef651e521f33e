//! The health of simulated nodes: one that is told to be down is noticed, marked and tainted; one that comes back is
//! opened again.
//!
//! A node is told by its annotation `windlass.dev/simulate`: `down`, `memory-pressure`, `disk-pressure` or
//! `pid-pressure`. Without it the node is well.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Action, Context, Controller, Event, ObjectKey, Predicate, Reconciler, Watch,
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::{Node, NodeCondition, Pod, Taint},
        apimachinery::pkg::apis::meta::v1::Time,
    },
    rbac,
};

use super::{SIMULATED, Timing, behaviour::SIMULATE};
use crate::pods;

/// Pods by the node that they are on.
const ON_NODE: &str = "node-health";

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The troubles that a node can have, besides being down: its annotation, its condition, and its taint.
const PRESSURES: [(&str, &str, &str); 3] = [
    ("memory-pressure", "MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("disk-pressure", "DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("pid-pressure", "PIDPressure", "node.kubernetes.io/pid-pressure"),
];

/// What a node is told to simulate.
pub(super) fn trouble(node: &Node) -> Option<&str> {
    node.metadata.annotations.as_ref()?.get(SIMULATE).map(String::as_str)
}

/// Whether the node does nothing at all.
pub(crate) fn is_down(node: &Node) -> bool {
    trouble(node) == Some("down")
}

fn is_simulated(node: &Node) -> bool {
    node.metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(SIMULATED))
        .is_some_and(|value| value == "true")
}

/// The controller, ready for an operator.
pub(crate) fn controller(timing: Timing) -> Controller<Health> {
    Controller::new(Health { timing, down_since: Mutex::default() })
        .name("node-lifecycle-controller")
        .core_events("node-controller")
        .filter(Predicate::new(|old: &Node, new: &Node| {
            trouble(old) != trouble(new) || old.spec != new.spec || ready(old) != ready(new)
        }))
        .reads_with(Watch::<Pod>::new())
        .index::<Pod>(ON_NODE, |pod| pods::node(pod).map(str::to_owned).into_iter().collect())
        .permits([rbac::rule("", ["pods/status"], ["patch"])])
}

fn ready(node: &Node) -> Option<&NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == "Ready")
}

/// Watches over the nodes.
pub(crate) struct Health {
    timing: Timing,
    /// Since when nodes are down that nobody has noticed yet.
    down_since: Mutex<BTreeMap<ObjectKey, Timestamp>>,
}

impl Reconciler for Health {
    type Resource = Node;
    type Error = windlass::Error;

    async fn reconcile(&self, node: Arc<Node>, ctx: &Context<Node>) -> Result<Action, windlass::Error> {
        // A node without conditions is about to write them itself.
        let registered = ready(&node).is_some();
        if !is_simulated(&node) || !registered || pods::is_terminating(&node.metadata) {
            return Ok(Action::await_change());
        }
        let down = is_down(&node);
        if let Some(left) = self.unnoticed(ctx.key(), down, ctx.now()) {
            return Ok(Action::requeue(left));
        }
        let was_ready = ready(&node).is_some_and(|condition| condition.status == "True");
        crate::retry_conflicts(
            Box::pin(mark(&node, down, was_ready, ctx)).await.map(|()| Action::await_change()),
        )
    }
}

impl Health {
    /// How long until it is noticed that a node is down; `None` if it was, or if the node is well.
    fn unnoticed(&self, node: &ObjectKey, down: bool, now: Timestamp) -> Option<Duration> {
        let mut since = self.down_since.lock().unwrap_or_else(PoisonError::into_inner);
        if !down {
            since.remove(node);
            return None;
        }
        let start = *since.entry(node.clone()).or_insert(now);
        let passed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
        self.timing.unreachable.checked_sub(passed).filter(|left| *left > Duration::ZERO)
    }
}

async fn mark(node: &Node, down: bool, was_ready: bool, ctx: &Context<Node>) -> windlass::Result<()> {
    let mut status = node.status.clone().unwrap_or_default();
    let old = status.conditions.clone().unwrap_or_default();
    status.conditions = Some(conditions(&old, trouble(node), ctx.now()));
    let name = ctx.key().name();
    if status.conditions.as_ref() != Some(&old) {
        ctx.patch_status(node, &status).await?;
        if was_ready && down {
            let note = format!("Node {name} status is now: NodeNotReady");
            ctx.event(Event::normal("NodeNotReady", note).action("RecordNodeEvent"));
        } else if !was_ready && !down {
            let note = format!("Node {name} status is now: NodeReady");
            ctx.event(Event::normal("NodeReady", note).action("RecordNodeEvent"));
        }
    }
    let node = ctx.get::<Node>(None, name)?.unwrap_or_else(|| Arc::new(node.clone()));
    let current = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted = taints(&current, trouble(&node), ctx.now());
    if wanted != current {
        let taints = Some(wanted).filter(|taints| !taints.is_empty());
        ctx.modify(&*node, |node| node.spec.get_or_insert_default().taints = taints).await?;
    }
    if down {
        for pod in ctx.indexed::<Pod>(ON_NODE, name)? {
            mark_unready(&pod, ctx).await?;
        }
    }
    Ok(())
}

/// The conditions of a node with its trouble. Nobody knows anything about a node that is down. Those of others stay.
fn conditions(old: &[NodeCondition], trouble: Option<&str>, now: Timestamp) -> Vec<NodeCondition> {
    let well = super::conditions(now);
    let wanted = well.into_iter().map(|mut condition| {
        let pressure =
            PRESSURES.iter().find(|(name, type_, _)| Some(*name) == trouble && *type_ == condition.type_);
        if trouble == Some("down") {
            condition.status = "Unknown".into();
            condition.reason = Some("NodeStatusUnknown".into());
            condition.message = Some("Kubelet stopped posting node status.".into());
        } else if pressure.is_some() {
            condition.status = "True".into();
            condition.reason = Some(format!("KubeletHas{}", condition.type_));
            condition.message = Some("simulated by annotation windlass.dev/simulate".into());
        }
        // What is as it was keeps its times: an idle node is not written.
        let same = old.iter().find(|old| {
            (&old.type_, &old.status, &old.reason, &old.message)
                == (&condition.type_, &condition.status, &condition.reason, &condition.message)
        });
        same.cloned().unwrap_or(condition)
    });
    let mut all: Vec<NodeCondition> = wanted.collect();
    let others = old.iter().filter(|old| !all.iter().any(|own| own.type_ == old.type_)).cloned();
    let others: Vec<NodeCondition> = others.collect();
    all.extend(others);
    all
}

/// The taints of a node with its trouble. Those of others stay.
fn taints(current: &[Taint], trouble: Option<&str>, now: Timestamp) -> Vec<Taint> {
    let taint = |key: &str, effect: &str| Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        time_added: (effect == "NoExecute").then_some(Time(now)),
        value: None,
    };
    let wanted: Vec<Taint> = match trouble {
        Some("down") => vec![taint(UNREACHABLE, "NoSchedule"), taint(UNREACHABLE, "NoExecute")],
        other => PRESSURES
            .iter()
            .filter(|(name, ..)| Some(*name) == other)
            .map(|(_, _, key)| taint(key, "NoSchedule"))
            .collect(),
    };
    let own = |taint: &Taint| taint.key == UNREACHABLE || PRESSURES.iter().any(|(.., key)| *key == taint.key);
    let is_wanted =
        |taint: &Taint| wanted.iter().any(|new| (&new.key, &new.effect) == (&taint.key, &taint.effect));
    let mut all: Vec<Taint> =
        current.iter().filter(|taint| !own(taint) || is_wanted(taint)).cloned().collect();
    for taint in wanted {
        if !all.iter().any(|old| (&old.key, &old.effect) == (&taint.key, &taint.effect)) {
            all.push(taint);
        }
    }
    all
}

/// Nobody knows whether a Pod on a node that is down still serves.
async fn mark_unready(pod: &Pod, ctx: &Context<Node>) -> windlass::Result<()> {
    if !pods::is_ready(pod) {
        return Ok(());
    }
    let mut status = pod.status.clone().unwrap_or_default();
    for condition in status.conditions.iter_mut().flatten().filter(|condition| condition.type_ == pods::READY)
    {
        condition.status = "False".into();
        condition.last_transition_time = Some(Time(ctx.now()));
    }
    match ctx.patch_status(pod, &status).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => {
            let event = Event::warning("NodeNotReady", "Node is not ready").action("RecordPodEvent");
            ctx.event_about(pod, event);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::at;

    #[test]
    fn a_node_that_is_down_is_unknown_and_tainted_until_it_is_back() {
        let well = super::super::conditions(at(1));
        let unknown = conditions(&well, Some("down"), at(2));
        assert!(unknown.iter().all(|condition| condition.status == "Unknown"));
        assert_eq!(conditions(&well, None, at(2)), well, "a node that is well is not written");
        let foreign = NodeCondition {
            type_: "KernelDeadlock".into(),
            status: "False".into(),
            ..NodeCondition::default()
        };
        let more: Vec<_> = well.iter().cloned().chain([foreign.clone()]).collect();
        assert!(conditions(&more, Some("down"), at(2)).contains(&foreign), "others' conditions stay");
        let gpu = Taint { key: "gpu".into(), effect: "NoSchedule".into(), ..Taint::default() };
        let down = taints(std::slice::from_ref(&gpu), Some("down"), at(2));
        assert_eq!(down.len(), 3);
        assert_eq!(taints(&down, Some("down"), at(9)), down, "the time of a taint stays");
        assert_eq!(taints(&down, None, at(3)), [gpu]);
    }

    #[test]
    fn pressure_is_a_condition_and_a_taint() {
        let well = super::super::conditions(at(1));
        let pressed = conditions(&well, Some("memory-pressure"), at(2));
        let changed: Vec<_> =
            pressed.iter().filter(|c| c.status == "True").map(|c| c.type_.as_str()).collect();
        assert_eq!(changed, ["MemoryPressure", "Ready"]);
        assert_eq!(taints(&[], Some("memory-pressure"), at(2))[0].key, "node.kubernetes.io/memory-pressure");
    }
}
