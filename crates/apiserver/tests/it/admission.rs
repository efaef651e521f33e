//! Admission webhooks: recorded answers of the real server, and what a recording cannot show.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};
use windlass_apiserver::webhook::ServicePort;

use crate::{
    hook::{Hook, Script, certificates},
    server::{CONFIG_MAPS, DEFINITIONS, DEPLOYMENTS, Server, config_map, deployment},
};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Where this server differs from the recorded one, and what it says instead.
const DIFFERENT: [(&str, &str); 1] = [(
    // A webhook must not send the server elsewhere.
    "redirect",
    "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: the server \
     responded with the status code 302 but did not return more information",
)];

pub(crate) fn rule(operations: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": resources})
}

fn configuration(kind: &str, name: &str, client: &Value, rules: &Value, more: &Value) -> Value {
    let mut hook = json!({"name": "hook.example.com", "clientConfig": client, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": rules});
    for (field, value) in more.as_object().into_iter().flatten() {
        hook[field] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": [hook]})
}

pub(crate) async fn configure(
    server: &Server,
    kind: &str,
    name: &str,
    client: &Value,
    rules: &Value,
    more: &Value,
) {
    let path = format!("{GROUP}/{}webhookconfigurations", kind.to_lowercase());
    server.post(&path, &configuration(kind, name, client, rules, more)).await.expect_success();
}

pub(crate) fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

fn normal(text: &str, hook: &Hook, refused: u16) -> String {
    let text = text.replace(&hook.address.to_string(), "127.0.0.1:PORT");
    let text = text.replace(&format!("127.0.0.1:{refused}"), "127.0.0.1:PORT");
    let uid = regex::Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap();
    uid.replace_all(&text, "UID").into_owned()
}

/// Plays one recorded case on a new server and returns what it answered, normalised.
async fn play(case: &Value) -> (u64, Value, Value) {
    let (name, config, script) = (case["name"].as_str().unwrap(), &case["config"], case["script"].clone());
    let names: &[&str] =
        if config["server"] == "wrongname" { &["elsewhere.example"] } else { &["127.0.0.1", "localhost"] };
    let hook = Hook::start(names, move |_| script.clone() as Script).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut client = if config["service"].is_object() {
        json!({"service": config["service"]})
    } else if config["refused"] == json!(true) {
        json!({"url": format!("https://127.0.0.1:{free}/hook")})
    } else {
        json!({"url": hook.url()})
    };
    match config.get("ca") {
        None => client["caBundle"] = json!(hook.bundle),
        Some(Value::Null) => {}
        Some(_) => client["caBundle"] = json!(certificates(&["other"]).1),
    }
    let mut more = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}});
    for field in ["timeoutSeconds", "failurePolicy", "matchConditions", "admissionReviewVersions"] {
        if let Some(value) = config.get(field) {
            more[field] = value.clone();
        }
    }
    let kind = if config["mutating"] == json!(true) { "Mutating" } else { "Validating" };
    let operation = config["operation"].as_str().unwrap_or("CREATE");
    let server = Server::new();
    let mut object = config_map("subject", &Value::Null);
    object["data"] = json!({"x": "1"});
    if operation != "CREATE" {
        server.post(CONFIG_MAPS, &object).await.expect_success();
    }
    configure(&server, kind, "hook", &client, &json!([rule(&[operation], "", &["configmaps"])]), &more).await;
    let one = format!("{CONFIG_MAPS}/subject");
    let answer = match operation {
        "CREATE" => {
            let query = config["query"].as_str().unwrap_or_default();
            server.post(&format!("{CONFIG_MAPS}{query}"), &object).await
        }
        "DELETE" => server.delete(&one, &Value::Null).await,
        _ => {
            object["data"] = json!({"x": "2"});
            server.put(&one, &object).await
        }
    };
    let mut body = answer.body;
    if answer.status.is_success() && body["kind"] != "Status" {
        let mut managed = body["metadata"]["managedFields"].clone();
        for entry in managed.as_array_mut().into_iter().flatten() {
            entry.as_object_mut().unwrap().remove("time");
        }
        body = json!({"metadata": {"labels": body["metadata"]["labels"]}, "managedFields": managed,
            "data": body["data"]});
    }
    let body = serde_json::from_str(&normal(&body.to_string(), &hook, free)).unwrap();
    assert!(!name.is_empty());
    (answer.status.as_u16().into(), json!(answer.warnings), body)
}

