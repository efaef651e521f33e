//! Watches: what arrives, from where it can be resumed, and how it ends.

use std::time::Duration;

use serde_json::json;
use windlass_apiserver::store::Store;

use crate::server::{CONFIG_MAPS, Server, config_map};

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_state_comes_first_and_its_end_is_marked() {
    let server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.event().await, event("ADDED", "a"));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    server.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.expect_success();
    assert_eq!(watch.event().await, event("ADDED", "b"));
    // Nothing happens for a minute: the watcher is told how far it has come.
    assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
}

#[tokio::test]
async fn an_object_enters_and_leaves_a_selector_as_added_and_deleted() {
    let server = Server::new();
    let list = server.get(CONFIG_MAPS).await.expect_success();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{CONFIG_MAPS}?watch=true&labelSelector=app%3Dweb&resourceVersion={revision}");
    let mut watch = server.watch(&path).await;
    let one = format!("{CONFIG_MAPS}/a");
    server.post(CONFIG_MAPS, &config_map("a", &json!({"app": "other"}))).await.expect_success();
    server.merge(&one, &json!({"metadata": {"labels": {"app": "web"}}})).await.expect_success();
    server.merge(&one, &json!({"data": {"x": "y"}})).await.expect_success();
    let last = server.merge(&one, &json!({"metadata": {"labels": {"app": "gone"}}})).await.expect_success();
    server.delete(&one, &json!(null)).await.expect_success();
    assert_eq!(watch.event().await, event("ADDED", "a"));
    assert_eq!(watch.event().await, event("MODIFIED", "a"));
    let left = watch.next().await.unwrap();
    assert_eq!(left["type"], "DELETED");
    assert_eq!(left["object"]["metadata"]["labels"], json!({"app": "web"}), "as it was when it matched");
    assert_eq!(left["object"]["metadata"]["resourceVersion"], last["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_revision_that_is_gone_is_an_error_in_the_stream() {
    let server = Server::with_store(Store::with_history(2));
    for name in ["a", "b", "c", "d"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({}))).await.expect_success();
    }
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=2")).await;
    let line = watch.next().await.unwrap();
    assert_eq!((line["type"].as_str(), line["object"]["code"].as_i64()), (Some("ERROR"), Some(410)));
    assert_eq!(line["object"]["reason"], "Expired");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_over() {
    let server = Server::new();
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=5")).await;
    let before = tokio::time::Instant::now();
    assert!(watch.next().await.is_none());
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn a_future_revision_is_refused() {
    let server = Server::new();
    let answer = server.get(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=99999")).await;
    let message = answer.failed(504, "Timeout");
    assert!(message.contains("Too large resource version: 99999"), "{message}");
}
