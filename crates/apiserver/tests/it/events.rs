//! Events expire an hour after they were last written, by the server's clock.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::{
    environment::{Environment, TokioClock},
    registry::Registry,
    store::Store,
};

use crate::server::Server;

const CORE: &str = "/api/v1/namespaces/default/events";
const MODERN: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn core(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "involvedObject": {"namespace": "default"}, "type": "Normal"})
}

fn modern(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"}, "regarding": {"namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "action": "a", "reason": "r", "type": "Normal",
        "reportingController": "a.b/c", "reportingInstance": "i",
    })
}

async fn names(server: &Server) -> Vec<String> {
    let list = server.get(CORE).await.expect_success();
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_mins(count)).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_is_gone_an_hour_after_its_last_write() {
    let server = Server::new();
    server.post(CORE, &core("old")).await.expect_success();
    minutes(10).await;
    server.post(MODERN, &modern("new")).await.expect_success();
    let mut watch = server.watch(&format!("{CORE}?watch=true&timeoutSeconds=86400")).await;
    for name in ["new", "old"] {
        assert_eq!(watch.event().await, ("ADDED".into(), name.into()));
    }
    minutes(49).await;
    assert_eq!(names(&server).await, ["new", "old"]);
    server.merge(&format!("{MODERN}/new"), &json!({"note": "again"})).await.expect_success();
    assert_eq!(watch.event().await, ("MODIFIED".into(), "new".into()));
    minutes(2).await;
    assert_eq!(names(&server).await, ["new"], "it lives an hour");
    assert_eq!(watch.event().await, ("DELETED".into(), "old".into()), "and watchers see it go");
    minutes(56).await;
    assert_eq!(names(&server).await, ["new"], "a write makes it live an hour more");
    minutes(5).await;
    assert!(names(&server).await.is_empty());
    server.post(CORE, &core("last")).await.expect_success();
    minutes(61).await;
    assert!(names(&server).await.is_empty(), "and so it goes on");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_an_earlier_life_of_the_server_expires_too() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let (store, clock) = (Arc::new(Store::default()), TokioClock::starting_at(start));
    let registry = || Registry::new(Arc::clone(&store), Environment::new(clock, 7)).unwrap();
    let server = Server::of(registry());
    server.post(CORE, &core("a")).await.expect_success();
    drop(server);
    minutes(30).await;
    let server = Server::of(registry());
    minutes(29).await;
    assert_eq!(names(&server).await, ["a"]);
    minutes(2).await;
    assert!(names(&server).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_lifetime_can_be_asked_for() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let environment = Environment::new(TokioClock::starting_at(start), 7);
    let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
    let server = Server::of(registry.with_event_ttl(Duration::from_mins(5)));
    server.post(CORE, &core("a")).await.expect_success();
    minutes(6).await;
    assert!(names(&server).await.is_empty());
}