#[tokio::test]
async fn webhooks_are_asked_and_understood_as_the_real_server_does() {
    let cases: Value = serde_json::from_str(include_str!("../fixtures/admission/webhooks.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (status, warnings, body) = Box::pin(play(case)).await;
        let expected = &case["answer"];
        if let Some((_, message)) = DIFFERENT.iter().find(|(other, _)| *other == name) {
            assert_eq!(body["message"], *message, "{name}");
            continue;
        }
        if (&json!(status), &warnings, &body)
            != (&expected["status"], &expected["warnings"], &expected["body"])
        {
            wrong.push(format!("{name}:\n  ours {status} {warnings} {body}\n  real {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_webhook_sees_the_request_the_user_and_both_versions() {
    let hook = Hook::responding(json!({"allowed": true})).await;
    let server = Server::new();
    let rules = json!([rule(&["*"], "", &["configmaps"])]);
    configure(&server, "Validating", "all", &hook.client_config(), &rules, &json!({})).await;
    let mut object = config_map("a", &json!({"app": "web"}));
    object["data"] = json!({"x": "1"});
    server.post(CONFIG_MAPS, &object).await.expect_success();
    server.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"x": "2"}})).await.expect_success();
    server.delete(&format!("{CONFIG_MAPS}/a?gracePeriodSeconds=3"), &Value::Null).await.expect_success();
    let seen = hook.seen();
    let requests: Vec<&Value> = seen.iter().map(|review| &review["request"]).collect();
    let [created, updated, deleted] = requests[..] else { panic!("{seen:?}") };
    assert_eq!(created["operation"], "CREATE");
    assert_eq!(created["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(created["requestResource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&created["name"], &created["namespace"]), (&json!("a"), &json!("default")));
    assert_eq!(
        created["userInfo"],
        json!({"username": "kubernetes-admin",
        "groups": ["system:masters", "system:authenticated"]})
    );
    assert!(created["object"]["metadata"]["uid"].is_string(), "validation sees the object that is stored");
    assert_eq!((&created["oldObject"], &created["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(created["options"], json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}));
    assert_eq!(updated["operation"], "UPDATE");
    assert_eq!(
        (&updated["oldObject"]["data"]["x"], &updated["object"]["data"]["x"]),
        (&json!("1"), &json!("2"))
    );
    assert_eq!(deleted["operation"], "DELETE");
    assert_eq!((&deleted["object"], &deleted["oldObject"]["data"]["x"]), (&Value::Null, &json!("2")));
    assert_eq!(deleted["options"]["gracePeriodSeconds"], 3);
    assert_eq!(hook.paths(), ["/hook?timeout=10s"; 3]);
}

#[tokio::test]
async fn mutating_webhooks_are_asked_by_name_and_again_if_they_wish() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let first = Hook::start(&["127.0.0.1"], move |review| {
        counted.fetch_add(1, Ordering::SeqCst);
        let labels = &review["request"]["object"]["metadata"]["labels"];
        let sees = if labels["second"].is_string() { "second" } else { "nothing" };
        json!({"review": patch(&json!([{"op": "add", "path": "/metadata/labels/first-saw", "value": sees}]))})
    })
    .await;
    let second =
        Hook::responding(patch(&json!([{"op": "add", "path": "/metadata/labels/second", "value": "yes"}])))
            .await;
    let server = Server::new();
    let rules = json!([rule(&["CREATE"], "", &["configmaps"])]);
    configure(&server, "Mutating", "b", &second.client_config(), &rules, &json!({})).await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(&server, "Mutating", "a", &first.client_config(), &rules, &again).await;
    let made = server.post(CONFIG_MAPS, &config_map("c", &json!({"app": "web"}))).await.expect_success();
    assert_eq!(made["metadata"]["labels"], json!({"app": "web", "first-saw": "second", "second": "yes"}));
    assert_eq!((count.load(Ordering::SeqCst), second.seen().len()), (2, 1));
    let managers = made["metadata"]["managedFields"].as_array().unwrap();
    assert!(!managers[0]["fieldsV1"].to_string().contains("second"), "a webhook's fields have no owner");
    let seen = &first.seen()[0]["request"]["object"]["metadata"];
    assert_eq!(seen["uid"], Value::Null, "a mutating webhook sees the object before it is made");
}

#[tokio::test]
async fn selectors_rules_and_scopes_decide_who_is_asked() {
    let hook = Hook::responding(json!({"allowed": false})).await;
    let client = hook.client_config();
    let cases = [
        (json!([rule(&["CREATE"], "apps", &["deployments"])]), json!({}), false),
        (json!([rule(&["UPDATE"], "", &["configmaps"])]), json!({}), false),
        (json!([rule(&["*"], "*", &["*"])]), json!({}), true),
        (json!([rule(&["*"], "*", &["*/*"])]), json!({}), true),
        (json!([rule(&["*"], "*", &["*/status"])]), json!({}), false),
        (
            json!([rule(&["*"], "", &["configmaps"])]),
            json!({"objectSelector": {"matchLabels": {"app": "db"}}}),
            false,
        ),
        (
            json!([rule(&["*"], "", &["configmaps"])]),
            json!({"objectSelector": {"matchLabels": {"app": "web"}}}),
            true,
        ),
        (
            json!([rule(&["*"], "", &["configmaps"])]),
            json!({"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name",
                "operator": "NotIn", "values": ["default"]}]}}),
            false,
        ),
    ];
    for (rules, more, asked) in cases {
        let server = Server::new();
        configure(&server, "Validating", "x", &client, &rules, &more).await;
        let status = server.post(CONFIG_MAPS, &config_map("a", &json!({"app": "web"}))).await.status;
        assert_eq!(status == 400, asked, "{rules} {more}");
    }
    let server = Server::new();
    let mut cluster = rule(&["*"], "", &["*"]);
    cluster["scope"] = json!("Cluster");
    configure(&server, "Validating", "x", &client, &json!([cluster]), &json!({})).await;
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    let namespace = json!({"metadata": {"name": "other"}});
    assert_eq!(server.post("/api/v1/namespaces", &namespace).await.status, 400);
}

