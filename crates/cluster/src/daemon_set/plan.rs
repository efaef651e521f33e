//! What to create and delete, for every node on its own and then for an update. Pure.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::{
    Event,
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            apps::v1::{DaemonSetSpec, RollingUpdateDaemonSet},
            core::v1::{Node, Pod},
        },
        apimachinery::pkg::util::intstr::IntOrString,
    },
};

use super::placement;
use crate::{amount, history, pods};

/// What the plan depends on.
pub(super) struct Scene<'a> {
    pub(super) spec: &'a DaemonSetSpec,
    pub(super) hash: &'a str,
    pub(super) nodes: &'a [Arc<Node>],
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Arc<Pod>>,
    pub(super) notes: Vec<Event>,
}

/// The hash of the template that a Pod was made from.
pub(super) fn hash(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(history::HASH)).map_or("", String::as_str)
}

impl Scene<'_> {
    /// The Pods of every node, the oldest first.
    pub(super) fn by_node(&self) -> BTreeMap<&str, Vec<Arc<Pod>>> {
        let mut by_node: BTreeMap<&str, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in self.pods {
            if let Some(node) = placement::node(pod) {
                by_node.entry(node).or_default().push(pod.clone());
            }
        }
        let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        for pods in by_node.values_mut() {
            pods.sort_by_key(|pod| (pods::node(pod).is_none(), created(pod), pod.metadata.name.clone()));
        }
        by_node
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = self.spec.min_ready_seconds.unwrap_or(0);
        pods::available_in(pod, min_ready, self.now) == Some(Duration::ZERO)
    }

    fn rolling(&self) -> Option<RollingUpdateDaemonSet> {
        let strategy = self.spec.update_strategy.clone().unwrap_or_default();
        (strategy.type_.as_deref() != Some("OnDelete")).then(|| strategy.rolling_update.unwrap_or_default())
    }

    fn share(&self, value: Option<&IntOrString>, default: i32) -> i32 {
        let desired = self.nodes.iter().filter(|node| placement::allows(self.spec, node).0).count() as i32;
        value.map_or(default, |value| amount::rounded_up(value, desired))
    }

    fn max_surge(&self) -> i32 {
        self.rolling().map_or(0, |rolling| self.share(rolling.max_surge.as_ref(), 0))
    }
}

/// The whole plan. An update moves only where there is nothing else to do.
pub(super) fn plan(scene: &Scene<'_>) -> Plan {
    let mut plan = Plan::default();
    let by_node = scene.by_node();
    for node in scene.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        keep(scene, node, by_node.get(name).map(Vec::as_slice).unwrap_or_default(), &mut plan);
    }
    if plan.create.is_empty() && plan.delete.is_empty() && scene.rolling().is_some() {
        update(scene, &by_node, &mut plan);
    }
    plan
}

/// One node: a daemon where it belongs, and none where it does not.
fn keep(scene: &Scene<'_>, node: &Node, there: &[Arc<Pod>], plan: &mut Plan) {
    let name = node.metadata.name.clone().unwrap_or_default();
    let (may_start, may_stay) = placement::allows(scene.spec, node);
    let going = |pod: &&Arc<Pod>| pods::is_terminating(&pod.metadata);
    if !may_stay {
        plan.delete.extend(there.iter().filter(|pod| !going(pod)).cloned());
        return;
    }
    if there.is_empty() {
        plan.create.extend(may_start.then_some(name));
        return;
    }
    let mut running = Vec::new();
    for pod in there.iter().filter(|pod| !going(pod)) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let whose = format!("{}/{}", text(&pod.metadata.namespace), text(&pod.metadata.name));
        match pods::phase(pod) {
            "Failed" => {
                let note = format!("Found failed daemon pod {whose} on node {name}, will try to kill it");
                plan.notes.push(Event::warning("FailedDaemonPod", note).action("DeletePod"));
                plan.delete.push(pod.clone());
            }
            "Succeeded" => {
                let note =
                    format!("Found succeeded daemon pod {whose} on node {name}, will try to delete it");
                plan.notes.push(Event::normal("SucceededDaemonPod", note).action("DeletePod"));
                plan.delete.push(pod.clone());
            }
            _ => running.push(pod.clone()),
        }
    }
    if scene.max_surge() == 0 {
        plan.delete.extend(running.into_iter().skip(1));
    } else if running.is_empty() {
        plan.create.extend(may_start.then_some(name));
    } else {
        keep_two(scene, &running, plan);
    }
}

