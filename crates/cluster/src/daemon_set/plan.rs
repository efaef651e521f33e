//! What to create and delete, for every node on its own and then for an update. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

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
    pub(super) nodes: Vec<Place>,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
    /// Nodes on which daemons fail, and for how long none is tried there again.
    pub(super) resting: BTreeMap<String, Duration>,
}

/// A node, and what it means to the daemons.
pub(super) struct Place {
    name: String,
    /// Whether a daemon may start here.
    pub(super) may_start: bool,
    /// Whether one that is here may stay.
    may_stay: bool,
}

impl Place {
    pub(super) fn new(spec: &DaemonSetSpec, node: &Node) -> Self {
        let (may_start, may_stay) = placement::allows(spec, node);
        Self { name: node.metadata.name.clone().unwrap_or_default(), may_start, may_stay }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Arc<Pod>>,
    pub(super) notes: Vec<Event>,
    /// The nodes where a daemon has failed.
    pub(super) failed: Vec<String>,
    /// When to look again.
    pub(super) next: Option<Duration>,
}

/// The hash of the template that a Pod was made from.
pub(super) fn hash(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(history::HASH)).map_or("", String::as_str)
}

/// The Pods of every node.
type ByNode<'a> = BTreeMap<&'a str, Vec<Arc<Pod>>>;

impl Scene<'_> {
    /// The Pods of every node, the oldest first. Those that have ended and are being deleted are nobody's business: only
    /// finalizers keep them.
    pub(super) fn by_node(&self) -> ByNode<'_> {
        let mut by_node: ByNode<'_> = BTreeMap::new();
        let gone = |pod: &Pod| pods::is_finished(pod) && pods::is_terminating(&pod.metadata);
        for pod in self.pods.iter().filter(|pod| !gone(pod)) {
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

    /// How many nodes should have a daemon.
    fn desired(&self) -> i32 {
        i32::try_from(self.nodes.iter().filter(|place| place.may_start).count()).unwrap_or(i32::MAX)
    }

    fn rolling(&self) -> Option<RollingUpdateDaemonSet> {
        let strategy = self.spec.update_strategy.clone().unwrap_or_default();
        (strategy.type_.as_deref() != Some("OnDelete")).then(|| strategy.rolling_update.unwrap_or_default())
    }

    fn share(&self, value: Option<&IntOrString>, default: i32) -> i32 {
        value.map_or(default, |value| amount::rounded_up(value, self.desired()))
    }

    fn max_surge(&self) -> i32 {
        self.rolling().map_or(0, |rolling| self.share(rolling.max_surge.as_ref(), 0))
    }
}

/// The whole plan. An update moves only where there is nothing else to do.
pub(super) fn plan(scene: &Scene<'_>) -> Plan {
    let mut plan = Plan::default();
    let by_node = scene.by_node();
    let surges = scene.max_surge() > 0;
    for place in &scene.nodes {
        let there = by_node.get(place.name()).map(Vec::as_slice).unwrap_or_default();
        keep(scene, place, there, surges, &mut plan);
    }
    plan.delete.extend(lost(scene, &by_node));
    if plan.create.is_empty() && plan.delete.is_empty() && scene.rolling().is_some() {
        if surges { surge(scene, &by_node, &mut plan) } else { replace(scene, &by_node, &mut plan) }
    }
    plan
}

/// Pods that wait for a node which is gone: no scheduler can help them.
fn lost(scene: &Scene<'_>, by_node: &ByNode<'_>) -> Vec<Arc<Pod>> {
    let known: BTreeSet<&str> = scene.nodes.iter().map(Place::name).collect();
    let waits = |pod: &&Arc<Pod>| pods::node(pod).is_none() && !pods::is_terminating(&pod.metadata);
    let unknown = by_node.iter().filter(|(node, _)| !known.contains(**node));
    unknown.flat_map(|(_, pods)| pods.iter().filter(waits).cloned()).collect()
}

