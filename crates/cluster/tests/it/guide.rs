//! The code of the guide's chapter about tests: below the line it is the guide's, word for word.

use crate::greeting::operator;

const GUIDE: &str = include_str!("../../../windlass/src/docs/guide.md");
const LINE: &str = "// ---- from here on it is the guide's code ----\n";

#[test]
fn the_guide_shows_the_test_that_runs_here() {
    let (_, code) = include_str!("guide.rs").rsplit_once(LINE).unwrap();
    assert!(GUIDE.contains(code.trim()), "the guide's chapter about tests must show this file's code");
}

// ---- from here on it is the guide's code ----
use std::time::Duration;

use windlass::k8s_openapi::api::core::v1::ConfigMap;
use windlass_cluster::testing::Environment;

#[tokio::test(start_paused = true)]
async fn a_greeting_is_kept_in_a_config_map() {
    let mut env = Environment::start(operator).await;
    let hello = "{apiVersion: example.com/v1, kind: Greeting, metadata: {name: hello}, spec: {text: Hi}}";
    env.apply_yaml(hello).await;
    env.settled().await;
    let map = env.api::<ConfigMap>().get("hello").await.unwrap();
    assert_eq!(map.data.unwrap()["text"], "Hi");

    // Nothing is written without a reason: not by a second look, not in a day, not by a restart.
    env.assert_second_reconcile_writes_nothing().await;
    env.advance(Duration::from_hours(24)).await;
    env.restart().await;
    env.settled().await;
    assert_eq!(env.requests().take_writes(), []);

    // A run that fails fails the test, unless the test expects it.
    env.allow_failures(|failure| failure.reason == "NameConflict");
    env.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}").await;
    env.apply_yaml(&hello.replace("hello", "taken")).await;
    env.settled().await;
    assert_eq!(env.take_failures()[0].key.name(), "taken");
    env.stop().await;
}
