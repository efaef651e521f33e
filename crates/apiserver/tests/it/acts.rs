//! Subresources that are verbs: an eviction, a binding, a request for a token. Who is asked about them, and who refuses.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};

use crate::{
    admission::{configure, patch, rule},
    hook::Hook,
    server::{PODS, Server},
};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn pod(server: &Server, name: &str, phase: &str, ready: bool) -> Value {
    let pod = json!({"metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let mut pod = server.post(PODS, &pod).await.expect_success();
    let ready = if ready { "True" } else { "False" };
    pod["status"] = json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
    server.put(&format!("{PODS}/{name}/status"), &pod).await.expect_success()
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

async fn budget(server: &Server, spec: Value, status: Value) {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "x"}});
    let mut made =
        server.post(BUDGETS, &json!({"metadata": {"name": "b"}, "spec": spec})).await.expect_success();
    made["status"] = status;
    made["status"]["observedGeneration"] = json!(1);
    server.put(&format!("{BUDGETS}/b/status"), &made).await.expect_success();
}

/// An eviction is what webhooks are asked about, not the deletion that follows from it.
#[tokio::test]
async fn webhooks_are_asked_about_the_eviction_and_not_about_the_deletion() {
    let server = Server::new();
    for name in ["a", "b"] {
        pod(&server, name, "Running", true).await;
    }
    let (evictions, others) =
        (Hook::responding(json!({"allowed": true})).await, Hook::responding(json!({"allowed": false})).await);
    let rules = json!([rule(&["*"], "", &["pods/eviction"])]);
    for kind in ["Mutating", "Validating"] {
        configure(&server, kind, "evictions", &evictions.client_config(), &rules, &json!({})).await;
        let pods = json!([rule(&["*"], "", &["pods", "pods/status"])]);
        configure(&server, kind, "pods", &others.client_config(), &pods, &json!({})).await;
    }
    let dry = server.post(&format!("{PODS}/a/eviction?dryRun=All"), &eviction("a")).await;
    assert_eq!(dry.status, 201, "{}", dry.body);
    assert!(
        server.get(&format!("{PODS}/a")).await.expect_success()["metadata"]["deletionTimestamp"].is_null()
    );
    assert_eq!(server.post(&format!("{PODS}/a/eviction"), &eviction("a")).await.status, 201);
    let gone = server.get(&format!("{PODS}/a")).await.expect_success();
    assert!(gone["metadata"]["deletionTimestamp"].is_string());
    assert!(gone["status"]["conditions"].to_string().contains("EvictionByEvictionAPI"), "{}", gone["status"]);
    assert_eq!(others.seen().len(), 0, "nobody deletes but the server");
    let seen = evictions.seen();
    assert_eq!(seen.len(), 4, "a mutating and a validating webhook, a dry run and an eviction");
    for (review, dry) in seen.iter().zip([true, true, false, false]) {
        let request = &review["request"];
        assert_eq!(request["operation"], "CREATE");
        assert_eq!(request["kind"], json!({"group": "policy", "version": "v1", "kind": "Eviction"}));
        assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "pods"}));
        assert_eq!((&request["subResource"], &request["name"]), (&json!("eviction"), &json!("a")));
        assert_eq!(request["object"]["metadata"], json!({"name": "a", "namespace": "default"}));
        assert_eq!((&request["oldObject"], &request["dryRun"]), (&Value::Null, &json!(dry)));
    }
    // Who deletes is asked as before.
    assert_eq!(server.delete(&format!("{PODS}/b"), &Value::Null).await.status, 400);
}

