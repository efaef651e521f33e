//! The rules one by one, and all of them against a second opinion that counts nothing in advance.

use std::sync::Arc;

use proptest::prelude::*;
use windlass::{
    k8s_openapi::api::core::v1::{Node, Pod},
    serde_json::{Value, from_value, json},
};

use super::{
    super::{
        decision::{Decision, Nominated, Scene},
        host::{Host, Resident},
        scores::Siblings,
        terms::Namespaces,
    },
    *,
};

pub(crate) fn node(name: &str, labels: Value, spec: Value) -> Arc<Node> {
    let mut all = json!({"kubernetes.io/hostname": name});
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    Arc::new(
        from_value(json!({
            "metadata": {"name": name, "labels": all}, "spec": spec,
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        }))
        .unwrap(),
    )
}

pub(crate) fn pod(name: &str, labels: Value, spec: Value) -> Arc<Pod> {
    let mut all = json!({"containers": []});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    Arc::new(
        from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels}, "spec": all,
        }))
        .unwrap(),
    )
}

pub(crate) fn host(node: Arc<Node>, pods: &[Arc<Pod>]) -> Host {
    Host::new(node, pods.iter().map(|pod| Arc::new(Resident::new(pod.clone()))).collect())
}

fn decide(pod: &Arc<Pod>, hosts: &[Host]) -> Decision {
    let namespaces = Namespaces::new();
    let incoming = Incoming::new(pod, hosts, &namespaces, Needs::default());
    let nominated = Nominated::default();
    let siblings = Siblings::new();
    Scene { incoming, hosts, namespaces: &namespaces, nominated, siblings, budgets: &[] }.decide()
}

fn refusal(pod: &Arc<Pod>, host: &Host) -> Vec<String> {
    let incoming = Incoming::new(pod, std::slice::from_ref(host), &Namespaces::new(), Needs::default());
    incoming.check(host).err().map(|refusal| refusal.reasons).unwrap_or_default()
}

fn asking(amounts: Value) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": amounts}}]})
}

#[test]
fn every_resource_that_is_short_is_told() {
    let taken = pod("taken", json!({}), asking(json!({"cpu": "3", "memory": "8Gi"})));
    let full = host(node("n", json!({}), json!({})), &[taken]);
    let wants = pod("p", json!({}), asking(json!({"cpu": "2", "memory": "1Gi"})));
    assert_eq!(refusal(&wants, &full), ["Insufficient cpu", "Insufficient memory"]);
    let gpu = pod("p", json!({}), asking(json!({"gpu.example/a": "1"})));
    assert_eq!(refusal(&gpu, &full), ["Insufficient gpu.example/a"]);
    assert!(refusal(&pod("p", json!({}), asking(json!({"cpu": "1"}))), &full).is_empty());
}

#[test]
fn taints_and_cordons_need_tolerations() {
    let taint = json!({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]});
    let tainted = host(node("n", json!({}), taint), &[]);
    assert_eq!(refusal(&pod("p", json!({}), json!({})), &tainted), ["node(s) had untolerated taint(s)"]);
    for toleration in [
        json!({"key": "gpu", "operator": "Exists"}),
        json!({"key": "gpu", "value": "yes", "effect": "NoSchedule"}),
        json!({"operator": "Exists"}),
    ] {
        assert!(refusal(&pod("p", json!({}), json!({"tolerations": [toleration]})), &tainted).is_empty());
    }
    let cordoned = host(node("n", json!({}), json!({"unschedulable": true})), &[]);
    assert_eq!(refusal(&pod("p", json!({}), json!({})), &cordoned), ["node(s) were unschedulable"]);
}

#[test]
fn a_pod_that_names_its_node_is_told_so_by_the_others() {
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]});
    let named = json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}});
    let here = host(node("n", json!({}), json!({})), &[]);
    assert_eq!(
        refusal(&pod("p", json!({}), named), &here),
        ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]
    );
}

