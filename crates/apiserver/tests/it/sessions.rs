//! Who may enter a container, as far as no container is needed to tell.

use http::Method;
use serde_json::{Value, json};
use windlass_apiserver::auth::Identity;

use crate::server::{PODS, Server};

const UPGRADE: [(&str, &str); 5] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("sec-websocket-protocol", "v5.channel.k8s.io"),
];

async fn with_pod() -> Server {
    let server = Server::new();
    let containers = json!([{"name": "first", "image": "a"}, {"name": "second", "image": "b"}]);
    let pod = json!({"metadata": {"name": "one"}, "spec": {"containers": containers,
        "initContainers": [{"name": "init", "image": "c"}]}});
    server.post(PODS, &pod).await.expect_success();
    server
}

async fn enter(server: &Server, rest: &str) -> crate::server::Answer {
    server.with_headers(Method::GET, &format!("{PODS}/{rest}"), &UPGRADE, &Value::Null).await
}

#[tokio::test]
async fn to_get_a_session_is_to_create_one() {
    let server = with_pod().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "look"}, "rules": rules});
    server.post(&format!("{roles}/roles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": "look"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "look"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]});
    server.post(&format!("{roles}/rolebindings"), &binding).await.expect_success();
    let eve = server.as_user(Identity::new("eve", []));
    let refused =
        enter(&eve, "one/exec?command=true&stdout=1&container=first").await.failed(403, "Forbidden");
    assert!(refused.starts_with("pods \"one\" is forbidden: User \"eve\" cannot create"), "{refused}");
    server
        .merge(
            &format!("{roles}/roles/look"),
            &json!({"rules": [
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]}]}),
        )
        .await
        .expect_success();
    let next = enter(&eve, "one/exec?command=true&stdout=1&container=first").await.failed(400, "BadRequest");
    assert_eq!(next, "pod one does not have a host assigned");
}

#[tokio::test]
async fn a_container_must_be_meant_and_be_there() {
    let server = with_pod().await;
    let why = enter(&server, "one/exec?command=true&stdout=1").await.failed(400, "BadRequest");
    assert_eq!(why, "a container name must be specified for pod one, choose one of: [init first second]");
    let why = enter(&server, "one/attach?stdout=1&container=x").await.failed(400, "BadRequest");
    assert_eq!(why, "container x is not valid for pod one");
    let why = enter(&server, "none/exec?command=true&stdout=1").await.failed(404, "NotFound");
    assert_eq!(why, "pods \"none\" not found");
}

#[tokio::test]
async fn a_server_without_nodes_says_that_nobody_runs_containers() {
    let server = with_pod().await;
    let binding = json!({"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "far"}});
    server.post(&format!("{PODS}/one/binding"), &binding).await.expect_success();
    let running = json!({"status": {"containerStatuses": [{"name": "first", "image": "a", "imageID": "",
        "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}});
    server.merge(&format!("{PODS}/one/status"), &running).await.expect_success();
    let why =
        enter(&server, "one/exec?command=true&stdout=1&container=first").await.failed(500, "InternalError");
    assert!(why.contains("started without nodes"), "{why}");
}

#[tokio::test]
async fn admission_is_asked_about_what_will_be_run() {
    let server = with_pod().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]});
    let policy = json!({"metadata": {"name": "no-shell"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.command[0] != 'sh'", "message": "no shells here"}]}});
    server.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.expect_success();
    let binding = json!({"metadata": {"name": "no-shell"},
        "spec": {"policyName": "no-shell", "validationActions": ["Deny"]}});
    server.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).await.expect_success();
    let refused = enter(&server, "one/exec?command=sh&stdout=1&container=first").await;
    assert!(refused.body["message"].as_str().unwrap().contains("no shells here"), "{}", refused.body);
    let next = enter(&server, "one/exec?command=ls&stdout=1&container=first").await.failed(400, "BadRequest");
    assert_eq!(next, "pod one does not have a host assigned");
}
