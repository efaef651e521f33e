//! Pods, plans and rollouts, without a cluster.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass::{
    conditions::{self, DEGRADED, PROGRESSING, READY},
    jiff::Timestamp,
};

use super::{
    Rollout,
    fleet::{self, FAILURES, HASH, Observed, Plan},
    pods, victims,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A Pod of the template `new`, made at second 0, ready on a node of its own.
struct Fixture(Value);

impl Fixture {
    fn pod(name: &str) -> Self {
        Self(json!({
            "metadata": {
                "name": name, "uid": name, "creationTimestamp": "1970-01-01T00:00:00Z", "labels": {HASH: "new"},
            },
            "spec": {"nodeName": format!("node-of-{name}"), "containers": []},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"},
            ]},
        }))
    }

    fn old(mut self) -> Self {
        self.0["metadata"]["labels"][HASH] = "old".into();
        self
    }

    fn unready(mut self) -> Self {
        self.0["status"]["conditions"][0]["status"] = "False".into();
        self
    }

    fn pending(mut self) -> Self {
        self.0["status"]["phase"] = "Pending".into();
        self.unready()
    }

    fn unassigned(mut self) -> Self {
        self.0["spec"]["nodeName"] = Value::Null;
        self.pending()
    }

    fn on(mut self, node: &str) -> Self {
        self.0["spec"]["nodeName"] = node.into();
        self
    }

    fn ready_at(mut self, second: i64) -> Self {
        self.0["status"]["conditions"][0]["lastTransitionTime"] = at(second).to_string().into();
        self
    }

    fn created_at(mut self, second: i64) -> Self {
        self.0["metadata"]["creationTimestamp"] = at(second).to_string().into();
        self
    }

    fn cost(mut self, cost: &str) -> Self {
        self.0["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = cost.into();
        self
    }

    fn terminating(mut self) -> Self {
        self.0["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:01Z".into();
        self
    }

    fn failed_at(mut self, second: i64, before: u32) -> Self {
        self.0["status"]["phase"] = "Failed".into();
        self.0["metadata"]["annotations"][FAILURES] = before.to_string().into();
        let ended = json!({"exitCode": 1, "finishedAt": at(second).to_string()});
        self.0["status"]["containerStatuses"] = json!([container("app", json!({"terminated": ended}))]);
        self.unready()
    }

    fn waiting(mut self, reason: &str, last: Value) -> Self {
        let mut status = container("app", json!({"waiting": {"reason": reason, "message": "m"}}));
        status["lastState"] = last;
        self.0["status"]["containerStatuses"] = json!([status]);
        self.unready()
    }

    fn unschedulable(mut self) -> Self {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient memory.",
        });
        self.0["status"]["conditions"].as_array_mut().unwrap().push(condition);
        self.unassigned()
    }

    fn done(self) -> Arc<Pod> {
        Arc::new(serde_json::from_value(self.0).unwrap())
    }
}

fn container(name: &str, state: Value) -> Value {
    json!({
        "name": name, "image": "nginx:no", "imageID": "", "ready": false, "restartCount": 0, "state": state,
    })
}

fn names(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.name_any()).collect()
}

fn plan(pods: &[Arc<Pod>], wanted: usize, now: i64) -> Plan {
    fleet::plan(pods, wanted, "new", at(now))
}

fn shape(plan: &Plan) -> (usize, Vec<String>, Vec<String>) {
    (plan.create.len(), names(&plan.delete), names(&plan.clear))
}

// === plans ===

#[test]
fn all_missing_pods_are_made_in_one_pass() {
    assert_eq!(shape(&plan(&[], 5, 0)), (5, vec![], vec![]));
}

#[test]
fn a_large_number_is_worked_on_in_runs_that_follow_each_other() {
    let many = plan(&[], 2_000_000_000, 0);
    assert_eq!((many.create.len(), many.more), (fleet::BURST, true));
    assert_eq!(many.next().requeue_after(), Some(Duration::ZERO));
    let last = plan(&[], fleet::BURST, 0);
    assert_eq!((last.create.len(), last.more), (fleet::BURST, false));
    let pods: Vec<Arc<Pod>> = (0..250).map(|index| Fixture::pod(&format!("p{index}")).done()).collect();
    let fewer = plan(&pods, 1, 0);
    assert_eq!((fewer.delete.len(), fewer.create.len(), fewer.more), (fleet::BURST, 0, true));
}

#[test]
fn the_right_number_of_pods_is_left_alone() {
    let pods = [Fixture::pod("a").done(), Fixture::pod("b").pending().done()];
    let plan = plan(&pods, 2, 0);
    assert_eq!((shape(&plan), plan.wait), ((0, vec![], vec![]), None));
}

#[test]
fn terminating_and_finished_pods_do_not_count() {
    let pods = [Fixture::pod("a").terminating().done(), Fixture::pod("b").failed_at(0, 0).done()];
    let plan = plan(&pods, 2, 1_000);
    assert_eq!(shape(&plan), (2, vec![], vec!["b".to_owned()]));
}

