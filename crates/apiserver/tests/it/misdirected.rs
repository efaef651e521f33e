//! Requests of every verb that are sent twice, to the wrong place, or by somebody who leaves: each is answered, and nothing
//! of it is left that was not asked for.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::{
    admission::configure,
    hook::Hook,
    server::{Answer, DEPLOYMENTS, PODS, Server, deployment},
    shapes::{self, Shape},
};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Every way to send a body, and the verbs without one.
const WAYS: [(Method, &str); 9] = [
    (Method::GET, JSON),
    (Method::HEAD, JSON),
    (Method::POST, JSON),
    (Method::PUT, JSON),
    (Method::PATCH, MERGE),
    (Method::PATCH, STRATEGIC),
    (Method::PATCH, PATCH),
    (Method::PATCH, APPLY),
    (Method::DELETE, JSON),
];

/// Refused or done, and never a failure of the server. 503 is Kubernetes' own word for a kind that it cannot serve, 500
/// stands for errors that it gives no reason of its own.
fn is_answer(answer: &Answer) -> bool {
    let status = answer.status.as_u16();
    let message = answer.body["message"].as_str().unwrap_or_default();
    status < 500
        || status == 504
        || (status == 500 && !message.contains("panicked") && answer.body["reason"].is_null())
}

async fn send(server: &Server, (method, media): &(Method, &str), path: &str, body: &Value) -> Answer {
    let joint = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{joint}fieldManager=test");
    server.send(method.clone(), &path, media, JSON, body).await
}