#[tokio::test]
async fn subresources_are_reviewed_as_what_they_show() {
    let hook = Hook::start(&["127.0.0.1"], |review| {
        let scale = review["request"]["object"]["spec"]["replicas"].as_u64().unwrap_or(0);
        match review["request"]["operation"].as_str() {
            Some("UPDATE") if scale > 5 => {
                json!({"review": patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 5}]))})
            }
            _ => json!({"review": {"allowed": true}}),
        }
    })
    .await;
    let server = Server::new();
    server.post(DEPLOYMENTS, &deployment("web")).await.expect_success();
    let rules = json!([rule(&["UPDATE"], "apps", &["deployments/scale"])]);
    configure(&server, "Mutating", "x", &hook.client_config(), &rules, &json!({})).await;
    let scaled = server
        .merge(&format!("{DEPLOYMENTS}/web/scale"), &json!({"spec": {"replicas": 9}}))
        .await
        .expect_success();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let request = hook.seen()[0]["request"].clone();
    assert_eq!(request["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!((&request["subResource"], &request["oldObject"]["kind"]), (&json!("scale"), &json!("Scale")));
    server.merge(&format!("{DEPLOYMENTS}/web"), &json!({"spec": {"replicas": 9}})).await.expect_success();
    assert_eq!(hook.seen().len(), 1, "the rule names the subresource alone");
}

#[tokio::test]
async fn an_equivalent_version_is_converted_for_the_webhook_and_back() {
    let server = Server::new();
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [version("v1", true), version("v2", false)]}});
    server.post(DEFINITIONS, &definition).await.expect_success();
    let hook = Hook::responding(patch(&json!([{"op": "add", "path": "/spec", "value": {"size": 3}}]))).await;
    let rules = json!([rule(&["CREATE"], "example.com", &["things"])]);
    configure(&server, "Mutating", "x", &hook.client_config(), &rules, &json!({})).await;
    let path = "/apis/example.com/v2/namespaces/default/things";
    let thing = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "a"}});
    let made = server.post(path, &thing).await.expect_success();
    assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("example.com/v2"), &json!({"size": 3})));
    let request = hook.seen()[0]["request"].clone();
    assert_eq!(request["object"]["apiVersion"], "example.com/v1");
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
    let exact = json!({"matchPolicy": "Exact"});
    let path_of = format!("{GROUP}/mutatingwebhookconfigurations/x");
    server.delete(&path_of, &Value::Null).await.expect_success();
    configure(&server, "Mutating", "x", &hook.client_config(), &rules, &exact).await;
    let other = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "b"}});
    assert_eq!(server.post(path, &other).await.expect_success()["spec"], Value::Null);
}