/// One node: a daemon where it belongs, and none where it does not.
fn keep(scene: &Scene<'_>, place: &Place, there: &[Arc<Pod>], surges: bool, plan: &mut Plan) {
    let name = place.name();
    let going = |pod: &&Arc<Pod>| pods::is_terminating(&pod.metadata);
    if !place.may_stay {
        plan.delete.extend(there.iter().filter(|pod| !going(pod)).cloned());
        return;
    }
    if there.is_empty() {
        plan.create.extend(place.may_start.then(|| name.to_owned()));
        return;
    }
    let mut running = Vec::new();
    for pod in there.iter().filter(|pod| !going(pod)) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let whose = format!("{}/{}", text(&pod.metadata.namespace), text(&pod.metadata.name));
        match pods::phase(pod) {
            "Failed" => {
                if let Some(left) = scene.resting.get(name) {
                    plan.next = Some(plan.next.map_or(*left, |next| next.min(*left)));
                    continue;
                }
                let note = format!("Found failed daemon pod {whose} on node {name}, will try to kill it");
                plan.notes.push(Event::warning("FailedDaemonPod", note).action("DeletePod"));
                plan.delete.push(pod.clone());
                plan.failed.push(name.to_owned());
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
    if !surges {
        plan.delete.extend(running.into_iter().skip(1));
    } else if running.is_empty() {
        plan.create.extend(place.may_start.then(|| name.to_owned()));
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

/// The new Pod of a node and the old one, as far as they are not going.
fn pair<'a>(scene: &Scene<'_>, all: &'a [Arc<Pod>]) -> (Option<&'a Arc<Pod>>, Option<&'a Arc<Pod>>) {
    let active = || all.iter().filter(|pod| !pods::is_terminating(&pod.metadata));
    (active().find(|pod| hash(pod) == scene.hash), active().find(|pod| hash(pod) != scene.hash))
}

/// An update that ends old Pods before new ones are made.
fn replace(scene: &Scene<'_>, by_node: &ByNode<'_>, plan: &mut Plan) {
    let rolling = scene.rolling().unwrap_or_default();
    let most = scene.share(rolling.max_unavailable.as_ref(), 1);
    let mut down = 0;
    let mut candidates = Vec::new();
    for all in scene.nodes.iter().filter_map(|place| by_node.get(place.name())) {
        match pair(scene, all) {
            (Some(new), _) => down += i32::from(!scene.is_available(new)),
            (None, Some(old)) if scene.is_available(old) => candidates.push(old.clone()),
            // One that does not serve anyway is replaced at once.
            (None, Some(old)) => {
                plan.delete.push(old.clone());
                down += 1;
            }
            (None, None) => down += 1,
        }
    }
    let room = usize::try_from(most.saturating_sub(down)).unwrap_or(0);
    plan.delete.extend(candidates.into_iter().take(room));
}

/// An update that makes new Pods beside the old ones. Where no new one may start, the old one goes as soon as there are
/// enough others.
fn surge(scene: &Scene<'_>, by_node: &ByNode<'_>, plan: &mut Plan) {
    let (mut surging, mut available) = (0, 0);
    let (mut candidates, mut unwanted) = (Vec::new(), Vec::new());
    for place in &scene.nodes {
        let Some(all) = by_node.get(place.name()) else { continue };
        let (new, old) = pair(scene, all);
        available += i32::from(old.or(new).is_some_and(|pod| scene.is_available(pod)));
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) if !place.may_start => {
                if scene.is_available(old) {
                    unwanted.push(old.clone());
                } else {
                    plan.delete.push(old.clone());
                }
            }
            (None, Some(old)) if scene.is_available(old) => candidates.push(place.name().to_owned()),
            (None, Some(_)) => plan.create.push(place.name().to_owned()),
            (Some(new), Some(_)) if !scene.is_available(new) => surging += 1,
            (Some(_), Some(old)) => plan.delete.push(old.clone()),
        }
    }
    let number = |count: i32| usize::try_from(count).unwrap_or(0);
    plan.delete.extend(unwanted.into_iter().take(number(available - scene.desired())));
    let room = number(scene.max_surge().saturating_sub(surging));
    plan.create.extend(candidates.into_iter().take(room));
}

#[cfg(test)]
mod tests {
    use windlass::{
        k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::apis::meta::v1::Time},
        serde_json::{Value, from_value, json},
    };

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

    fn scene<'a>(spec: &'a DaemonSetSpec, nodes: &[Arc<Node>], pods: &'a [Arc<Pod>]) -> Scene<'a> {
        let nodes = nodes.iter().map(|node| Place::new(spec, node)).collect();
        Scene { spec, hash: "new", nodes, pods, now: at(100), resting: BTreeMap::new() }
    }

    fn planned(strategy: Value, count: usize, pods: &[Arc<Pod>]) -> (Vec<String>, Vec<String>) {
        let spec = from_value(json!({
            "selector": {}, "template": {"spec": {"containers": []}}, "updateStrategy": strategy
        }))
        .unwrap();
        let plan = plan(&scene(&spec, &nodes(count), pods));
        let deleted = plan.delete.iter().map(|pod| pod.metadata.name.clone().unwrap_or_default()).collect();
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

    #[test]
    fn a_failing_daemon_is_left_alone_for_a_while() {
        let spec: DaemonSetSpec =
            from_value(json!({"selector": {}, "template": {"spec": {"containers": []}}})).unwrap();
        let failed = [Arc::new(Pod::test("dead").on("n1").phase("Failed").labelled(history::HASH, "new"))];
        let mut scene = scene(&spec, &nodes(1), &failed);
        assert_eq!(plan(&scene).failed, ["n1"]);
        scene.resting.insert("n1".into(), Duration::from_secs(7));
        let rests = plan(&scene);
        assert!(rests.delete.is_empty() && rests.create.is_empty());
        assert_eq!(rests.next, Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_daemon_without_a_node_goes_and_one_that_only_finalizers_keep_is_replaced() {
        let waiting = Arc::new(placement::pod(&PodTemplateSpec::default(), "lost-", "gone"));
        assert_eq!(planned(json!({}), 1, &[daemon("n1", "new"), waiting]).1.len(), 1);
        let mut held = Pod::test("held").on("n1").phase("Failed");
        held.metadata.deletion_timestamp = Some(Time(at(1)));
        assert_eq!(planned(json!({}), 1, &[Arc::new(held)]), (vec!["n1".into()], vec![]));
    }

    /// Nodes that take no new Pods do not use up the surge, and give up their old Pods when there are enough others.
    #[test]
    fn a_surge_goes_on_beside_a_node_that_takes_no_new_pods() {
        let surge = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        let spec: DaemonSetSpec = from_value(json!({
            "selector": {}, "template": {"spec": {"containers": []}}, "updateStrategy": surge
        }))
        .unwrap();
        let mut nodes = nodes(3);
        let taint = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        nodes[0] =
            Arc::new(from_value(json!({"metadata": {"name": "n1"}, "spec": {"taints": taint}})).unwrap());
        let old = [daemon("n1", "old"), daemon("n2", "old"), daemon("n3", "old")];
        let plan = plan(&scene(&spec, &nodes, &old));
        assert_eq!(plan.create, ["n2"]);
        let gone: Vec<_> = plan.delete.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
        assert_eq!(gone, ["p-n1"]);
    }
}
