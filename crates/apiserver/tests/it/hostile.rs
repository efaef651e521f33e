//! Requests that nobody should send: whatever comes, the answer is the API's, and the server goes on.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use proptest::{prelude::*, test_runner::TestCaseError};
use serde_json::{Value, json};

use crate::server::{CONFIG_MAPS, DEFINITIONS, DEPLOYMENTS, PODS, Server, config_map, deployment};

const CASES: u32 = 160;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Any JSON, with the keys that the server looks at more often than others.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("a".to_owned()),
        Just("default".to_owned()),
        Just("$patch".to_owned()),
        Just("1e400".to_owned()),
        Just("../..".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = [
        "metadata",
        "name",
        "labels",
        "annotations",
        "spec",
        "status",
        "data",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "template",
        "containers",
        "ports",
        "selector",
        "matchLabels",
        "replicas",
        "versions",
        "schema",
        "openAPIV3Schema",
        "properties",
        "items",
        "type",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "x-kubernetes-validations",
        "rule",
        "names",
        "generateName",
        "uid",
        "resourceVersion",
        "deletionTimestamp",
        "f:metadata",
        "k:{\"name\":\"a\"}",
        "apiVersion",
        "kind",
        "",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

/// A value of a known shape with something else in one place.
fn bent(shape: Value) -> impl Strategy<Value = Value> {
    (any::<prop::sample::Index>(), any_json()).prop_map(move |(place, new)| {
        let mut value = shape.clone();
        let mut pointers = Vec::new();
        collect(&value, String::new(), &mut pointers);
        let pointer = pointers[place.index(pointers.len())].clone();
        *value.pointer_mut(&pointer).unwrap() = new;
        value
    })
}

fn collect(value: &Value, pointer: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            collect(value, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), out);
        }),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(index, value)| collect(value, format!("{pointer}/{index}"), out)),
        _ => {}
    }
    out.push(pointer);
}

fn definition(rule: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"size": {"type": "integer", "default": 1}, "names": {"type": "array", "maxItems": 5,
                        "items": {"type": "string", "maxLength": 9}}},
                    "x-kubernetes-validations": [{"rule": rule}]}}}}}]}})
}

/// A server with something to patch.
async fn furnished() -> Server {
    let server = Server::new();
    server.post(CONFIG_MAPS, &config_map("a", &json!({"app": "a"}))).await.expect_success();
    server.post(DEPLOYMENTS, &deployment("a")).await.expect_success();
    server
}

/// Sends bytes, and insists on an answer of the API: a success, or a Status that blames the request.
async fn sane(
    server: &Server,
    method: Method,
    path: &str,
    media: &str,
    body: Vec<u8>,
) -> Result<(), TestCaseError> {
    let built = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
    let Ok(request) = built.body(Full::new(Bytes::from(body))) else { return Ok(()) };
    let response = server.answer(request).await;
    let status = response.status();
    let watching = path.contains("watch");
    if status.as_u16() == 500 && !watching {
        // Kubernetes answers some nonsense so: a message and no reason. What nobody foresaw has one.
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        prop_assert!(body["reason"].is_null() && body["message"].is_string(), "{path}: {body}");
        return Ok(());
    }
    // 504 tells a client that its revision is in the future.
    let sane = status.as_u16() < 500 || status.as_u16() == 504;
    prop_assert!(sane, "{path}: {status} {:?}", response.into_body().collect().await);
    if !status.is_success() && !watching {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        if let Ok(body) = serde_json::from_slice::<Value>(&bytes) {
            prop_assert_eq!(&body["kind"], &json!("Status"));
            prop_assert_eq!(body["code"].as_u64(), Some(u64::from(status.as_u16())));
        }
    }
    Ok(())
}

