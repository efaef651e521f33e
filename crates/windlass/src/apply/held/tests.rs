//! Intents against live objects as the API server returns them, defaults and all.

use serde_json::json;

use super::*;

fn fields(value: &Value) -> FieldSet {
    FieldSet::parse(&value.to_string()).unwrap()
}

fn owned() -> FieldSet {
    fields(&json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                    ".": {}, "f:image": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                    "f:resources": {"f:limits": {"f:cpu": {}}}
                }}}
            }
        }
    }))
}

fn intent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"},
            "ownerReferences": [{"uid": "1"}]},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "web", "image": "nginx", "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1000m"}}
                }]}
            }
        }
    })
}

fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "team": "a"},
            "annotations": {"deployment.kubernetes.io/revision": "1"}, "resourceVersion": "7"},
        "spec": {
            "replicas": 2, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "sidecar", "image": "proxy"},
                    {
                        "name": "web", "image": "nginx", "imagePullPolicy": "Always",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1"}}
                    }
                ], "dnsPolicy": "ClusterFirst"}
            }
        },
        "status": {"replicas": 2}
    })
}

#[test]
fn a_live_object_with_defaults_and_foreign_fields_holds_the_intent() {
    assert!(holds(&intent(), &live(), &owned()));
}

#[test]
fn another_value_is_not_held() {
    let mut intent = intent();
    intent["spec"]["replicas"] = json!(3);
    assert!(!holds(&intent, &live(), &owned()));
}

#[test]
fn a_field_that_we_do_not_own_yet_is_not_held() {
    let mut intent = intent();
    intent["metadata"]["labels"]["team"] = json!("a");
    assert!(!holds(&intent, &live(), &owned()));
}

#[test]
fn a_field_that_we_own_and_no_longer_want_is_not_held() {
    let mut intent = intent();
    intent["spec"].as_object_mut().unwrap().remove("replicas");
    assert!(!holds(&intent, &live(), &owned()));
}

#[test]
fn a_list_item_that_we_no_longer_want_is_not_held() {
    let mut intent = intent();
    intent["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([]);
    assert!(!holds(&intent, &live(), &owned()));
}

#[test]
fn a_second_list_item_is_not_held() {
    let mut intent = intent();
    let container = &mut intent["spec"]["template"]["spec"]["containers"][0];
    container["ports"].as_array_mut().unwrap().push(json!({"containerPort": 81}));
    assert!(!holds(&intent, &live(), &owned()));
}

#[test]
fn another_quantity_is_not_held() {
    let mut intent = intent();
    intent["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1001m");
    assert!(!holds(&intent, &live(), &owned()));
}

#[test]
fn labels_are_never_compared_as_quantities() {
    let (mut intent, mut live) = (intent(), live());
    intent["metadata"]["labels"]["app"] = json!("1000m");
    live["metadata"]["labels"]["app"] = json!("1");
    assert!(!holds(&intent, &live, &owned()));
}

#[test]
fn an_omitted_zero_value_is_held_when_we_own_it() {
    let mut intent = intent();
    intent["spec"]["paused"] = json!(false);
    assert!(!holds(&intent, &live(), &owned()));
    let mut owned = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:paused": {}}});
    intent["spec"] = json!({"paused": false});
    assert!(holds(&intent, &live(), &fields(&owned)));
    owned["f:spec"]["f:replicas"] = json!({});
    assert!(!holds(&intent, &live(), &fields(&owned)));
}

#[test]
fn an_atomic_list_of_another_length_is_not_held() {
    let owned = fields(&json!({"f:spec": {"f:args": {}}}));
    let live = json!({"spec": {"args": ["a", "b"]}});
    assert!(holds(&json!({"spec": {"args": ["a", "b"]}}), &live, &owned));
    assert!(!holds(&json!({"spec": {"args": ["a"]}}), &live, &owned));
    assert!(!holds(&json!({"spec": {"args": ["b", "a"]}}), &live, &owned));
}
