//! Intents against live objects as the API server returns them, defaults and all.

use serde_json::json;

use super::*;

fn fields(value: &Value) -> FieldSet {
    FieldSet::parse(&value.to_string()).unwrap()
}

fn owned() -> FieldSet {
    fields(&owned_json())
}

fn owned_json() -> Value {
    json!({
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
    })
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
            "annotations": {"deployment.kubernetes.io/revision": "1"}, "resourceVersion": "7",
            "ownerReferences": [{"uid": "0"}, {"uid": "1"}]},
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
fn a_field_that_somebody_took_from_us_is_not_held() {
    for (path, name) in [
        ("/f:spec", "f:replicas"),
        ("/f:spec", "f:selector"),
        ("/f:metadata", "f:labels"),
        ("/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}", "f:image"),
        ("/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}", "f:resources"),
        ("/f:spec", "f:template"),
    ] {
        let mut set = owned_json();
        assert!(set.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(name).is_some());
        assert!(!holds(&intent(), &live(), &fields(&set)), "{path} {name}");
    }
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
fn an_owner_reference_that_differs_is_not_held() {
    let mut live = live();
    live["metadata"]["ownerReferences"] = json!([{"uid": "2"}]);
    assert!(!holds(&intent(), &live, &owned()));
    live["metadata"]["ownerReferences"] = json!([{"uid": "1", "apiVersion": "example.com/v1"}]);
    assert!(!holds(&intent(), &live, &owned()));
}

fn list(items: &Value, live: &Value, keys: &[&str]) -> bool {
    let mut set = json!({"f:spec": {"f:list": {}}});
    for key in keys {
        set["f:spec"]["f:list"][format!("k:{key}")] = json!({".": {}, "f:port": {}, "f:protocol": {}});
    }
    holds(&json!({"spec": {"list": items}}), &json!({"spec": {"list": live}}), &fields(&set))
}

#[test]
fn items_that_somebody_reordered_are_not_held() {
    let (one, two) = (json!({"port": 1, "protocol": "TCP"}), json!({"port": 2, "protocol": "TCP"}));
    let foreign = json!({"port": 3, "protocol": "TCP"});
    let keys = [r#"{"port":1,"protocol":"TCP"}"#, r#"{"port":2,"protocol":"TCP"}"#];
    assert!(list(&json!([one, two]), &json!([foreign, one, foreign, two]), &keys));
    assert!(!list(&json!([one, two]), &json!([two, one]), &keys));
    assert!(list(&json!([two, one]), &json!([two, one]), &keys));
}

#[test]
fn an_item_that_leaves_out_a_part_of_its_key_is_the_one_that_no_other_is() {
    let owned = FieldSet::parse(
        r#"{"k:{\"port\":53,\"protocol\":\"TCP\"}": {".":{}}, "k:{\"port\":53,\"protocol\":\"UDP\"}": {".":{}}}"#,
    )
    .unwrap();
    let (bare, udp) = (json!({"port": 53}), json!({"port": 53, "protocol": "UDP"}));
    for items in [[bare.clone(), udp.clone()], [udp.clone(), bare.clone()]] {
        let found = owned_items(&items, &owned).unwrap();
        for (item, (key, _)) in items.iter().zip(&found) {
            let protocol = item["protocol"].as_str().unwrap_or("TCP");
            assert!(key.is_of(&json!({"port": 53, "protocol": protocol})), "{item}");
        }
    }
    assert!(owned_items(&[bare.clone(), bare], &owned).is_none(), "which is which cannot be told");
    assert!(owned_items(&[udp], &owned).is_none());
}
