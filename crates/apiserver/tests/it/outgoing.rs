//! Calls out of the server go where somebody means them to, and never to what is simulated.

use serde_json::{Value, json};

use crate::server::Server;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn webhook(client: &Value) -> Value {
    json!({"metadata": {"name": "hook"}, "webhooks": [{"name": "hook.example.com", "clientConfig": client,
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]}]})
}

/// What a client is told whose write asks such a webhook.
async fn told(server: &Server, client: &Value) -> String {
    server.post(WEBHOOKS, &webhook(client)).await.expect_success();
    let map = json!({"metadata": {"name": "a"}});
    let told = server.post(CONFIG_MAPS, &map).await.failed(500, "InternalError");
    server.delete(&format!("{WEBHOOKS}/hook"), &Value::Null).await.expect_success();
    told
}

#[tokio::test]
async fn a_service_on_a_simulated_pod_is_refused_and_says_what_to_do() {
    let server = Server::new();
    let pod = json!({"metadata": {"name": "hook-pod"}, "spec": {"containers": [{"name": "main", "image": "hook"}]}});
    server.post("/api/v1/namespaces/default/pods", &pod).await.expect_success();
    let status = json!({"status": {"podIP": "10.244.0.9", "podIPs": [{"ip": "10.244.0.9"}]}});
    server.merge("/api/v1/namespaces/default/pods/hook-pod/status", &status).await.expect_success();
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}});
    server.post("/api/v1/namespaces/default/services", &service).await.expect_success();
    let slice = json!({"metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4", "ports": [{"name": "", "port": 8443}], "endpoints": [{"addresses": ["10.244.0.9"]}]});
    server.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await.expect_success();
    let service = json!({"service": {"namespace": "default", "name": "hooks"}});
    // By its Service, and by an address that somebody looked up.
    for client in [service, json!({"url": "https://10.244.0.9:8443/"})] {
        let told = told(&server, &client).await;
        assert!(
            told.contains("Pod hook-pod, which is simulated") && told.contains("--webhook-url"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn addresses_that_nobody_means_are_not_dialled() {
    let server = Server::new();
    for url in [
        "https://169.254.169.254/latest",
        "https://[::ffff:a9fe:a9fe]/",
        "https://0.0.0.0:9443/",
        "https://[fe80::1]/",
    ] {
        let told = told(&server, &json!({"url": url})).await;
        assert!(told.contains("refused to call"), "{url}: {told}");
    }
}

#[tokio::test]
async fn a_request_ends_when_its_time_is_over_whatever_a_webhook_does() {
    let server = Server::new();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let mut slow = webhook(&json!({"url": url}));
    slow["webhooks"][0]["timeoutSeconds"] = json!(30);
    server.post(WEBHOOKS, &slow).await.expect_success();
    let map = json!({"metadata": {"name": "a"}});
    let told = server.post(&format!("{CONFIG_MAPS}?timeout=300ms"), &map).await.failed(504, "Timeout");
    assert_eq!(told, "Timeout: request did not complete within the allotted timeout");
    let told = server.post(&format!("{CONFIG_MAPS}?timeout=soon"), &map).await.failed(400, "BadRequest");
    assert!(told.contains("invalid timeout"), "{told}");
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.status, 404, "nothing was written");
}
