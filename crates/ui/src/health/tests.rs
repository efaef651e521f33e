use proptest::prelude::*;
use serde_json::json;

use super::*;

fn of(object: Value) -> (Health, String) {
    let Judgement { health, message } = judge(Some(&object));
    (health, message)
}

#[test]
fn every_kind_is_judged_by_what_it_says() {
    use Health::{Current, Failed, InProgress, Terminating};
    let ready = |status: &str| json!([{"type": "Ready", "status": status, "message": "so it is"}]);
    let pod = |status: Value| json!({"apiVersion": "v1", "kind": "Pod", "status": status});
    let apps = |kind: &str, spec: Value, status: Value| json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec, "status": status});
    let job = |status: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "status": status});
    let custom = |status: Value| json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"generation": 2}, "status": status});
    let crd = |conditions: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "status": {"conditions": conditions}});
    let crash = json!({"phase": "Running", "conditions": ready("False"), "containerStatuses":
        [{"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "again"}}}]});
    let rolled = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    let table = [
        (custom(json!({})), Current, ""),
        (
            custom(json!({"observedGeneration": 1, "conditions": ready("True")})),
            InProgress,
            "generation 2 is not observed yet, only 1",
        ),
        (custom(json!({"observedGeneration": 2, "conditions": ready("True")})), Current, ""),
        (custom(json!({"conditions": ready("False")})), InProgress, "so it is"),
        (custom(json!({"conditions": ready("Unknown")})), InProgress, "so it is"),
        (
            custom(json!({"conditions": [{"type": "Stalled", "status": "True", "reason": "Broken"}]})),
            Failed,
            "Broken",
        ),
        (custom(json!({"conditions": [{"type": "Stalled", "status": "False"}]})), Current, ""),
        (
            custom(json!({"conditions": [{"type": "Reconciling", "status": "True"}]})),
            InProgress,
            "reconciling",
        ),
        (custom(json!("not an object")), Current, ""),
        (
            json!({"kind": "Thing", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}}),
            Terminating,
            "being deleted; waits for a/b",
        ),
        (pod(json!({})), InProgress, "the Pod is not taken up yet"),
        (pod(json!({"phase": "Pending"})), InProgress, "containers are being started"),
        (
            pod(
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]}),
            ),
            InProgress,
            "no node",
        ),
        (pod(json!({"phase": "Running", "conditions": ready("True")})), Current, ""),
        (pod(json!({"phase": "Running", "conditions": ready("False")})), InProgress, "so it is"),
        (pod(crash), Failed, "web: CrashLoopBackOff: again"),
        (pod(json!({"phase": "Succeeded"})), Current, ""),
        (pod(json!({"phase": "Failed", "reason": "Evicted"})), Failed, "Evicted"),
        (apps("Deployment", json!({"replicas": 2}), json!({})), InProgress, "0 of 2 replicas are up to date"),
        (
            apps("Deployment", json!({"replicas": 2}), json!({"replicas": 3, "updatedReplicas": 2})),
            InProgress,
            "1 old replicas are to go",
        ),
        (
            apps(
                "Deployment",
                json!({"replicas": 2}),
                json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}),
            ),
            InProgress,
            "1 of 2 replicas are available",
        ),
        (apps("Deployment", json!({"replicas": 2}), rolled), Current, ""),
        (apps("Deployment", json!({"replicas": 0}), json!({})), Current, ""),
        (
            apps(
                "Deployment",
                json!({}),
                json!({"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}),
            ),
            Failed,
            "ProgressDeadlineExceeded",
        ),
        (
            apps(
                "ReplicaSet",
                json!({"replicas": 1}),
                json!({"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}),
            ),
            Current,
            "",
        ),
        (
            apps("ReplicaSet", json!({"replicas": 1}), json!({"replicas": 1, "fullyLabeledReplicas": 1})),
            InProgress,
            "0 of 1 replicas are available",
        ),
        (
            apps("StatefulSet", json!({"replicas": 2}), json!({"replicas": 2, "readyReplicas": 1})),
            InProgress,
            "1 of 2 replicas are ready",
        ),
        (
            apps(
                "StatefulSet",
                json!({"replicas": 1}),
                json!({"replicas": 1, "readyReplicas": 1, "currentReplicas": 1, "currentRevision": "a", "updateRevision": "a"}),
            ),
            Current,
            "",
        ),
        (
            apps(
                "StatefulSet",
                json!({"replicas": 2}),
                json!({"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "a", "updateRevision": "b"}),
            ),
            InProgress,
            "0 of 2 replicas are up to date",
        ),
        (apps("DaemonSet", json!({}), json!({})), InProgress, "not observed yet"),
        (
            apps(
                "DaemonSet",
                json!({}),
                json!({"observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1}),
            ),
            Current,
            "",
        ),
        (job(json!({})), InProgress, "not started yet"),
        (
            job(json!({"startTime": "2026-01-01T00:00:00Z", "active": 1})),
            Current,
            "1 active, 0 succeeded, 0 failed",
        ),
        (job(json!({"conditions": [{"type": "Complete", "status": "True"}]})), Current, ""),
        (
            job(json!({"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimit"}]})),
            Failed,
            "BackoffLimit",
        ),
        (crd(json!([])), InProgress, "being established"),
        (
            crd(
                json!([{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]),
            ),
            Current,
            "",
        ),
        (crd(json!([{"type": "NamesAccepted", "status": "False", "message": "taken"}])), Failed, "taken"),
        (json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}), InProgress, "not bound: Pending"),
        (
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Bound"}}),
            Current,
            "",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer"}}),
            InProgress,
            "no load balancer yet",
        ),
        (json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}}), Current, ""),
        (
            json!({"apiVersion": "v1", "kind": "Node", "status": {"conditions": ready("Unknown")}}),
            InProgress,
            "so it is",
        ),
    ];
    for (object, health, message) in table {
        assert_eq!(of(object.clone()), (health, message.to_owned()), "{object}");
    }
}

#[test]
fn what_is_not_there_and_what_is_no_object_are_told_apart() {
    assert_eq!(judge(None).health, Health::NotFound);
    assert_eq!(judge(Some(&json!([]))).health, Health::Unknown);
}

/// JSON as anybody may write it into a status.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[A-Za-z]{0,6}".prop_map(Value::from)
    ];
    let names = prop_oneof![
        Just("conditions".to_owned()),
        Just("type".to_owned()),
        Just("status".to_owned()),
        Just("phase".to_owned()),
        Just("replicas".to_owned()),
        Just("observedGeneration".to_owned()),
        Just("containerStatuses".to_owned()),
        "[a-z]{1,4}"
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_is_beyond_judgement(kind in "(Pod|Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|Thing)", spec in anything(), status in anything()) {
        for version in ["v1", "apps/v1", "batch/v1", "example.org/v1"] {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"generation": 1}, "spec": spec, "status": status});
            let judgement = judge(Some(&object));
            prop_assert!(!matches!(judgement.health, Health::NotFound | Health::Unknown | Health::Terminating));
        }
    }
}