/// Runs a case on a runtime of its own.
fn run(case: impl Future<Output = Result<(), TestCaseError>>) -> Result<(), TestCaseError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(case)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn any_body_is_answered(body in any_json(), path in prop::sample::select(vec![PODS, CONFIG_MAPS, DEPLOYMENTS, DEFINITIONS])) {
        run(async { sane(&furnished().await, Method::POST, path, JSON, body.to_string().into_bytes()).await })?;
    }

    #[test]
    fn a_bent_object_is_answered(body in bent(deployment("b")), crd in bent(definition("self.size > 0"))) {
        run(async {
            let server = furnished().await;
            sane(&server, Method::POST, DEPLOYMENTS, JSON, body.to_string().into_bytes()).await?;
            sane(&server, Method::POST, DEFINITIONS, JSON, crd.to_string().into_bytes()).await?;
            // Whatever was stored can be listed.
            sane(&server, Method::GET, DEPLOYMENTS, JSON, Vec::new()).await
        })?;
    }

    #[test]
    fn any_patch_is_answered(body in any_json(), media in prop::sample::select(vec![
        "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
        "application/json-patch+json", "text/plain",
    ])) {
        run(async {
            let server = furnished().await;
            for collection in [CONFIG_MAPS, DEPLOYMENTS] {
                let path = format!("{collection}/a?fieldManager=m");
                sane(&server, Method::PATCH, &path, media, body.to_string().into_bytes()).await?;
                sane(&server, Method::GET, &format!("{collection}/a"), JSON, Vec::new()).await?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_json_patch_is_answered(operations in prop::collection::vec((
        prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "?"]),
        prop::sample::select(vec!["", "/", "/metadata", "/metadata/labels/app", "/spec/template/spec/containers/0", "/spec/template/spec/containers/-",
            "/spec/template/spec/containers/99999999999999999999", "/~2", "no"]),
        prop::sample::select(vec!["", "/spec", "/metadata/name", "/spec/template/spec/containers/0"]),
        any_json(),
    ), 0..6)) {
        let operations: Vec<Value> = operations.into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        run(async {
            let server = furnished().await;
            let body = json!(operations).to_string().into_bytes();
            sane(&server, Method::PATCH, &format!("{DEPLOYMENTS}/a"), "application/json-patch+json", body).await
        })?;
    }

    #[test]
    fn any_query_is_answered(name in prop::sample::select(vec![
        "labelSelector", "fieldSelector", "resourceVersion", "limit", "continue", "timeoutSeconds", "gracePeriodSeconds",
        "propagationPolicy", "dryRun", "fieldValidation", "fieldManager", "force", "resourceVersionMatch",
        "sendInitialEvents", "watch", "includeObject", "pretty",
    ]), value in prop_oneof![any::<String>(), "[a-z!=(),.~ ]{0,12}", any::<i64>().prop_map(|number| number.to_string())]) {
        let query: String = form_urlencoded::Serializer::new(String::new()).append_pair(name, &value).finish();
        run(async {
            let server = furnished().await;
            sane(&server, Method::GET, &format!("{PODS}?{query}"), JSON, Vec::new()).await?;
            sane(&server, Method::DELETE, &format!("{CONFIG_MAPS}?{query}"), JSON, Vec::new()).await?;
            sane(&server, Method::POST, &format!("{CONFIG_MAPS}?{query}"), JSON,
                config_map("new", &json!({})).to_string().into_bytes()).await
        })?;
    }

    #[test]
    fn any_path_is_answered(segments in prop::collection::vec(prop_oneof![
        prop::sample::select(vec!["api", "apis", "v1", "apps", "namespaces", "default", "pods", "a", "status", "scale",
            "deployments", "log", "watch", "openapi", "v3", "..", "%2e%2e", "%00", "%ff", "", "version", "proxy", "exec"]).prop_map(str::to_owned),
        "[a-zA-Z0-9%~_.-]{0,10}",
    ], 0..9), method in prop::sample::select(vec![Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS, Method::TRACE])) {
        run(async { sane(&furnished().await, method, &format!("/{}", segments.join("/")), JSON, b"{}".to_vec()).await })?;
    }

    #[test]
    fn any_protobuf_is_answered(mut body in prop::collection::vec(any::<u8>(), 0..200), magic in any::<bool>(), place in any::<prop::sample::Index>()) {
        if magic {
            // A message that begins right: the magic bytes, then a type of ConfigMap.
            let mut message = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".to_vec();
            message.push(u8::try_from(body.len() % 128).unwrap());
            message.append(&mut body);
            let at = place.index(message.len());
            message[at] ^= 1;
            body = message;
        }
        run(async { sane(&furnished().await, Method::POST, CONFIG_MAPS, PROTOBUF, body).await })?;
    }

    #[test]
    fn any_rule_is_answered(rule in prop_oneof![
        any::<String>(),
        "[a-z0-9.()\\[\\]{}+*/<>=!&|?: '\"]{0,30}",
        Just("self.names.all(a, self.names.all(b, self.names.all(c, self.names.all(d, a + b + c + d != ''))))".to_owned()),
        Just(format!("{}true{}", "(".repeat(400), ")".repeat(400))),
        Just(format!("self.size {} > 0", "+ 1".repeat(2000))),
    ], spec in any_json()) {
        run(async {
            let server = Server::new();
            sane(&server, Method::POST, DEFINITIONS, JSON, definition(&rule).to_string().into_bytes()).await?;
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
            let things = "/apis/example.com/v1/namespaces/default/things";
            sane(&server, Method::POST, things, JSON, thing.to_string().into_bytes()).await
        })?;
    }
}

#[tokio::test]
async fn a_body_nested_beyond_reason_is_a_bad_request() {
    let server = furnished().await;
    for depth in [100, 127, 128, 200, 100_000] {
        let data = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!("{{\"metadata\":{{\"name\":\"deep-{depth}\",\"labels\":{data}}}}}");
        let request = Request::post(CONFIG_MAPS).header(header::CONTENT_TYPE, JSON);
        let answer = server.answer(request.body(Full::from(body)).unwrap()).await;
        assert_eq!(answer.status(), 400, "depth {depth}");
    }
}

#[tokio::test]
async fn an_object_cannot_be_patched_deeper_than_it_can_be_read() {
    let server = Server::new();
    let mut crd = definition("true");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    server.post(DEFINITIONS, &crd).await.expect_success();
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": {}}});
    server.post(things, &thing).await.expect_success();
    let deeper = json!([{"op": "copy", "from": "/spec", "path": "/spec/a"}]);
    let path = format!("{things}/a");
    let mut refused = None;
    for _ in 0..200 {
        let answer = server.send(Method::PATCH, &path, "application/json-patch+json", JSON, &deeper).await;
        if !answer.status.is_success() {
            refused = Some(answer.failed(400, "BadRequest"));
            break;
        }
    }
    let message = refused.expect("an object must not become deeper without end");
    assert!(message.contains("nested too deeply"), "{message}");
    assert_eq!(server.get(&path).await.expect_success()["metadata"]["name"], "a", "it can still be read");
    assert_eq!(server.get(things).await.expect_success()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_compressed_body_is_refused_before_it_is_read() {
    let server = Server::new();
    let request =
        Request::post(CONFIG_MAPS).header(header::CONTENT_ENCODING, "gzip").body(Full::from("x")).unwrap();
    assert_eq!(server.answer(request).await.status(), 415);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = Server::new();
    let body = format!("{{\"data\":\"{}\"}}", "x".repeat(4 * 1024 * 1024));
    let request = Request::post(CONFIG_MAPS).body(Full::from(body)).unwrap();
    assert_eq!(server.answer(request).await.status(), 413);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up() {
    let server = Server::new();
    let stuck = http_body_util::StreamBody::new(futures::stream::pending::<
        Result<http_body::Frame<Bytes>, std::io::Error>,
    >());
    let answer = server.answer(Request::post(CONFIG_MAPS).body(stuck).unwrap()).await;
    assert_eq!(answer.status(), 504);
}

#[tokio::test]
async fn too_many_watches_are_refused_until_one_ends() {
    let server = Server::with_watches(2);
    let path = format!("{CONFIG_MAPS}?watch=true");
    let (first, second) = (server.watch(&path).await, server.watch(&path).await);
    let message = server.get(&path).await.failed(429, "TooManyRequests");
    assert!(message.contains("at most 2"), "{message}");
    drop(first);
    let mut third = server.watch(&path).await;
    server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
    assert_eq!(third.event().await.1, "a");
    drop(second);
}