/// The body of one kind at the place of another, of another name, in another namespace, in one that is missing and has the
/// object's own name: for every kind and every verb.
#[tokio::test]
async fn every_verb_at_every_wrong_place_is_answered() {
    let server = Server::new();
    let shapes = shapes::built_in(&server).await;
    assert!(shapes.len() > 60, "{}", shapes.len());
    let (mut sent, mut wrong) = (0, Vec::new());
    for (index, shape) in shapes.iter().enumerate() {
        let name = shape.specimen["metadata"]["name"].as_str().unwrap_or("foo").to_owned();
        let strangers = [1, 7, 31].map(|by| shapes[(index + by) % shapes.len()].specimen.clone());
        let mut renamed = shape.specimen.clone();
        renamed["metadata"]["name"] = json!("another");
        let mut moved = shape.specimen.clone();
        moved["metadata"]["namespace"] = json!("another");
        let bodies = strangers.into_iter().chain([
            renamed,
            moved,
            shape.specimen.clone(),
            json!([]),
            json!({"kind": 7}),
        ]);
        let missing = shape.path.replace("/namespaces/default/", &format!("/namespaces/{name}/"));
        let bodies: Vec<Value> = bodies.collect();
        let places = [
            shape.path.clone(),
            format!("{}/{name}", shape.path),
            format!("{}/{name}/status", shape.path),
            format!("{}/{name}/scale", shape.path),
            format!("{}/{name}/nothing", shape.path),
            missing.clone(),
            format!("{missing}/{name}"),
        ];
        for place in &places {
            for way in &WAYS {
                for body in &bodies {
                    let dry = format!("{place}?dryRun=All");
                    let answer = send(&server, way, &dry, body).await;
                    sent += 1;
                    if !is_answer(&answer) {
                        wrong.push(format!("{way:?} {place} {body}: {} {}", answer.status, answer.body));
                    }
                }
            }
        }
    }
    assert!(sent > 20_000, "{sent}");
    assert!(wrong.is_empty(), "{} of {sent}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// The same request twice at once: one of them is first, and nothing is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_alike_one_is_first() {
    let server = Server::new();
    let mut tried = 0;
    for shape in shapes::built_in(&server).await {
        tried += usize::from(twins(&server, &shape).await);
    }
    assert!(tried > 40, "{tried} kinds were tried");
}

async fn both(server: &Server, way: (Method, &'static str), path: &str, body: &Value) -> [u16; 2] {
    let one = || {
        let (server, way, path, body) = (server.clone(), way.clone(), path.to_owned(), body.clone());
        tokio::spawn(async move { send(&server, &way, &path, &body).await.status.as_u16() })
    };
    let (first, second) = tokio::join!(one(), one());
    let mut statuses = [first.unwrap(), second.unwrap()];
    statuses.sort_unstable();
    statuses
}

async fn twins(server: &Server, shape: &Shape) -> bool {
    let mut object = shape.specimen.clone();
    object["metadata"]["name"] = json!("twin");
    let path = match shape.kind.as_str() {
        // Their names say what they are.
        "CustomResourceDefinition" | "APIService" => return false,
        _ => format!("{}/twin", shape.path),
    };
    let created = both(server, (Method::POST, JSON), &shape.path, &object).await;
    let stored = server.get(&path).await;
    if stored.status != 200 {
        // A specimen that is refused, or a review, which is answered and not kept.
        assert_eq!(created[0], created[1], "{}: {created:?}", shape.kind);
        return false;
    }
    assert_eq!(created, [201, 409], "{}", shape.kind);
    let mut changed = stored.body;
    changed["metadata"]["labels"]["turn"] = json!("first");
    let updated = both(server, (Method::PUT, JSON), &path, &changed).await;
    assert_eq!(updated, [200, 409], "{}", shape.kind);
    let patch = json!([{"op": "test", "path": "/metadata/labels/turn", "value": "first"},
        {"op": "replace", "path": "/metadata/labels/turn", "value": "second"}]);
    assert_eq!(both(server, (Method::PATCH, PATCH), &path, &patch).await, [200, 422], "{}", shape.kind);
    let merge = json!({"metadata": {"labels": {"turn": "third"}}});
    assert_eq!(both(server, (Method::PATCH, MERGE), &path, &merge).await, [200, 200], "{}", shape.kind);
    let options = json!({"preconditions": {"uid": changed["metadata"]["uid"]}, "gracePeriodSeconds": 0});
    let removed = both(server, (Method::DELETE, JSON), &path, &options).await;
    // What waits for a finalizer can be asked to go twice.
    let waits = server.get(&path).await.status == 200;
    assert_eq!(removed, if waits { [200, 200] } else { [200, 404] }, "{}", shape.kind);
    server.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
    true
}

/// Somebody who leaves while others are being asked takes the request along: what was there is there as it was.
#[tokio::test]
async fn who_leaves_while_a_webhook_is_asked_leaves_nothing_behind() {
    let server = Server::new();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, &pod).await.expect_success();
    let free = json!({"metadata": {"name": "free"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, &free).await.expect_success();
    server.post(DEPLOYMENTS, &deployment("web")).await.expect_success();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server.post(accounts, &json!({"metadata": {"name": "robot"}})).await.expect_success();
    let services = "/api/v1/namespaces/default/services";
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "10.96.77.77", "ports": [{"port": 80}]}});
    let hook = Hook::start(&["127.0.0.1"], |_| json!({"delay": 3600, "review": {"allowed": true}})).await;
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    for style in ["Mutating", "Validating"] {
        configure(&server, style, "all", &hook.client_config(), &rules, &json!({})).await;
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let scale = json!({"spec": {"replicas": 7}});
        let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
        let status = json!({"status": {"phase": "Failed"}});
        let requests = [
            (Method::POST, JSON, services.to_owned(), service.clone()),
            (
                Method::POST,
                JSON,
                PODS.to_owned(),
                json!({"metadata": {"generateName": "x-"}, "spec": pod["spec"]}),
            ),
            (Method::PATCH, MERGE, format!("{PODS}/p"), labels.clone()),
            (Method::PATCH, STRATEGIC, format!("{DEPLOYMENTS}/web"), labels.clone()),
            (Method::PATCH, APPLY, "/api/v1/namespaces/default/configmaps/new".to_owned(), apply),
            (Method::PATCH, MERGE, format!("{DEPLOYMENTS}/web/scale"), scale),
            (Method::PATCH, MERGE, format!("{PODS}/p/status"), status),
            (Method::PUT, JSON, format!("{DEPLOYMENTS}/web"), deployment("web")),
            (Method::DELETE, JSON, format!("{PODS}/p"), Value::Null),
            (Method::DELETE, JSON, PODS.to_owned(), Value::Null),
            (Method::POST, JSON, format!("{PODS}/p/eviction"), json!({"metadata": {"name": "p"}})),
            (
                Method::POST,
                JSON,
                format!("{PODS}/free/binding"),
                json!({"metadata": {"name": "free"}, "target": {"name": "n"}}),
            ),
            (Method::POST, JSON, format!("{accounts}/robot/token"), json!({"spec": {}})),
        ];
        let revision = server.registry().store().revision();
        for (method, media, path, body) in requests {
            let asked = hook.seen().len();
            let leaving = {
                let (server, path) = (server.clone(), path.clone());
                tokio::spawn(async move { send(&server, &(method, media), &path, &body).await.status })
            };
            for turn in 0.. {
                assert!(turn < 2000 && !leaving.is_finished(), "{style} {path}: the webhook is not asked");
                if hook.seen().len() > asked {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            leaving.abort();
            let _ = leaving.await;
            assert_eq!(server.registry().store().revision(), revision, "{style} {path} changed something");
        }
        let path = format!(
            "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/all",
            style.to_lowercase()
        );
        server.delete(&path, &Value::Null).await.expect_success();
    }
    // The address that was meant for what was never made is free.
    server.post(services, &service).await.expect_success();
}