/// Terms that mean Pods with a label.
fn term(topology: &str, app: &str) -> Value {
    json!([{"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}])
}

#[test]
fn anti_affinity_holds_in_both_directions() {
    let apart = |app: &str| {
        json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": term("kubernetes.io/hostname", app)}}})
    };
    let loner = pod("loner", json!({"app": "a"}), apart("a"));
    let beside_loner = host(node("n", json!({}), json!({})), std::slice::from_ref(&loner));
    let plain = pod("plain", json!({"app": "a"}), json!({}));
    assert_eq!(refusal(&plain, &beside_loner), ["node(s) didn't satisfy existing pods anti-affinity rules"]);
    let beside_plain = host(node("n", json!({}), json!({})), &[plain]);
    assert_eq!(refusal(&loner, &beside_plain), ["node(s) didn't match pod anti-affinity rules"]);
    assert!(refusal(&pod("b", json!({"app": "b"}), json!({})), &beside_loner).is_empty());
}

#[test]
fn the_first_of_a_kind_needs_no_company_of_its_own() {
    let near = |app: &str| {
        json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": term("zone", app)}}})
    };
    let empty = host(node("n", json!({"zone": "east"}), json!({})), &[]);
    assert!(refusal(&pod("p", json!({"app": "a"}), near("a")), &empty).is_empty());
    assert_eq!(
        refusal(&pod("p", json!({"app": "b"}), near("a")), &empty),
        ["node(s) didn't match pod affinity rules"]
    );
    let nowhere = host(node("n", json!({}), json!({})), &[]);
    assert!(!refusal(&pod("p", json!({"app": "a"}), near("a")), &nowhere).is_empty());
}

#[test]
fn constraints_that_must_hold_keep_the_skew() {
    let spread = |more: Value| {
        let mut constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}}});
        constraint.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pod("p", json!({"app": "a", "hash": "1"}), json!({"topologySpreadConstraints": [constraint]}))
    };
    let old = pod("old", json!({"app": "a", "hash": "0"}), json!({}));
    let east = host(node("e", json!({"zone": "east"}), json!({})), &[old]);
    let taint = json!({"taints": [{"key": "t", "effect": "NoSchedule"}]});
    let west = host(node("w", json!({"zone": "west"}), taint), &[]);
    let hosts = [east, west];
    let fits = |pod: &Arc<Pod>| {
        Incoming::new(pod, &hosts, &Namespaces::new(), Needs::default()).check(&hosts[0]).is_ok()
    };
    assert!(!fits(&spread(json!({}))));
    assert!(fits(&spread(json!({"maxSkew": 2}))));
    // A node that repels the Pod does not count, if it is asked for.
    assert!(fits(&spread(json!({"nodeTaintsPolicy": "Honor"}))));
    assert!(!fits(&spread(json!({"nodeTaintsPolicy": "Honor", "minDomains": 2}))));
    assert!(fits(&spread(json!({"matchLabelKeys": ["hash"]}))));
}

#[derive(Clone, Debug)]
struct Wish {
    app: &'static str,
    cpu: i32,
    near: Option<(&'static str, &'static str)>,
    apart: Option<(&'static str, &'static str)>,
    spread: Option<(&'static str, i32)>,
    tolerates: bool,
}

fn wish() -> impl Strategy<Value = Wish> {
    let app = || prop_oneof![Just("a"), Just("b")];
    let topology = || prop_oneof![Just("zone"), Just("kubernetes.io/hostname")];
    let term = || prop::option::weighted(0.4, (topology(), app()));
    (app(), 0..4, term(), term(), prop::option::weighted(0.3, (topology(), 1..3)), any::<bool>()).prop_map(
        |(app, cpu, near, apart, spread, tolerates)| Wish { app, cpu, near, apart, spread, tolerates },
    )
}

impl Wish {
    fn pod(&self, name: &str) -> Arc<Pod> {
        let mut spec = asking(json!({"cpu": self.cpu.to_string()}));
        if let Some((topology, app)) = self.near {
            spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                term(topology, app);
        }
        if let Some((topology, app)) = self.apart {
            spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                term(topology, app);
        }
        if let Some((topology, skew)) = self.spread {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": skew, "topologyKey": topology,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": self.app}}}]);
        }
        if self.tolerates {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        pod(name, json!({"app": self.app}), spec)
    }
}

#[derive(Clone, Debug)]
struct Place {
    zone: Option<&'static str>,
    tainted: bool,
    there: Vec<Wish>,
}

fn place() -> impl Strategy<Value = Place> {
    let zone = prop_oneof![Just(Some("east")), Just(Some("west")), Just(None)];
    (zone, prop::bool::weighted(0.2), prop::collection::vec(wish(), 0..3))
        .prop_map(|(zone, tainted, there)| Place { zone, tainted, there })
}

impl Place {
    fn label(&self, index: usize, topology: &str) -> Option<String> {
        if topology == "zone" { self.zone.map(str::to_owned) } else { Some(format!("n{index}")) }
    }

    fn host(&self, index: usize) -> Host {
        let labels = self.zone.map_or_else(|| json!({}), |zone| json!({"zone": zone}));
        let taints = if self.tainted { json!([{"key": "t", "effect": "NoSchedule"}]) } else { json!([]) };
        let there = self.there.iter().enumerate();
        let pods: Vec<_> = there.map(|(number, wish)| wish.pod(&format!("p{index}-{number}"))).collect();
        host(node(&format!("n{index}"), labels, json!({"taints": taints})), &pods)
    }
}