/// Where Pods surge, an old one and a new one may stand side by side until the new one serves.
fn keep_two(scene: &Scene<'_>, running: &[Arc<Pod>], plan: &mut Plan) {
    let (new, old): (Vec<_>, Vec<_>) = running.iter().cloned().partition(|pod| hash(pod) == scene.hash);
    plan.delete.extend(new.iter().skip(1).chain(old.iter().skip(1)).cloned());
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!pods::is_ready(old) || scene.is_available(new))
    {
        plan.delete.push(old.clone());
    }
}

fn update(scene: &Scene<'_>, by_node: &BTreeMap<&str, Vec<Arc<Pod>>>, plan: &mut Plan) {
    let rolling = scene.rolling().unwrap_or_default();
    let (surge, unavailable) = (scene.max_surge(), scene.share(rolling.max_unavailable.as_ref(), 1));
    let mut down = 0;
    let mut surging = 0;
    let mut candidates = Vec::new();
    for (node, all) in by_node {
        let active: Vec<_> = all.iter().filter(|pod| !pods::is_terminating(&pod.metadata)).collect();
        let new = active.iter().find(|pod| hash(pod) == scene.hash);
        let old = active.iter().find(|pod| hash(pod) != scene.hash);
        match (new, old) {
            (Some(new), None) => down += i32::from(!scene.is_available(new)),
            (None, Some(old)) if scene.is_available(old) => {
                candidates.push(((*node).to_owned(), (*old).clone()));
            }
            // One that does not serve anyway is replaced at once.
            (None, Some(old)) if surge == 0 => {
                plan.delete.push((*old).clone());
                down += 1;
            }
            (None, Some(_)) => plan.create.push((*node).to_owned()),
            (Some(_), Some(_)) => surging += 1,
            (None, None) => down += 1,
        }
    }
    if surge > 0 {
        let room = usize::try_from(surge.saturating_sub(surging)).unwrap_or(0);
        plan.create.extend(candidates.into_iter().take(room).map(|(node, _)| node));
    } else {
        let room = usize::try_from(unavailable.saturating_sub(down)).unwrap_or(0);
        plan.delete.extend(candidates.into_iter().take(room).map(|(_, pod)| pod));
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;
    use crate::pods::tests::{PodFixture, at};

    fn nodes(count: usize) -> Vec<Arc<Node>> {
        let node = |index| Arc::new(from_value(json!({"metadata": {"name": format!("n{index}")}})).unwrap());
        (1..=count).map(node).collect()
    }

    fn daemon(node: &str, hash: &str) -> Arc<Pod> {
        Arc::new(
            Pod::test(&format!("p-{node}"))
                .on(node)
                .phase("Running")
                .ready_at(1)
                .labelled(history::HASH, hash),
        )
    }

    fn planned(strategy: Value, count: usize, pods: &[Arc<Pod>]) -> (Vec<String>, Vec<String>) {
        let spec = from_value(json!({
            "selector": {}, "template": {"spec": {"containers": []}}, "updateStrategy": strategy
        }))
        .unwrap();
        let nodes = nodes(count);
        let plan = plan(&Scene { spec: &spec, hash: "new", nodes: &nodes, pods, now: at(100) });
        let deleted = plan.delete.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
        (plan.create, deleted)
    }

    #[test]
    fn every_node_gets_one() {
        let rolling = json!({"type": "RollingUpdate"});
        assert_eq!(planned(rolling.clone(), 2, &[daemon("n1", "new")]), (vec!["n2".into()], vec![]));
        let twice = [daemon("n1", "new"), Arc::new(Pod::test("second").on("n1").phase("Running"))];
        assert_eq!(planned(rolling, 1, &twice), (vec![], vec!["second".into()]));
    }

    #[test]
    fn an_update_goes_as_far_as_it_may() {
        let old = [daemon("n1", "old"), daemon("n2", "old"), daemon("n3", "old")];
        let rolling = |most: i32| json!({"rollingUpdate": {"maxUnavailable": most}});
        assert_eq!(planned(rolling(1), 3, &old).1, ["p-n1"]);
        assert_eq!(planned(rolling(2), 3, &old).1, ["p-n1", "p-n2"]);
        assert_eq!(planned(json!({"type": "OnDelete"}), 3, &old), (vec![], vec![]));
        let surge = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        assert_eq!(planned(surge, 3, &old), (vec!["n1".into()], vec![]));
    }

    #[test]
    fn a_failed_daemon_is_replaced() {
        let failed = [Arc::new(Pod::test("dead").on("n1").phase("Failed"))];
        assert_eq!(planned(json!({}), 1, &failed).1, ["dead"]);
    }
}