#[tokio::test]
async fn a_webhook_can_refuse_an_eviction_and_change_it() {
    let server = Server::new();
    for name in ["a", "b"] {
        pod(&server, name, "Running", true).await;
    }
    let shorter =
        patch(&json!([{"op": "add", "path": "/deleteOptions", "value": {"gracePeriodSeconds": 3}}]));
    let (mutating, validating) = (
        Hook::responding(shorter).await,
        Hook::start(
            &["127.0.0.1"],
            |review| json!({"review": {"allowed": review["request"]["name"] != "b"}}),
        )
        .await,
    );
    let rules = json!([rule(&["CREATE"], "", &["pods/eviction"])]);
    configure(&server, "Mutating", "m", &mutating.client_config(), &rules, &json!({})).await;
    configure(&server, "Validating", "v", &validating.client_config(), &rules, &json!({})).await;
    assert_eq!(server.post(&format!("{PODS}/a/eviction"), &eviction("a")).await.status, 201);
    let going = server.get(&format!("{PODS}/a")).await.expect_success();
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 3);
    assert_eq!(server.post(&format!("{PODS}/b/eviction"), &eviction("b")).await.status, 400);
    assert!(
        server.get(&format!("{PODS}/b")).await.expect_success()["metadata"]["deletionTimestamp"].is_null()
    );
}

/// A refused eviction takes nothing from the budget; a budget that is changed is changed by the server.
#[tokio::test]
async fn a_budget_pays_for_evictions_that_happen_and_for_no_others() {
    let server = Server::new();
    pod(&server, "a", "Running", true).await;
    budget(
        &server,
        json!({"minAvailable": 1}),
        json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}),
    )
    .await;
    let allowed = async || {
        let budget = server.get(&format!("{BUDGETS}/b")).await.expect_success();
        budget["status"]["disruptionsAllowed"].as_i64()
    };
    let refusing = Hook::responding(json!({"allowed": false})).await;
    let rules = json!([rule(&["CREATE"], "", &["pods/eviction"])]);
    configure(&server, "Validating", "v", &refusing.client_config(), &rules, &json!({})).await;
    assert_eq!(server.post(&format!("{PODS}/a/eviction"), &eviction("a")).await.status, 400);
    assert_eq!(allowed().await, Some(1));
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    server.delete(&format!("{hooks}/v"), &Value::Null).await.expect_success();
    for wrong in [
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}),
        json!({"apiVersion": "policy/v1", "kind": "Eviction"}),
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "other"}}),
    ] {
        let answer = server.post(&format!("{PODS}/a/eviction"), &wrong).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.body);
    }
    let stale = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"},
        "deleteOptions": {"preconditions": {"uid": "another"}}});
    server.post(&format!("{PODS}/a/eviction?dryRun=All"), &eviction("a")).await.expect_success();
    assert_eq!(allowed().await, Some(1));
    assert_eq!(server.post(&format!("{PODS}/a/eviction"), &stale).await.status, 409);
    // As in Kubernetes, what was taken before the Pod turned out to be another one is not given back.
    assert_eq!(allowed().await, Some(0));
    let refused = server.post(&format!("{PODS}/a/eviction"), &eviction("a")).await;
    assert_eq!(refused.status, 429);
    assert!(
        refused.body.to_string().contains("needs 1 healthy pods and has 2 currently")
            || refused.body.to_string().contains("does not allow evicting pods currently"),
        "{}",
        refused.body
    );
}

