//! Lists: pages, tables, discovery.

use serde_json::{Value, json};

use crate::server::{CONFIG_MAPS, DEPLOYMENTS, Server, config_map, deployment};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_show_the_moment_of_the_first() {
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({}))).await.expect_success();
    }
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect_success();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    server.delete(&format!("{CONFIG_MAPS}/c"), &Value::Null).await.expect_success();
    server.post(CONFIG_MAPS, &config_map("d", &json!({}))).await.expect_success();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = server.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.expect_success();
    assert_eq!(names(&second), ["c"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn items_of_a_typed_list_do_not_repeat_their_kind() {
    let server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    let list = server.get(CONFIG_MAPS).await.expect_success();
    assert_eq!((list["kind"].as_str(), list["apiVersion"].as_str()), (Some("ConfigMapList"), Some("v1")));
    assert!(list["items"][0].get("kind").is_none());
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
}

#[tokio::test]
async fn kubectl_gets_its_columns() {
    let server = Server::new();
    server.post(DEPLOYMENTS, &deployment("web")).await.expect_success();
    let table = server.table(DEPLOYMENTS).await;
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns[..5], ["Name", "Ready", "Up-to-date", "Available", "Age"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..2], [json!("web"), json!("0/1")]);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn an_unknown_field_selector_is_a_bad_request() {
    let server = Server::new();
    let answer = server.get(&format!("{CONFIG_MAPS}?fieldSelector=spec.x%3Dy")).await;
    assert_eq!(
        answer.failed(400, "BadRequest"),
        "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
}

#[tokio::test]
async fn every_group_of_discovery_has_an_openapi_document() {
    let server = Server::new();
    let groups = server.get("/apis").await.expect_success();
    let index = server.get("/openapi/v3").await.expect_success();
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let path = format!("apis/{}", version["groupVersion"].as_str().unwrap());
            let address = index["paths"][&path]["serverRelativeURL"].as_str().unwrap();
            let document = server.get(address).await.expect_success();
            assert!(document["components"]["schemas"].as_object().unwrap().len() > 4, "{path}");
        }
    }
}

#[tokio::test]
async fn paths_that_lead_nowhere_say_so() {
    let server = Server::new();
    server.get("/apis/apps/v1/namespaces/default/nonsense").await.failed(404, "NotFound");
    let missing = server.get(&format!("{DEPLOYMENTS}/none")).await;
    assert_eq!(missing.failed(404, "NotFound"), "deployments.apps \"none\" not found");
    assert_eq!(server.get("/nonsense").await.status, 404);
}