#[test]
fn surplus_pods_are_chosen_from_those_that_run() {
    let pods = [
        Fixture::pod("a").terminating().done(),
        Fixture::pod("b").failed_at(0, 0).done(),
        Fixture::pod("c").done(),
        Fixture::pod("d").created_at(5).done(),
    ];
    assert_eq!(shape(&plan(&pods, 1, 1_000)), (0, vec!["d".to_owned()], vec!["b".to_owned()]));
}

#[test]
fn pods_go_in_kubernetes_own_order() {
    let pods = [
        Fixture::pod("ready").done(),
        Fixture::pod("ready-later").ready_at(60).done(),
        Fixture::pod("crowded-1").on("n").done(),
        Fixture::pod("crowded-2").on("n").created_at(5).done(),
        Fixture::pod("cheap").cost("-1").done(),
        Fixture::pod("unready").unready().done(),
        Fixture::pod("pending").pending().done(),
        Fixture::pod("unassigned").unassigned().done(),
    ];
    let expected =
        ["unassigned", "pending", "unready", "cheap", "crowded-2", "crowded-1", "ready-later", "ready"];
    assert_eq!(names(&victims::sorted(&pods)), expected);
}

#[test]
fn an_image_change_is_rolled_with_one_pod_more_and_none_less() {
    let old = |name: &str| Fixture::pod(name).old().done();
    let start = [old("a"), old("b"), old("c")];
    assert_eq!(shape(&plan(&start, 3, 0)), (1, vec![], vec![]), "first one more");
    let coming = [old("a"), old("b"), old("c"), Fixture::pod("d").pending().done()];
    assert_eq!(shape(&plan(&coming, 3, 0)), (0, vec![], vec![]), "then patience");
    let come = [old("a"), old("b"), old("c"), Fixture::pod("d").done()];
    let next = plan(&come, 3, 0);
    assert_eq!((next.create.len(), next.delete.len()), (0, 1), "then one goes");
    let going = [old("a"), old("b"), Fixture::pod("c").old().terminating().done(), Fixture::pod("d").done()];
    assert_eq!(shape(&plan(&going, 3, 0)), (0, vec![], vec![]), "no surge beside a Pod that is going");
}

#[test]
fn old_pods_that_do_not_serve_go_at_once() {
    let pods = [Fixture::pod("a").old().unready().done(), Fixture::pod("b").old().done()];
    let plan = plan(&pods, 2, 0);
    assert_eq!((plan.create.len(), names(&plan.delete)), (1, vec!["a".to_owned()]));
}

#[test]
fn a_template_that_never_becomes_ready_takes_no_serving_pod_away() {
    let pods = [
        Fixture::pod("a").old().done(),
        Fixture::pod("b").old().done(),
        Fixture::pod("c").waiting("ImagePullBackOff", Value::Null).done(),
    ];
    assert_eq!(shape(&plan(&pods, 2, 100_000)), (0, vec![], vec![]));
}

#[test]
fn failed_pods_are_replaced_after_a_delay_that_doubles() {
    let waits = |before: u32, now: i64| plan(&[Fixture::pod("a").failed_at(100, before).done()], 1, now);
    for (before, delay) in [(0, 10), (1, 20), (2, 40), (10, 300), (60, 300)] {
        let early = waits(before, 100 + delay - 1);
        assert_eq!((early.create.len(), early.wait), (0, Some(Duration::from_secs(1))), "{before}");
        let due = waits(before, 100 + delay);
        assert_eq!((due.create, names(&due.clear)), (vec![before + 1], vec!["a".to_owned()]));
    }
}

#[test]
fn a_pod_that_ran_well_for_long_starts_the_delay_anew() {
    let due = plan(&[Fixture::pod("a").failed_at(3_600, 5).done()], 1, 3_610);
    assert_eq!(due.create, [1]);
}

#[test]
fn a_failed_pod_of_an_old_template_is_replaced_at_once() {
    let due = plan(&[Fixture::pod("a").old().failed_at(100, 5).done()], 1, 100);
    assert_eq!(due.create, [0]);
}

#[tokio::test]
async fn pods_are_made_in_batches_that_double_until_one_fails() {
    let made = std::cell::RefCell::new(Vec::new());
    let make = |number: usize| {
        made.borrow_mut().push(number);
        async move { if number == 5 { Err(number) } else { Ok(()) } }
    };
    assert_eq!(fleet::create((0..100).collect(), make).await, Err(5));
    assert_eq!(made.borrow().len(), 1 + 2 + 4, "the batch that failed is the last");
}

// === trouble ===

fn trouble(pod: Fixture) -> (String, String) {
    let problem = pods::trouble(&[pod.done()]).expect("there must be a problem");
    (problem.reason.to_owned(), problem.message)
}

