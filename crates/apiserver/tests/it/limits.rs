//! How large an object may be, however it became so large.

use http::Method;
use serde_json::{Value, json};

use crate::server::{CONFIG_MAPS, DEFINITIONS, Server, config_map};

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const TOO_LARGE: &str = "etcdserver: request is too large";

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

#[tokio::test]
async fn a_config_map_holds_a_mebibyte_and_no_more() {
    let server = Server::new();
    let mut object = config_map("a", &json!({}));
    object["data"] = json!({"a": "x".repeat(1024 * 1024)});
    server.post(CONFIG_MAPS, &object).await.expect_success();
    let message =
        server.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"b": "x"}})).await.failed(422, "Invalid");
    assert!(message.ends_with("Too long: may not be more than 1048576 bytes"), "{message}");
    let binary = json!({"data": null, "binaryData": {"b": "AAAA".repeat(350_000)}});
    server.merge(&format!("{CONFIG_MAPS}/a"), &binary).await.failed(422, "Invalid");
}

#[tokio::test]
async fn a_secret_holds_a_mebibyte_and_no_more() {
    let server = Server::new();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |size: usize| json!({"metadata": {"name": "a"}, "stringData": {"a": "x".repeat(size)}});
    let message = server.post(secrets, &secret(1024 * 1024 + 1)).await.failed(422, "Invalid");
    assert!(message.ends_with("data: Too long: may not be more than 1048576 bytes"), "{message}");
    server.post(secrets, &secret(1024 * 1024)).await.expect_success();
}

#[tokio::test]
async fn annotations_hold_a_quarter_of_a_mebibyte_together() {
    let server = Server::new();
    let annotated = |size: usize| {
        let mut object = config_map("a", &json!({}));
        object["metadata"]["annotations"] = json!({"a": "x".repeat(size), "b": "y"});
        object
    };
    let message = server.post(CONFIG_MAPS, &annotated(256 * 1024 - 2)).await.failed(422, "Invalid");
    assert!(
        message.ends_with("metadata.annotations: Too long: may not be more than 262144 bytes"),
        "{message}"
    );
    server.post(CONFIG_MAPS, &annotated(256 * 1024 - 3)).await.expect_success();
}

#[tokio::test]
async fn no_patch_makes_an_object_larger_than_can_be_stored() {
    let server = Server::new();
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    server.post(DEFINITIONS, &definition(&free)).await.expect_success();
    server.post(THINGS, &thing(&json!({}))).await.expect_success();
    let path = format!("{THINGS}/a");
    for number in 0..3 {
        server
            .merge(&path, &json!({"spec": {format!("f{number}"): "x".repeat(500_000)}}))
            .await
            .expect_success();
    }
    let more = json!({"spec": {"more": "x".repeat(100_000)}});
    let copy = json!([{"op": "copy", "from": "/spec/f0", "path": "/spec/f9"}]);
    for (media, patch) in [("application/merge-patch+json", &more), ("application/json-patch+json", &copy)] {
        let answer = server.send(Method::PATCH, &path, media, "application/json", patch).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["message"]),
            (500, &json!(TOO_LARGE)),
            "{}",
            answer.body
        );
    }
    let mut intent = thing(&more["spec"]);
    let answer = server.apply(&path, "other", &intent).await;
    assert_eq!(answer.body["message"], TOO_LARGE);
    intent["metadata"]["name"] = json!("b");
    intent["spec"] = json!({"a": "x".repeat(2_000_000)});
    let answer = server.post(THINGS, &intent).await;
    assert_eq!(answer.body["message"], TOO_LARGE);
    server.get(&format!("{THINGS}/b")).await.failed(404, "NotFound");
    // What is there can become smaller, can be held by a finalizer, and can go.
    server.merge(&path, &json!({"metadata": {"finalizers": ["a.b/c"]}})).await.expect_success();
    server.merge(&path, &json!({"spec": {"f0": "y".repeat(499_000)}})).await.expect_success();
    server.delete(&path, &Value::Null).await.expect_success();
    server.merge(&path, &json!({"metadata": {"finalizers": null}})).await.expect_success();
    server.get(&path).await.failed(404, "NotFound");
}

/// The most memory that this process has had, in megabytes.
#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn defaults_do_not_make_a_large_object_of_many_small_ones() {
    let server = Server::new();
    let item =
        json!({"type": "object", "properties": {"a": {"type": "string", "default": "x".repeat(4000)}}});
    let spec = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    server.post(DEFINITIONS, &definition(&spec)).await.expect_success();
    let empty = |count: usize| thing(&json!({"items": vec![json!({}); count]}));
    server.post(THINGS, &empty(300)).await.expect_success();
    server.delete(&format!("{THINGS}/a"), &Value::Null).await.expect_success();
    let answer = server.post(THINGS, &empty(60_000)).await;
    assert_eq!(answer.body["message"], TOO_LARGE, "60,000 items would be 240 MB");
    server.post(THINGS, &empty(500_000)).await.failed(413, "RequestEntityTooLarge");
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": vec![json!({}); 500_000]}});
    server.post("/api/v1/namespaces/default/pods", &pod).await.failed(413, "RequestEntityTooLarge");
    #[cfg(target_os = "linux")]
    assert!(most_memory() < 3000, "{} MB", most_memory());
}

#[tokio::test]
async fn a_continue_token_of_a_revision_that_has_not_been_is_refused() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({}))).await.expect_success();
    }
    let page = server.get(&format!("{CONFIG_MAPS}?limit=1")).await.expect_success();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let mut decoded: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).unwrap()).unwrap();
    server.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.expect_success();
    decoded["rv"] = json!(1_000_000);
    let token = URL_SAFE_NO_PAD.encode(decoded.to_string());
    let answer = server.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
    let message = answer.failed(504, "Timeout");
    assert!(message.starts_with("Timeout: Too large resource version: 1000000, current: "), "{message}");
}
