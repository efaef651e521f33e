//! Who may have a certificate, and who may say so.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use windlass_apiserver::auth::Identity;

use crate::server::Server;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// A request whose subject is `CN=somebody`, and `O=system:masters` where it is for the masters.
fn pem(masters: bool) -> &'static str {
    if masters { include_str!("certificates/masters.pem") } else { include_str!("certificates/somebody.pem") }
}

fn request(name: &str, signer: &str, masters: bool) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "signerName": signer, "usages": ["client auth"], "request": STANDARD.encode(pem(masters))}})
}

/// A server, and somebody who may write requests in every way but for what `rules` add.
async fn somebody(rules: Value) -> (Server, Server) {
    let server = Server::new();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut all = vec![json!({"apiGroups": ["certificates.k8s.io"], "verbs": ["*"], "resources": [
        "certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"]})];
    all.extend(rules.as_array().unwrap().iter().cloned());
    let role = json!({"metadata": {"name": "certifier"}, "rules": all});
    server.post(&format!("{rbac}/clusterroles"), &role).await.expect_success();
    let binding = json!({"metadata": {"name": "certifier"}, "subjects": [{"kind": "User", "name": "eve"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "certifier"}});
    server.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect_success();
    let eve = server.as_user(Identity::new("eve", []));
    (server, eve)
}

fn approved(request: &Value) -> Value {
    let mut request = request.clone();
    request["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "r"}]);
    request
}

#[tokio::test]
async fn nobody_becomes_a_master_by_a_certificate() {
    let server = Server::new();
    let message = server.post(REQUESTS, &request("a", CLIENT, true)).await.failed(403, "Forbidden");
    assert_eq!(
        message,
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of kubernetes.io/kube-apiserver-client \
         signer with system:masters group is not allowed"
    );
    server.post(REQUESTS, &request("a", CLIENT, false)).await.expect_success();
    server.post(REQUESTS, &request("b", "example.com/other", true)).await.expect_success();
}

#[tokio::test]
async fn approval_needs_the_right_to_approve_for_the_signer() {
    let (server, eve) = somebody(json!([])).await;
    let made = server.post(REQUESTS, &request("a", CLIENT, false)).await.expect_success();
    let path = format!("{REQUESTS}/a/approval");
    let message = eve.put(&path, &approved(&made)).await.failed(403, "Forbidden");
    assert!(
        message.ends_with(
            "user not permitted to approve requests with signerName \"kubernetes.io/kube-apiserver-client\""
        ),
        "{message}"
    );
    server.put(&path, &approved(&made)).await.expect_success();
    for names in [CLIENT, "kubernetes.io/*"] {
        let rule = json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"],
            "resourceNames": [names]}]);
        let (server, eve) = somebody(rule).await;
        let made = server.post(REQUESTS, &request("a", CLIENT, false)).await.expect_success();
        eve.put(&path, &approved(&made)).await.expect_success();
        let other = server.post(REQUESTS, &request("b", "example.com/other", false)).await.expect_success();
        eve.put(&format!("{REQUESTS}/b/approval"), &approved(&other)).await.failed(403, "Forbidden");
    }
}

#[tokio::test]
async fn signing_needs_the_right_to_sign_for_the_signer() {
    let rule = json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["sign"],
        "resourceNames": ["example.com/mine"]}]);
    let (server, eve) = somebody(rule).await;
    for (name, signer, allowed) in [("a", CLIENT, false), ("b", "example.com/mine", true)] {
        let mut made = server.post(REQUESTS, &request(name, signer, false)).await.expect_success();
        made["status"]["certificate"] =
            json!(STANDARD.encode("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"));
        let answer = eve.put(&format!("{REQUESTS}/{name}/status"), &made).await;
        if allowed {
            answer.expect_success();
        } else {
            let message = answer.failed(403, "Forbidden");
            assert!(message.contains("user not permitted to sign requests with signerName"), "{message}");
        }
    }
}
