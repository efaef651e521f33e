//! Creates, updates, patches and applies of built-in kinds.

use http::Method;
use serde_json::{Value, json};

use crate::server::{CONFIG_MAPS, DEPLOYMENTS, PODS, Server, config_map, deployment};

#[tokio::test]
async fn a_deployment_gets_what_the_real_server_gives_it() {
    let server = Server::new();
    let created = server.post(DEPLOYMENTS, &deployment("web")).await.expect_success();
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["spec"]["replicas"], 1);
    assert_eq!(
        created["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
    );
    let container = &created["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(created["status"], json!({}));
}

#[tokio::test]
async fn the_generation_counts_specs_and_not_status_or_labels() {
    let server = Server::new();
    let one = format!("{DEPLOYMENTS}/web");
    server.post(DEPLOYMENTS, &deployment("web")).await.expect_success();
    let labelled = server.merge(&one, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect_success();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let scaled = server
        .merge(&one, &json!({"spec": {"replicas": 3}, "status": {"replicas": 9}}))
        .await
        .expect_success();
    assert_eq!(
        (scaled["metadata"]["generation"].as_i64(), scaled["status"].get("replicas")),
        (Some(2), None)
    );
    let status = json!({"spec": {"replicas": 7}, "status": {"replicas": 3}});
    let reported = server.merge(&format!("{one}/status"), &status).await.expect_success();
    assert_eq!(
        (reported["spec"]["replicas"].as_i64(), reported["status"]["replicas"].as_i64()),
        (Some(3), Some(3))
    );
    assert_eq!(reported["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_the_revision() {
    let server = Server::new();
    let created = server.post(DEPLOYMENTS, &deployment("web")).await.expect_success();
    let one = format!("{DEPLOYMENTS}/web");
    let put = server.put(&one, &created).await.expect_success();
    let patched = server.merge(&one, &json!({"spec": {"replicas": 1}})).await.expect_success();
    assert_eq!(put["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    assert_eq!(patched["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_put_on_an_old_version_is_a_conflict() {
    let server = Server::new();
    let created = server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    server.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"x": "1"}})).await.expect_success();
    let message = server.put(&format!("{CONFIG_MAPS}/a"), &created).await.failed(409, "Conflict");
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes \
         to the latest version and try again"
    );
}

#[tokio::test]
async fn generated_names_are_free_names() {
    let server = Server::new();
    let pod = json!({"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}});
    let one = server.post(PODS, &pod).await.expect_success();
    let other = server.post(PODS, &pod).await.expect_success();
    assert_ne!(one["metadata"]["name"], other["metadata"]["name"]);
    assert_eq!(one["metadata"]["name"].as_str().unwrap().len(), "web-".len() + 5);
    assert_eq!(one["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

#[tokio::test]
async fn two_managers_cannot_own_one_field_without_force() {
    let server = Server::new();
    let one = format!("{DEPLOYMENTS}/web");
    let mut intent = deployment("web");
    intent["spec"]["replicas"] = json!(2);
    let created = server.apply(&one, "first", &intent).await;
    assert_eq!(created.status, 201);
    let again = server.apply(&one, "first", &intent).await.expect_success();
    assert_eq!(again["metadata"]["resourceVersion"], created.body["metadata"]["resourceVersion"]);
    intent["spec"]["replicas"] = json!(5);
    let message = server.apply(&one, "second", &intent).await.failed(409, "Conflict");
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"first\": .spec.replicas");
    let forced = format!("{one}?fieldManager=second&force=true");
    let media = "application/apply-patch+yaml";
    let taken =
        server.send(Method::PATCH, &forced, media, "application/json", &intent).await.expect_success();
    assert_eq!(taken["spec"]["replicas"], 5);
}

#[tokio::test]
async fn unknown_fields_warn_or_are_refused() {
    let server = Server::new();
    let mut object = config_map("a", &json!({}));
    object["spek"] = json!(1);
    let strict = server.post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), &object).await;
    let message = strict.failed(400, "BadRequest");
    assert!(message.ends_with("strict decoding error: unknown field \"spek\""), "{message}");
    let warned = server.post(CONFIG_MAPS, &object).await;
    assert_eq!(warned.warnings, ["299 - \"unknown field \\\"spek\\\"\""]);
    assert!(warned.expect_success().get("spek").is_none());
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let server = Server::new();
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    server.post(&path, &config_map("a", &json!({}))).await.expect_success();
    server.get(&format!("{CONFIG_MAPS}/a")).await.failed(404, "NotFound");
}

#[tokio::test]
async fn invalid_objects_are_refused_with_every_cause() {
    let server = Server::new();
    let mut object = deployment("web");
    object["spec"]["replicas"] = json!(-1);
    object["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let answer = server.post(DEPLOYMENTS, &object).await;
    let causes = answer.body["details"]["causes"].as_array().unwrap().clone();
    let fields: Vec<&Value> = causes.iter().map(|cause| &cause["field"]).collect();
    assert_eq!(fields, ["spec.replicas", "spec.template.metadata.labels"]);
    answer.failed(422, "Invalid");
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused_as_go_refuses_it() {
    let server = Server::new();
    let mut object = config_map("a", &json!({}));
    object["data"] = json!({"a": 1});
    assert_eq!(
        server.post(CONFIG_MAPS, &object).await.failed(400, "BadRequest"),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
         field ConfigMap.data of type string"
    );
}

/// A client that makes a patch from an object that it has built itself takes away all that only the server sets.
#[tokio::test]
async fn a_patch_that_takes_the_uid_away_leaves_it_in_place() {
    let server = Server::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let made = server.post(maps, &map).await.expect_success();
    let patch = json!({"metadata": {"uid": null, "creationTimestamp": null, "resourceVersion": null}, "data": {"k": "v"}});
    let patched = server.merge(&format!("{maps}/a"), &patch).await.expect_success();
    assert_eq!(patched["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(patched["metadata"]["creationTimestamp"], made["metadata"]["creationTimestamp"]);
    assert_eq!(patched["data"]["k"], "v");
}