#[tokio::test]
async fn a_service_is_found_by_its_slices_or_by_a_route() {
    let hook = Hook::start(&["hooks.default.svc"], |_| json!({"review": {"allowed": false}})).await;
    let client = json!({"caBundle": hook.bundle,
        "service": {"namespace": "default", "name": "hooks", "path": "/validate"}});
    let rules = json!([rule(&["CREATE"], "", &["configmaps"])]);
    let server = Server::new();
    let routes = server.registry().routes();
    configure(&server, "Validating", "x", &client, &rules, &json!({})).await;
    let failed = |answer: crate::server::Answer| answer.failed(500, "InternalError");
    let post = || async { server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await };
    let start = "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: Post \
        \"https://hooks.default.svc:443/validate?timeout=10s\": ";
    assert_eq!(failed(post().await), format!("{start}service \"hooks\" not found"));
    let service = json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}});
    server.post("/api/v1/namespaces/default/services", &service).await.expect_success();
    assert_eq!(failed(post().await), format!("{start}no endpoints available for service \"hooks\""));
    let port = ServicePort { namespace: "default".into(), name: "hooks".into(), port: 443 };
    routes.add(port.clone(), hook.address);
    assert_eq!(post().await.status, 400);
    routes.remove(&port);
    let slice = json!({"metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4", "ports": [{"name": "", "port": hook.address.port()}],
        "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": false}}, {"addresses": ["127.0.0.1"]}]});
    server.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await.expect_success();
    assert_eq!(post().await.status, 400);
    assert_eq!(hook.paths(), ["/validate?timeout=10s"; 2]);
}

#[tokio::test]
async fn a_webhook_may_write_to_the_server_that_asks_it() {
    let server = Server::new();
    let inner = server.clone();
    let (asked, mut asks) = tokio::sync::mpsc::unbounded_channel::<String>();
    let hook = Hook::start(&["127.0.0.1"], move |review| {
        asked.send(review["request"]["name"].as_str().unwrap().to_owned()).unwrap();
        json!({"review": {"allowed": true}, "delay": 1})
    })
    .await;
    let rules = json!([rule(&["UPDATE"], "", &["configmaps"])]);
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    configure(&server, "Validating", "x", &hook.client_config(), &rules, &json!({})).await;
    let other = tokio::spawn(async move {
        // While the webhook thinks, somebody else changes the object without being asked.
        asks.recv().await.unwrap();
        let path = format!("{GROUP}/validatingwebhookconfigurations/x");
        let rules = json!({"webhooks": []});
        inner.merge(&path, &rules).await.expect_success();
        inner.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"other": "1"}})).await.expect_success();
    });
    let changed =
        server.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"own": "1"}})).await.expect_success();
    other.await.unwrap();
    assert_eq!(
        changed["data"],
        json!({"own": "1", "other": "1"}),
        "the patch is applied to what is there now"
    );
}

#[tokio::test]
async fn a_stale_update_is_a_conflict_even_after_a_webhook() {
    let server = Server::new();
    let read = server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    let inner = server.clone();
    let (asked, mut asks) = tokio::sync::mpsc::unbounded_channel();
    let hook = Hook::start(&["127.0.0.1"], move |_| {
        asked.send(()).unwrap();
        json!({"review": {"allowed": true}, "delay": 1})
    })
    .await;
    let rules = json!([rule(&["UPDATE"], "", &["configmaps"])]);
    configure(&server, "Validating", "x", &hook.client_config(), &rules, &json!({})).await;
    let other = tokio::spawn(async move {
        asks.recv().await.unwrap();
        inner
            .delete(&format!("{GROUP}/validatingwebhookconfigurations/x"), &Value::Null)
            .await
            .expect_success();
        inner.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"other": "1"}})).await.expect_success();
    });
    let mut stale = read;
    stale["data"] = json!({"own": "1"});
    server.put(&format!("{CONFIG_MAPS}/a"), &stale).await.failed(409, "Conflict");
    other.await.unwrap();
}

