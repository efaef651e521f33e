//! Each preference decides where nothing else does.

use std::sync::Arc;

use windlass::{
    k8s_openapi::api::core::v1::Pod,
    serde_json::{Value, json},
};

use super::{
    super::filters::{
        tests::{host, node, pod},
        volumes::Needs,
    },
    *,
};

fn winner(pod: &Arc<Pod>, hosts: &[Host], siblings: &Siblings) -> String {
    let namespaces = Namespaces::new();
    let incoming = Incoming::new(pod, hosts, &namespaces, Needs::default());
    let fitting: Vec<&Host> = hosts.iter().collect();
    let contest =
        Contest { incoming: &incoming, hosts, fitting: &fitting, namespaces: &namespaces, siblings };
    contest.winner().unwrap().name().to_owned()
}

fn two(first: &[Arc<Pod>], second: &[Arc<Pod>]) -> Vec<Host> {
    vec![
        host(node("n1", json!({"zone": "east"}), json!({})), first),
        host(node("n2", json!({"zone": "west"}), json!({})), second),
    ]
}

fn app(name: &str, app: &str) -> Arc<Pod> {
    pod(name, json!({"app": app}), json!({}))
}

fn wanting(spec: Value) -> String {
    winner(&pod("p", json!({"app": "p"}), spec), &two(&[], &[app("x", "x")]), &Siblings::new())
}

#[test]
fn the_emptier_node_wins_unless_the_pod_would_rather_be_elsewhere() {
    assert_eq!(wanting(json!({})), "n1");
    let west = json!({"preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["west"]}]},
        "weight": 1});
    let prefers = json!({"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [west]}}});
    assert_eq!(wanting(prefers), "n2");
    let near = json!([{"weight": 5, "podAffinityTerm": {"topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}}}}]);
    let company = json!({"affinity": {"podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": near}}});
    assert_eq!(wanting(company), "n2");
    let apart = json!({"affinity": {"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": near}}});
    assert_eq!(wanting(apart), "n1");
}

#[test]
fn discouraging_taints_are_avoided() {
    let taint = json!({"taints": [{"key": "old", "effect": "PreferNoSchedule"}]});
    let hosts = [
        host(node("n1", json!({}), taint), &[]),
        host(node("n2", json!({}), json!({})), &[app("x", "x"), app("y", "y")]),
    ];
    assert_eq!(winner(&app("p", "p"), &hosts, &Siblings::new()), "n2");
    let tolerant = pod("p", json!({}), json!({"tolerations": [{"operator": "Exists"}]}));
    assert_eq!(winner(&tolerant, &hosts, &Siblings::new()), "n1");
}

#[test]
fn soft_constraints_and_owners_spread() {
    let hosts = two(&[app("a", "web")], &[app("x", "x"), app("y", "y"), app("z", "z")]);
    let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}}});
    let spread = pod("p", json!({"app": "web"}), json!({"topologySpreadConstraints": [constraint]}));
    assert_eq!(winner(&spread, &hosts, &Siblings::new()), "n2");
    let siblings: Siblings = [("n1".to_owned(), 1)].into();
    assert_eq!(winner(&app("p", "web"), &hosts, &siblings), "n2");
    assert_eq!(winner(&app("p", "web"), &hosts, &Siblings::new()), "n1");
}