/// Pods that nobody misses go without a disruption, whatever the budget says.
#[tokio::test]
async fn what_a_budget_does_not_count_may_go() {
    let none = json!({"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3});
    for (phase, ready, policy, status) in [
        ("Running", true, "IfHealthyBudget", 429),
        ("Running", false, "IfHealthyBudget", 201),
        ("Running", false, "AlwaysAllow", 201),
        ("Pending", false, "IfHealthyBudget", 201),
        ("Failed", false, "IfHealthyBudget", 201),
    ] {
        let server = Server::new();
        pod(&server, "a", phase, ready).await;
        budget(&server, json!({"minAvailable": 2, "unhealthyPodEvictionPolicy": policy}), none.clone()).await;
        let answer = server.post(&format!("{PODS}/a/eviction"), &eviction("a")).await;
        assert_eq!(answer.status, status, "{phase} {ready} {policy}: {}", answer.body);
        let budget = server.get(&format!("{BUDGETS}/b")).await.expect_success();
        assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    }
}

#[tokio::test]
async fn a_namespace_that_ends_takes_no_eviction_no_binding_and_no_token() {
    let server = Server::new();
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect_success();
    let pods = "/api/v1/namespaces/n/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect_success();
    let account = json!({"metadata": {"name": "robot"}});
    server.post("/api/v1/namespaces/n/serviceaccounts", &account).await.expect_success();
    server.delete("/api/v1/namespaces/n", &Value::Null).await.expect_success();
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "node"}});
    for (path, body) in [
        (format!("{pods}/a/eviction"), eviction("a")),
        (format!("{pods}/a/binding"), binding),
        ("/api/v1/namespaces/n/serviceaccounts/robot/token".into(), json!({"spec": {}})),
    ] {
        let message = server.post(&path, &body).await.failed(403, "Forbidden");
        assert!(message.contains("because it is being terminated"), "{path}: {message}");
        let missing = path.replace("/n/", "/missing/");
        let message = server.post(&missing, &body).await.failed(404, "NotFound");
        assert_eq!(message, "namespaces \"missing\" not found");
    }
}

#[tokio::test]
async fn a_binding_binds_the_pod_that_is_meant() {
    let server = Server::new();
    let create = async |name: &str, spec: Value| {
        let mut all = json!({"containers": [{"name": "c", "image": "i"}]});
        for (key, value) in spec.as_object().unwrap() {
            all[key] = value.clone();
        }
        server.post(PODS, &json!({"metadata": {"name": name}, "spec": all})).await.expect_success()
    };
    create("a", json!({})).await;
    create("gated", json!({"schedulingGates": [{"name": "example.com/gate"}]})).await;
    let target = json!({"kind": "Node", "name": "node"});
    for (name, body, status) in [
        ("a", json!({"metadata": {"name": "b"}, "target": target}), 400),
        ("a", json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), 400),
        ("a", json!({"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "node"}}), 500),
        ("a", json!({"metadata": {"name": "a"}, "target": {"kind": "Node"}}), 500),
        ("a", json!({"metadata": {"name": "a", "uid": "another"}, "target": target}), 409),
        ("gated", json!({"metadata": {"name": "gated"}, "target": target}), 409),
    ] {
        let answer = server.post(&format!("{PODS}/{name}/binding"), &body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(server.get(&format!("{PODS}/{name}")).await.expect_success()["spec"]["nodeName"].is_null());
    }
    let binding = json!({"metadata": {"name": "a", "annotations": {"x": "y"}, "labels": {"zone": "z"}}, "target": target});
    server.post(&format!("{PODS}/a/binding?dryRun=All"), &binding).await.expect_success();
    assert!(server.get(&format!("{PODS}/a")).await.expect_success()["spec"]["nodeName"].is_null());
    server.post(&format!("{PODS}/a/binding"), &binding).await.expect_success();
    let bound = server.get(&format!("{PODS}/a")).await.expect_success();
    assert_eq!(bound["spec"]["nodeName"], "node");
    assert_eq!(
        (&bound["metadata"]["annotations"]["x"], &bound["metadata"]["labels"]["zone"]),
        (&json!("y"), &json!("z"))
    );
    assert_eq!(server.post(&format!("{PODS}/a/binding"), &binding).await.status, 409);
    // The older way to say it.
    create("b", json!({})).await;
    let binding = json!({"metadata": {"name": "b"}, "target": target});
    server.post("/api/v1/namespaces/default/bindings", &binding).await.expect_success();
    assert_eq!(server.get(&format!("{PODS}/b")).await.expect_success()["spec"]["nodeName"], "node");
}

#[tokio::test]
async fn webhooks_are_asked_about_tokens() {
    let server = Server::new();
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect_success();
    let hook = Hook::start(&["127.0.0.1"], |review| {
        let object = &review["request"]["object"];
        json!({"review": {"allowed": object["spec"]["audiences"] != json!(["elsewhere"])}})
    })
    .await;
    let rules = json!([rule(&["CREATE"], "", &["serviceaccounts/token"])]);
    configure(&server, "Validating", "v", &hook.client_config(), &rules, &json!({})).await;
    let path = format!("{ACCOUNTS}/robot/token");
    assert_eq!(server.post(&path, &json!({"spec": {"audiences": ["elsewhere"]}})).await.status, 400);
    let given = server.post(&path, &json!({"spec": {"audiences": ["here"]}})).await.expect_success();
    assert!(given["status"]["token"].is_string());
    for review in hook.seen() {
        assert!(!review.to_string().contains("eyJ"), "a webhook sees the request, never a token: {review}");
        assert_eq!(review["request"]["kind"]["kind"], "TokenRequest");
    }
    let other = json!({"metadata": {"name": "another"}, "spec": {}});
    assert_eq!(server.post(&path, &other).await.status, 422);
    let other = json!({"metadata": {"uid": "another"}, "spec": {}});
    assert_eq!(server.post(&path, &other).await.status, 409);
}

/// Plug-ins have their say about what a webhook added: a container of a sidecar injector is a container like any other.
#[tokio::test]
async fn what_a_webhook_adds_is_completed_by_the_server() {
    let server = Server::new();
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"},
        "defaultRequest": {"cpu": "1"}}]}});
    server.post("/api/v1/namespaces/default/limitranges", &range).await.expect_success();
    let sidecar =
        json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "i"}}]);
    let hook = Hook::responding(patch(&sidecar)).await;
    let rules = json!([rule(&["CREATE"], "", &["pods"])]);
    configure(&server, "Mutating", "m", &hook.client_config(), &rules, &json!({})).await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = server.post(PODS, &pod).await.expect_success();
    let containers = made["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2, "a webhook that did not ask for it is not asked again");
    for container in containers {
        assert_eq!(container["resources"]["limits"]["cpu"], "2", "{container}");
        let mounts = container["volumeMounts"].to_string();
        assert!(mounts.contains("/var/run/secrets/kubernetes.io/serviceaccount"), "{container}");
    }
    let volumes = made["spec"]["volumes"].as_array().unwrap();
    assert_eq!(volumes.iter().filter(|one| one["projected"].is_object()).count(), 1, "{volumes:?}");
}