/// Whether a Pod may be on a node, straight from the rules as they are written down.
fn may(wish: &Wish, at: usize, places: &[Place]) -> bool {
    let here = &places[at];
    let others =
        || places.iter().enumerate().flat_map(|(i, place)| place.there.iter().map(move |one| (i, one)));
    let same = |i: usize, topology: &str| {
        let label = here.label(at, topology);
        label.is_some() && places[i].label(i, topology) == label
    };
    let cpu: i32 = here.there.iter().map(|one| one.cpu).sum();
    if here.tainted && !wish.tolerates || wish.cpu > 0 && cpu + wish.cpu > 4 {
        return false;
    }
    if let Some((topology, app)) = wish.near {
        let company = others().any(|(i, one)| one.app == app && same(i, topology));
        let anywhere = others().any(|(i, one)| one.app == app && places[i].label(i, topology).is_some());
        let first = !anywhere && wish.app == app && here.label(at, topology).is_some();
        if !company && !first {
            return false;
        }
    }
    if wish.apart.is_some_and(|(topology, app)| others().any(|(i, one)| one.app == app && same(i, topology)))
    {
        return false;
    }
    let repels = |(i, one): (usize, &Wish)| {
        one.apart.is_some_and(|(topology, app)| app == wish.app && same(i, topology))
    };
    if others().any(repels) {
        return false;
    }
    let Some((topology, skew)) = wish.spread else { return true };
    let Some(own) = here.label(at, topology) else { return false };
    let count = |value: &str| {
        others()
            .filter(|(i, one)| {
                one.app == wish.app && places[*i].label(*i, topology).as_deref() == Some(value)
            })
            .count()
    };
    let labels = places.iter().enumerate().filter_map(|(i, place)| place.label(i, topology));
    let least = labels.map(|value| count(&value)).min().unwrap_or(0);
    count(&own) + 1 - least <= usize::try_from(skew).unwrap()
}

proptest! {
    /// A Pod goes only where every rule allows it, and if any node will do it goes somewhere.
    #[test]
    fn a_placement_keeps_every_rule_and_is_found_if_there_is_one(
        places in prop::collection::vec(place(), 1..5), wish in wish(),
    ) {
        let hosts: Vec<Host> = places.iter().enumerate().map(|(index, place)| place.host(index)).collect();
        let allowed: Vec<String> =
            (0..places.len()).filter(|at| may(&wish, *at, &places)).map(|at| format!("n{at}")).collect();
        match decide(&wish.pod("incoming"), &hosts) {
            Decision::Place(node) => prop_assert!(allowed.contains(&node), "{node} is not in {allowed:?}"),
            Decision::Refuse { message, .. } => prop_assert!(allowed.is_empty(), "{allowed:?}: {message}"),
            Decision::Preempt { .. } => prop_assert!(false, "nobody matters less"),
        }
    }

    /// Whoever makes room is less important, and the Pod fits when they are gone.
    #[test]
    fn preemption_makes_room(
        places in prop::collection::vec(place(), 1..4), wish in wish(), priorities in prop::collection::vec(-2..3, 12),
    ) {
        let mut next = priorities.iter().cycle();
        let mut hosts: Vec<Host> = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let host = place.host(index);
            let ranked = host.residents.iter().map(|one| {
                let mut pod = Pod::clone(&one.pod);
                pod.spec.as_mut().unwrap().priority = next.next().copied();
                Arc::new(Resident::new(Arc::new(pod)))
            });
            hosts.push(Host::new(host.node.clone(), ranked.collect()));
        }
        let pod = wish.pod("incoming");
        if let Decision::Preempt { node, victims, .. } = decide(&pod, &hosts) {
            prop_assert!(!victims.is_empty() && victims.iter().all(|one| one.priority() < 0));
            for host in hosts.iter_mut().filter(|host| host.name() == node) {
                for one in &victims {
                    host.remove(one);
                }
            }
            prop_assert!(matches!(decide(&pod, &hosts), Decision::Place(_)));
            // None of them went for nothing.
            for victim in &victims {
                let mut tried = hosts.clone();
                let host = tried.iter_mut().find(|host| host.name() == node).unwrap();
                host.add(victim.clone());
                let incoming = Incoming::new(&pod, &tried, &Namespaces::new(), Needs::default());
                prop_assert!(incoming.check(tried.iter().find(|host| host.name() == node).unwrap()).is_err());
            }
        }
    }
}
