//! The end of objects: finalizers, grace, preconditions, namespaces.

use serde_json::{Value, json};

use crate::{
    conversion,
    server::{CONFIG_MAPS, DEFINITIONS, PODS, Server, config_map},
};

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_one_is_gone() {
    let server = Server::new();
    let one = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    server.post(CONFIG_MAPS, &object).await.expect_success();
    let pending = server.delete(&one, &Value::Null).await.expect_success();
    assert_eq!(pending["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
    let message = server
        .merge(&one, &json!({"metadata": {"finalizers": ["example.com/one", "example.com/three"]}}))
        .await
        .failed(422, "Invalid");
    assert!(message.contains("no new finalizers can be added"), "{message}");
    server.merge(&one, &json!({"metadata": {"finalizers": ["example.com/two"]}})).await.expect_success();
    server.get(&one).await.expect_success();
    server.merge(&one, &json!({"metadata": {"finalizers": []}})).await.expect_success();
    server.get(&one).await.failed(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_has_time_to_end() {
    let server = Server::new();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x:1"}]}});
    server.post(PODS, &pod).await.expect_success();
    let one = format!("{PODS}/p");
    let ending = server.delete(&one, &Value::Null).await.expect_success();
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(ending["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    let sooner = server.delete(&one, &json!({"gracePeriodSeconds": 5})).await.expect_success();
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
    let later = server.delete(&one, &json!({"gracePeriodSeconds": 60})).await.expect_success();
    assert_eq!(later["metadata"]["deletionGracePeriodSeconds"], 5, "a deletion can only be made sooner");
    server.delete(&one, &json!({"gracePeriodSeconds": 0})).await.expect_success();
    server.get(&one).await.failed(404, "NotFound");
}

#[tokio::test]
async fn a_pod_that_never_ran_ends_at_once() {
    let server = Server::new();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}});
    server.post(PODS, &pod).await.expect_success();
    server.delete(&format!("{PODS}/p"), &Value::Null).await.expect_success();
    server.get(&format!("{PODS}/p")).await.failed(404, "NotFound");
}

#[tokio::test]
async fn the_wrong_uid_deletes_nothing() {
    let server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    let options = json!({"preconditions": {"uid": "another"}});
    let message = server.delete(&format!("{CONFIG_MAPS}/a"), &options).await.failed(409, "Conflict");
    assert!(message.contains("the UID in the precondition (another) does not match"), "{message}");
    server.get(&format!("{CONFIG_MAPS}/a")).await.expect_success();
}

#[tokio::test]
async fn a_terminating_namespace_takes_nothing_in() {
    let server = Server::new();
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect_success();
    let ending = server.delete("/api/v1/namespaces/n", &Value::Null).await.expect_success();
    assert_eq!(ending["status"]["phase"], "Terminating");
    let path = "/api/v1/namespaces/n/configmaps";
    let message = server.post(path, &config_map("a", &json!({}))).await.failed(403, "Forbidden");
    assert!(message.contains("because it is being terminated"), "{message}");
    let mut last = server.get("/api/v1/namespaces/n").await.expect_success();
    last["spec"]["finalizers"] = json!([]);
    server.put("/api/v1/namespaces/n/finalize", &last).await.expect_success();
    server.get("/api/v1/namespaces/n").await.failed(404, "NotFound");
    server.post(path, &config_map("a", &json!({}))).await.failed(404, "NotFound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_evictions_at_once_a_budget_lets_as_many_through_as_it_allows() {
    let server = Server::new();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}});
    let mut made = server.post(budgets, &budget).await.expect_success();
    made["status"] = json!({"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 16, "desiredHealthy": 14,
        "expectedPods": 16});
    server.put(&format!("{budgets}/b/status"), &made).await.expect_success();
    for number in 0..16 {
        let pod = json!({"metadata": {"name": format!("p{number}"), "labels": {"app": "x"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
        let mut pod = server.post(PODS, &pod).await.expect_success();
        pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        server.put(&format!("{PODS}/p{number}/status"), &pod).await.expect_success();
    }
    let evictions = (0..16).map(|number| {
        let server = server.clone();
        tokio::spawn(async move {
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": format!("p{number}")}});
            server.post(&format!("{PODS}/p{number}/eviction"), &eviction).await.status.as_u16()
        })
    });
    let answers = futures::future::join_all(evictions).await;
    let through = answers.iter().filter(|answer| matches!(answer, Ok(201))).count();
    assert_eq!(through, 2, "{answers:?}");
    assert_eq!(server.get(&format!("{budgets}/b")).await.expect_success()["status"]["disruptionsAllowed"], 0);
}

/// A definition that goes takes no new objects, by whatever verb.
#[tokio::test]
async fn a_definition_that_ends_takes_nothing_in_and_goes_with_its_objects() {
    let server = Server::new();
    let definition = conversion::definition(&json!({"strategy": "None"}));
    server.post(DEFINITIONS, &definition).await.expect_success();
    let things = "/apis/example.com/v1/namespaces/default/things";
    let mut held = conversion::thing("v1", "held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(things, &held).await.expect_success();
    server.delete(&format!("{DEFINITIONS}/things.example.com"), &Value::Null).await.expect_success();
    let why = "create not allowed while custom resource definition is terminating";
    let message =
        server.post(things, &conversion::thing("v1", "new", &json!({}))).await.failed(403, "Forbidden");
    assert_eq!(message, format!("things.example.com \"new\" is forbidden: {why}"));
    let applied = conversion::thing("v1", "applied", &json!({}));
    server.apply(&format!("{things}/applied"), "me", &applied).await.failed(403, "Forbidden");
    server.get(&format!("{things}/applied")).await.failed(404, "NotFound");
    server
        .merge(&format!("{things}/held"), &json!({"metadata": {"finalizers": null}}))
        .await
        .expect_success();
    server.get(&format!("{DEFINITIONS}/things.example.com")).await.failed(404, "NotFound");
}

/// A deletion is made sooner by who says how soon, counted from its beginning; nobody else changes it.
#[tokio::test(start_paused = true)]
async fn a_second_deletion_does_not_shorten_the_first_by_accident() {
    let server = Server::new();
    let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x:1"}]}});
    server.post(PODS, &pod).await.expect_success();
    let one = format!("{PODS}/a");
    let first = server.delete(&one, &json!({"gracePeriodSeconds": 100})).await.expect_success();
    assert_eq!(first["metadata"]["deletionTimestamp"], "2026-01-01T00:01:40Z");
    let again = server.delete(&one, &Value::Null).await.expect_success();
    assert_eq!(again["metadata"]["deletionGracePeriodSeconds"], 100, "nobody said how soon");
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    let sooner = server.delete(&one, &json!({"gracePeriodSeconds": 20})).await.expect_success();
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-01T00:00:20Z");
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let past = server.delete(&one, &json!({"gracePeriodSeconds": -5})).await.expect_success();
    assert_eq!(
        (&past["metadata"]["deletionTimestamp"], &past["metadata"]["deletionGracePeriodSeconds"]),
        (&json!("2026-01-01T00:00:15Z"), &json!(1))
    );
}

/// What is stored is of the stored version: a deletion in another one does not read it as its own.
#[tokio::test]
async fn an_autoscaler_that_is_deleted_in_an_older_version_keeps_its_metrics() {
    let server = Server::new();
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let metrics = json!([{"type": "Resource", "resource": {"name": "memory",
        "target": {"type": "Utilization", "averageUtilization": 60}}}]);
    let autoscaler = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]},
        "spec": {"maxReplicas": 3, "scaleTargetRef": reference, "metrics": metrics}});
    let group = "/apis/autoscaling";
    let place = "namespaces/default/horizontalpodautoscalers";
    server.post(&format!("{group}/v2/{place}"), &autoscaler).await.expect_success();
    server.delete(&format!("{group}/v1/{place}/a"), &Value::Null).await.expect_success();
    let there = server.get(&format!("{group}/v2/{place}/a")).await.expect_success();
    assert_eq!(there["spec"]["metrics"], metrics);
    assert!(there["metadata"]["deletionTimestamp"].is_string());
}