#[tokio::test]
async fn a_huge_answer_is_not_read_to_its_end() {
    let hook = Hook::start(&["127.0.0.1"], |_| json!({"body": "x".repeat(4 * 1024 * 1024)})).await;
    let server = Server::new();
    let rules = json!([rule(&["CREATE"], "", &["configmaps"])]);
    configure(&server, "Validating", "x", &hook.client_config(), &rules, &json!({})).await;
    let message = server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.failed(500, "InternalError");
    assert!(message.ends_with("the answer is larger than 3145728 bytes"), "{message}");
}

#[tokio::test]
async fn the_configurations_themselves_are_admitted_without_asking() {
    let hook = Hook::responding(json!({"allowed": false})).await;
    let server = Server::new();
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    configure(&server, "Validating", "all", &hook.client_config(), &rules, &json!({})).await;
    assert_eq!(server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.status, 400);
    server
        .delete(&format!("{GROUP}/validatingwebhookconfigurations/all"), &Value::Null)
        .await
        .expect_success();
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    assert_eq!(hook.seen().len(), 1);
}

#[tokio::test]
async fn an_apply_that_creates_is_a_create() {
    let hook = Hook::responding(json!({"allowed": true})).await;
    let server = Server::new();
    let rules = json!([rule(&["*"], "", &["configmaps"])]);
    configure(&server, "Mutating", "x", &hook.client_config(), &rules, &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    server.apply(&path, "me", &config_map("a", &json!({"one": "1"}))).await.expect_success();
    server.apply(&path, "me", &config_map("a", &json!({"one": "2"}))).await.expect_success();
    let media = "application/apply-patch+yaml";
    let forced = format!("{path}?fieldManager=me&force=true&dryRun=All");
    let body = config_map("a", &json!({"one": "3"}));
    server.send(Method::PATCH, &forced, media, "application/json", &body).await.expect_success();
    let seen = hook.seen();
    let told: Vec<(&str, &Value)> = seen
        .iter()
        .map(|review| (review["request"]["operation"].as_str().unwrap(), &review["request"]["options"]))
        .collect();
    assert_eq!(told[0].0, "CREATE");
    assert_eq!(told[1].0, "UPDATE");
    assert_eq!(
        *told[2].1,
        json!({"kind": "PatchOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"],
        "fieldManager": "me", "force": true})
    );
    assert_eq!(seen[2]["request"]["dryRun"], true);
}

#[tokio::test]
async fn configurations_are_defaulted_and_checked() {
    let server = Server::new();
    let path = format!("{GROUP}/mutatingwebhookconfigurations");
    let client = json!({"service": {"namespace": "default", "name": "hooks"}});
    let good =
        configuration("Mutating", "good", &client, &json!([rule(&["CREATE"], "", &["pods"])]), &json!({}));
    let made = server.post(&path, &good).await.expect_success();
    let hook = &made["webhooks"][0];
    for (field, value) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("timeoutSeconds", json!(10)),
        ("reinvocationPolicy", json!("Never")),
        ("namespaceSelector", json!({})),
    ] {
        assert_eq!(hook[field], value, "{field}");
    }
    assert_eq!(
        (&hook["rules"][0]["scope"], &hook["clientConfig"]["service"]["port"]),
        (&json!("*"), &json!(443))
    );
    let more = json!({"name": "short", "sideEffects": "Some", "timeoutSeconds": 31, "failurePolicy": "Maybe",
        "admissionReviewVersions": ["v7"], "matchConditions": [{"name": "", "expression": "object."}]});
    let client = json!({"url": "http://user@host/path?a=b#c"});
    let rules = json!([{"operations": ["*", "GET"], "apiGroups": [], "apiVersions": [""], "resources": ["*", "pods"]}]);
    let bad = configuration("Mutating", "bad", &client, &rules, &more);
    let answer = server.post(&path, &bad).await;
    let causes = answer.body["details"]["causes"].as_array().unwrap().clone();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    answer.failed(422, "Invalid");
    let expected = [
        "name",
        "rules[0].operations",
        "rules[0].operations[1]",
        "rules[0].apiGroups",
        "rules[0].apiVersions[0]",
        "rules[0].resources",
        "failurePolicy",
        "sideEffects",
        "timeoutSeconds",
        "clientConfig.url",
        "clientConfig.url",
        "clientConfig.url",
        "clientConfig.url",
        "matchConditions[0].expression",
        "matchConditions[0].name",
        "admissionReviewVersions",
    ]
    .map(|field| format!("webhooks[0].{field}"));
    assert_eq!(fields, expected.iter().map(String::as_str).collect::<Vec<_>>());
}