/// What cannot be answered is not done.
#[tokio::test]
async fn an_answer_that_nobody_can_give_changes_nothing() {
    let server = Server::new();
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let send = async |method: Method, path: &str, media: &str, body: &Value| {
        server.send(method, path, media, "application/xml", body).await.status.as_u16()
    };
    let one = format!("{PODS}/a");
    assert_eq!(send(Method::POST, PODS, "application/json", &pod).await, 406);
    server.get(&one).await.failed(404, "NotFound");
    let before = server.post(PODS, &pod).await.expect_success();
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(send(Method::PATCH, &one, "application/merge-patch+json", &patch).await, 406);
    assert_eq!(send(Method::PUT, &one, "application/json", &before).await, 406);
    assert_eq!(send(Method::DELETE, &one, "application/json", &Value::Null).await, 406);
    assert_eq!(send(Method::DELETE, PODS, "application/json", &Value::Null).await, 406);
    assert_eq!(server.get(&one).await.expect_success(), before);
}

/// A token names its Secret, also where the server makes that name.
#[tokio::test]
async fn a_secret_with_a_made_name_gets_a_token_that_is_known() {
    let server = Server::new();
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect_success();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"generateName": "robot-", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token"});
    let made = server.post(secrets, &secret).await.expect_success();
    let name = made["metadata"]["name"].as_str().unwrap();
    let filled = server.get(&format!("{secrets}/{name}")).await.expect_success();
    let token = filled["data"]["token"].as_str().expect("a token");
    let token = String::from_utf8(STANDARD.decode(token).unwrap()).unwrap();
    let review = json!({"spec": {"token": token}});
    let review = server.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.expect_success();
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:robot", "{review}");
}