#[test]
fn what_keeps_a_pod_from_running_is_told_with_its_name() {
    let pulled = trouble(Fixture::pod("web-1").waiting("ErrImagePull", Value::Null));
    let again = trouble(Fixture::pod("web-1").waiting("ImagePullBackOff", Value::Null));
    assert_eq!(pulled, again, "the kubelet's two words for it do not make the status flicker");
    assert_eq!(
        again,
        ("ImagePullBackOff".into(), "Pod web-1: container app cannot pull the image nginx:no".into())
    );
    let crashed = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
    assert_eq!(
        trouble(Fixture::pod("web-1").waiting("CrashLoopBackOff", crashed)),
        ("CrashLoopBackOff".into(), "Pod web-1: container app keeps ending, last with exit code 3".into())
    );
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    assert_eq!(trouble(Fixture::pod("web-1").waiting("CrashLoopBackOff", killed)).0, "OOMKilled");
    let nowhere = trouble(Fixture::pod("web-1").unschedulable());
    assert_eq!(nowhere.0, "Unschedulable");
    assert!(nowhere.1.contains("Pod web-1: 0/3 nodes are available"), "{}", nowhere.1);
    let config = trouble(Fixture::pod("web-1").waiting("CreateContainerConfigError", Value::Null));
    assert_eq!(config.0, "CreateContainerConfigError");
}

#[test]
fn pods_that_only_take_their_time_or_go_are_no_trouble() {
    let pods = [
        Fixture::pod("a").done(),
        Fixture::pod("b").pending().done(),
        Fixture::pod("c").waiting("ContainerCreating", Value::Null).done(),
        Fixture::pod("d").waiting("ImagePullBackOff", Value::Null).terminating().done(),
    ];
    assert_eq!(pods::trouble(&pods), None);
}

#[test]
fn of_many_pods_in_trouble_the_first_is_named_and_the_others_counted() {
    let pods = ["c", "a", "b"].map(|name| Fixture::pod(name).waiting("ErrImagePull", Value::Null).done());
    let problem = pods::trouble(&pods).unwrap();
    assert!(problem.message.starts_with("Pod a (and 2 more): "), "{problem}");
}

// === judgement ===

fn summary(conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition]) -> String {
    let words = [READY, PROGRESSING, DEGRADED].map(|type_| {
        let found = conditions::find(conditions, type_).unwrap();
        format!("{type_}={}/{}", found.status, found.reason)
    });
    words.join(" ")
}

fn judged(pods: &[Arc<Pod>], wanted: i32, now: i64) -> String {
    let seen = Observed { owned: pods, wanted, hash: "new", failure: None };
    summary(&seen.observe(&Pod::default(), &[], at(now)))
}

#[test]
fn running_pods_are_not_ready_pods() {
    let pods = [Fixture::pod("a").done(), Fixture::pod("b").unready().done()];
    assert_eq!(
        judged(&pods, 2, 0),
        "Ready=False/ReplicasUnavailable Progressing=True/RollingOut Degraded=False/AsExpected"
    );
    let pods = [Fixture::pod("a").done(), Fixture::pod("b").done()];
    assert_eq!(
        judged(&pods, 2, 0),
        "Ready=True/Available Progressing=False/RolloutComplete Degraded=False/AsExpected"
    );
}

#[test]
fn a_stuck_rollout_with_old_pods_serving_stays_ready() {
    let pods =
        [Fixture::pod("a").old().done(), Fixture::pod("b").waiting("ImagePullBackOff", Value::Null).done()];
    assert_eq!(
        judged(&pods, 1, 60),
        "Ready=True/Available Progressing=True/RollingOut Degraded=True/ImagePullBackOff"
    );
    let late =
        "Ready=True/Available Progressing=False/ProgressDeadlineExceeded Degraded=True/ImagePullBackOff";
    assert_eq!(judged(&pods, 1, 600), late);
}

#[test]
fn a_failed_pod_that_waits_for_its_replacement_is_told() {
    let pods = [Fixture::pod("a").done(), Fixture::pod("b").failed_at(50, 0).done()];
    assert_eq!(
        judged(&pods, 2, 60),
        "Ready=False/ReplicasUnavailable Progressing=True/RollingOut Degraded=True/PodFailed"
    );
}

#[test]
fn a_deployments_pod_in_trouble_degrades_it_while_the_others_serve() {
    let mut deployment = Deployment::default();
    deployment.metadata.creation_timestamp = Some(Time(at(0)));
    deployment.status = Some(
        serde_json::from_value(json!({
            "replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}],
        }))
        .unwrap(),
    );
    let pods =
        vec![Fixture::pod("a").done(), Fixture::pod("b").waiting("CrashLoopBackOff", Value::Null).done()];
    let rollout = Rollout { wanted: 2, deployment: Arc::new(deployment), pods };
    assert_eq!(
        summary(&rollout.observe(&Pod::default(), &[], Vec::new(), at(0))),
        "Ready=True/Available Progressing=True/RollingOut Degraded=True/CrashLoopBackOff"
    );
}
