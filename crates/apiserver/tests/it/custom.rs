//! Custom resources, from definition to drain.

use serde_json::{Value, json};

use crate::server::{DEFINITIONS, Server};

const WEBS: &str = "/apis/t.example.com/v1/namespaces/default/webs";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "webs.t.example.com"},
        "spec": {"group": "t.example.com", "names": {"kind": "Web", "plural": "webs"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["replicas"], "properties": {
                        "replicas": {"type": "integer", "minimum": 1, "maximum": 10},
                        "image": {"type": "string", "default": "nginx:latest"}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}}}]},
    })
}

fn web(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "t.example.com/v1", "kind": "Web", "metadata": {"name": name},
        "spec": {"replicas": replicas}})
}

async fn server() -> Server {
    let server = Server::new();
    server.post(DEFINITIONS, &definition()).await.expect_success();
    server
}

#[tokio::test]
async fn a_definition_is_usable_the_moment_it_is_there() {
    let server = server().await;
    let settled = server.get(&format!("{DEFINITIONS}/webs.t.example.com")).await.expect_success();
    let conditions: Vec<&Value> = settled["status"]["conditions"].as_array().unwrap().iter().collect();
    assert!(conditions.iter().all(|one| one["status"] == "True"), "{conditions:?}");
    let resources = server.get("/apis/t.example.com/v1").await.expect_success();
    assert_eq!(resources["resources"][0]["kind"], "Web");
    assert!(server.get("/openapi/v3").await.expect_success()["paths"].get("apis/t.example.com/v1").is_some());
    let created = server.post(WEBS, &web("a", 3)).await.expect_success();
    assert_eq!(created["spec"]["image"], "nginx:latest");
    assert_eq!(server.table(WEBS).await["rows"][0]["cells"], json!(["a", 3]));
}

#[tokio::test]
async fn values_out_of_range_are_refused_in_the_real_words() {
    let server = server().await;
    let message = server.post(WEBS, &web("a", 11)).await.failed(422, "Invalid");
    assert_eq!(
        message,
        "Web.t.example.com \"a\" is invalid: spec.replicas: Invalid value: 11: spec.replicas in body should be less \
         than or equal to 10"
    );
}

#[tokio::test]
async fn status_and_scale_are_parts_of_their_own() {
    let server = server().await;
    let mut object = web("a", 3);
    object["status"] = json!({"replicas": 9});
    assert!(server.post(WEBS, &object).await.expect_success().get("status").is_none());
    let one = format!("{WEBS}/a");
    server.merge(&format!("{one}/status"), &json!({"status": {"replicas": 2}})).await.expect_success();
    let scale = server.get(&format!("{one}/scale")).await.expect_success();
    assert_eq!(
        (scale["spec"]["replicas"].as_i64(), scale["status"]["replicas"].as_i64()),
        (Some(3), Some(2))
    );
    server.merge(&format!("{one}/scale"), &json!({"spec": {"replicas": 5}})).await.expect_success();
    let scaled = server.get(&one).await.expect_success();
    assert_eq!(
        (scaled["spec"]["replicas"].as_i64(), scaled["metadata"]["generation"].as_i64()),
        (Some(5), Some(2))
    );
    server.merge(&format!("{one}/scale"), &json!({"spec": {"replicas": 50}})).await.failed(422, "Invalid");
}

#[tokio::test]
async fn a_default_that_came_later_shows_on_old_objects() {
    let server = server().await;
    server.post(WEBS, &web("a", 3)).await.expect_success();
    let mut changed = server.get(&format!("{DEFINITIONS}/webs.t.example.com")).await.expect_success();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    changed.pointer_mut(spec).unwrap()["port"] = json!({"type": "integer", "default": 80});
    server.put(&format!("{DEFINITIONS}/webs.t.example.com"), &changed).await.expect_success();
    assert_eq!(server.get(&format!("{WEBS}/a")).await.expect_success()["spec"]["port"], 80);
}

#[tokio::test]
async fn deleting_a_definition_drains_its_objects() {
    let server = server().await;
    let mut held = web("held", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(WEBS, &held).await.expect_success();
    server.post(WEBS, &web("free", 1)).await.expect_success();
    let one = format!("{DEFINITIONS}/webs.t.example.com");
    server.delete(&one, &Value::Null).await.expect_success();
    server.get(&one).await.expect_success();
    server.get(&format!("{WEBS}/free")).await.failed(404, "NotFound");
    server.merge(&format!("{WEBS}/held"), &json!({"metadata": {"finalizers": []}})).await.expect_success();
    server.get(&one).await.failed(404, "NotFound");
    assert_eq!(server.get("/apis/t.example.com/v1").await.status, 404);
}

#[tokio::test]
async fn a_schema_that_is_not_structural_is_refused() {
    let server = Server::new();
    let mut object = definition();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    object.pointer_mut(spec).unwrap().as_object_mut().unwrap().remove("type");
    let answer = server.post(DEFINITIONS, &object).await;
    assert_eq!(answer.body["details"]["causes"][0]["reason"], "FieldValueRequired", "{}", answer.body);
    let message = answer.failed(422, "Invalid");
    assert!(
        message.contains("spec.validation.openAPIV3Schema.properties[spec].type: Required value"),
        "{message}"
    );
}
