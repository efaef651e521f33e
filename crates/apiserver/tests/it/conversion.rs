//! Versions of custom resources that a webhook converts.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::{
    hook::Hook,
    server::{DEFINITIONS, Server},
};

const V1: &str = "/apis/example.com/v1/namespaces/default/things";
const V2: &str = "/apis/example.com/v2/namespaces/default/things";
const WATCH: &str = "/apis/example.com/v2/namespaces/default/things?watch=true&resourceVersion=0";

type Spoil = fn(&mut Value);

/// A converter that knows `size` as `width` in v2, and a way to spoil what it answers.
#[derive(Clone, Default)]
pub(crate) struct Converter {
    spoil: Arc<Mutex<Option<Spoil>>>,
}

impl Converter {
    fn spoil(&self, spoil: Option<Spoil>) {
        *self.spoil.lock().unwrap() = spoil;
    }

    async fn start(&self) -> Hook {
        let own = self.clone();
        Hook::start(&["127.0.0.1"], move |review| {
            let request = &review["request"];
            let wanted = request["desiredAPIVersion"].as_str().unwrap();
            let (old, new) = if wanted.ends_with("v2") { ("size", "width") } else { ("width", "size") };
            let objects = request["objects"].as_array().unwrap().iter().cloned().map(|mut object| {
                object["apiVersion"] = json!(wanted);
                if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(old)) {
                    object["spec"][new] = value;
                }
                object
            });
            let mut answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "response": {"uid": request["uid"], "result": {"status": "Success"},
                    "convertedObjects": objects.collect::<Vec<_>>()}});
            if let Some(spoil) = *own.spoil.lock().unwrap() {
                spoil(&mut answer);
            }
            json!({"body": answer.to_string()})
        })
        .await
    }
}

fn version(name: &str, field: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "properties": {field: {"type": "integer"},
            "color": {"type": "string", "default": "red"}}}}}}})
}

pub(crate) fn definition(conversion: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "conversion": conversion, "versions": [version("v1", "size", true), version("v2", "width", false)]}})
}

fn by(hook: &Hook) -> Value {
    json!({"strategy": "Webhook",
        "webhook": {"clientConfig": hook.client_config(), "conversionReviewVersions": ["v1"]}})
}

pub(crate) fn thing(version: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": {"name": name},
        "spec": spec})
}

pub(crate) async fn start() -> (Server, Converter, Hook) {
    let converter = Converter::default();
    let hook = converter.start().await;
    let server = Server::new();
    server.post(DEFINITIONS, &definition(&by(&hook))).await.expect_success();
    (server, converter, hook)
}

#[tokio::test]
async fn what_is_written_in_one_version_is_read_in_the_other() {
    let (server, _, hook) = start().await;
    server.post(V1, &thing("v1", "a", &json!({"size": 3}))).await.expect_success();
    assert_eq!(hook.seen().len(), 0, "the stored version needs no conversion");
    let shown = server.get(&format!("{V2}/a")).await.expect_success();
    assert_eq!(
        (&shown["apiVersion"], &shown["spec"]),
        (&json!("example.com/v2"), &json!({"width": 3, "color": "red"}))
    );
    let made = server.post(V2, &thing("v2", "b", &json!({"width": 4}))).await.expect_success();
    assert_eq!(made["spec"]["width"], 4);
    assert_eq!(server.get(&format!("{V1}/b")).await.expect_success()["spec"]["size"], 4);
    let patched = server.merge(&format!("{V2}/a"), &json!({"spec": {"width": 5}})).await.expect_success();
    assert_eq!((&patched["spec"]["width"], &patched["metadata"]["generation"]), (&json!(5), &json!(2)));
    assert_eq!(server.get(&format!("{V1}/a")).await.expect_success()["spec"]["size"], 5);
    let applied = server
        .apply(&format!("{V2}/c"), "me", &thing("v2", "c", &json!({"width": 6})))
        .await
        .expect_success();
    assert_eq!(applied["spec"]["width"], 6);
    server.delete(&format!("{V2}/c"), &Value::Null).await.expect_success();
    server.get(&format!("{V1}/c")).await.failed(404, "NotFound");
}

#[tokio::test]
async fn a_list_is_converted_in_one_call_and_only_once() {
    let (server, _, hook) = start().await;
    for name in ["a", "b", "c"] {
        server.post(V1, &thing("v1", name, &json!({"size": 3}))).await.expect_success();
    }
    let list = server.get(V2).await.expect_success();
    let widths: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|one| &one["spec"]["width"]).collect();
    assert_eq!(widths, [&json!(3); 3]);
    assert_eq!(hook.seen().len(), 1);
    assert_eq!(hook.seen()[0]["request"]["objects"].as_array().unwrap().len(), 3);
    assert_eq!(hook.paths(), ["/hook?timeout=30s"]);
    server.get(V2).await.expect_success();
    server.get(&format!("{V2}/a")).await.expect_success();
    assert_eq!(hook.seen().len(), 1, "an object that did not change is not converted again");
    server.merge(&format!("{V1}/a"), &json!({"spec": {"size": 9}})).await.expect_success();
    assert_eq!(server.get(&format!("{V2}/a")).await.expect_success()["spec"]["width"], 9);
}

#[tokio::test]
async fn a_watch_shows_the_version_that_it_asked_for() {
    let (server, converter, _hook) = start().await;
    server.post(V1, &thing("v1", "a", &json!({"size": 3}))).await.expect_success();
    let mut lines = server.watch(WATCH).await;
    let first = lines.next().await.unwrap();
    assert_eq!((&first["type"], &first["object"]["spec"]["width"]), (&json!("ADDED"), &json!(3)));
    server.merge(&format!("{V1}/a"), &json!({"spec": {"size": 4}})).await.expect_success();
    let second = lines.next().await.unwrap();
    assert_eq!((&second["type"], &second["object"]["spec"]["width"]), (&json!("MODIFIED"), &json!(4)));
    converter
        .spoil(Some(|answer| answer["response"]["result"] = json!({"status": "Failure", "message": "no"})));
    server.delete(&format!("{V1}/a"), &Value::Null).await.expect_success();
    let last = lines.next().await.unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(500)));
    assert!(lines.next().await.is_none(), "a watch that cannot go on ends");
}

/// What a converter may do wrong, and what the real server says of it when an object is created.
const WRONG: [(Spoil, &str); 10] = [
    (
        |answer| {
            answer["response"]["result"] = json!({"status": "Failure", "message": "cannot convert that"});
        },
        "failed: cannot convert that",
    ),
    (
        |answer| answer["response"]["result"] = json!({"status": "Failure"}),
        "failed: response.result.status was 'Failure', not 'Success'",
    ),
    (|answer| answer["response"]["convertedObjects"] = json!([]), "returned 0 objects, expected 1"),
    (
        |answer| answer["response"]["convertedObjects"][0]["apiVersion"] = json!("example.com/v3"),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v1, received example.com/v3)",
    ),
    (
        |answer| answer["response"]["convertedObjects"][0]["kind"] = json!("Other"),
        "returned invalid object at index 0: invalid kind (expected Thing, received Other)",
    ),
    (
        |answer| answer["response"]["convertedObjects"][0]["metadata"]["name"] = json!("other"),
        "returned invalid object: must have the same name: a != other",
    ),
    (
        |answer| answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a b": "c"}),
        "returned invalid metadata: metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric \
         characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
         'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ),
    (|answer| answer["response"] = Value::Null, "failed: no response provided"),
    (
        |answer| answer["kind"] = json!(""),
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
         apiextensions.k8s.io/v1, Kind=",
    ),
    (
        |answer| {
            answer["response"]["convertedObjects"].as_array_mut().unwrap().clear();
            answer["response"]["convertedObjects"] = json!([7]);
        },
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v1, received )",
    ),
];

#[tokio::test]
async fn a_converter_that_errs_is_named_in_the_real_words() {
    let (server, converter, _hook) = start().await;
    for (spoil, words) in WRONG {
        converter.spoil(Some(spoil));
        let answer = server.post(V2, &thing("v2", "a", &json!({"width": 3}))).await;
        let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("conversion webhook for example.com/v2, Kind=Thing {words}"), "code": 500});
        assert_eq!(answer.body, expected);
        server.get(&format!("{V1}/a")).await.failed(404, "NotFound");
    }
    converter.spoil(None);
    let made = server.post(V1, &thing("v1", "a", &json!({"size": 3}))).await.expect_success();
    converter.spoil(Some(WRONG[0].0));
    let revision = made["metadata"]["resourceVersion"].as_str().unwrap();
    let why = format!(
        "object not decodable revision={revision}: conversion webhook for example.com/v1, Kind=Thing failed: cannot \
         convert that"
    );
    let message = server.get(&format!("{V2}/a")).await.failed(500, "InternalError");
    let start = "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /example.com/things/default/a, \
        ResourceVersion: 0, AdditionalErrorMsg: ";
    assert_eq!(message, format!("{start}{why}"));
    let message = server.get(V2).await.failed(500, "StorageReadError");
    assert_eq!(
        message,
        format!(
            "failed to read one or more things.example.com from the storage: StorageError: corrupt object, Code: 7, Key: \
             /registry/example.com/things/default/a, ResourceVersion: 0, AdditionalErrorMsg: {why}"
        )
    );
    let answer = server.merge(&format!("{V2}/a"), &json!({"spec": {"width": 5}})).await;
    assert_eq!((answer.status.as_u16(), &answer.body["message"]), (500, &json!(why)));
    assert_eq!(
        server.get(&format!("{V1}/a")).await.expect_success()["spec"]["size"],
        3,
        "the stored version is still readable"
    );
}

#[tokio::test]
async fn a_converter_may_change_labels_and_nothing_else_of_the_metadata() {
    let (server, converter, _hook) = start().await;
    server.post(V1, &thing("v1", "a", &json!({"size": 3}))).await.expect_success();
    converter.spoil(Some(|answer| {
        let metadata = &mut answer["response"]["convertedObjects"][0]["metadata"];
        metadata["labels"] = json!({"converted": "yes"});
        metadata["finalizers"] = json!(["example.com/never"]);
        metadata["creationTimestamp"] = json!("1999-01-01T00:00:00Z");
    }));
    let shown = server.get(&format!("{V2}/a")).await.expect_success();
    assert_eq!(shown["metadata"]["labels"], json!({"converted": "yes"}));
    assert_eq!(shown["metadata"]["finalizers"], Value::Null);
    assert_ne!(shown["metadata"]["creationTimestamp"], "1999-01-01T00:00:00Z");
}

#[tokio::test]
async fn a_write_moves_an_object_to_the_storage_version() {
    let (server, _, hook) = start().await;
    for name in ["a", "b"] {
        server.post(V1, &thing("v1", name, &json!({"size": 3}))).await.expect_success();
    }
    let path = format!("{DEFINITIONS}/things.example.com");
    let versions = json!([version("v1", "size", false), version("v2", "width", true)]);
    let changed = server.merge(&path, &json!({"spec": {"versions": versions}})).await.expect_success();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(server.get(&format!("{V2}/a")).await.expect_success()["spec"]["width"], 3);
    let before = hook.seen().len();
    server.get(&format!("{V1}/b")).await.expect_success();
    assert_eq!(hook.seen().len(), before, "b is still stored as v1");
    server
        .merge(&format!("{V1}/a"), &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .expect_success();
    let before = hook.seen().len();
    let shown = server.get(&format!("{V2}/a")).await.expect_success();
    assert_eq!((&shown["spec"]["width"], hook.seen().len()), (&json!(3), before), "a is stored as v2 now");
    server.delete(&format!("{V1}/b"), &Value::Null).await.expect_success();
}

#[tokio::test]
async fn a_conversion_that_cannot_be_is_refused() {
    let server = Server::new();
    let client = json!({"url": "https://host/path"});
    let cases = [
        (
            json!({"strategy": "Webhook", "webhook": {"clientConfig": client}}),
            "spec.conversion.conversionReviewVersions: Required value",
        ),
        (
            json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v9"]}}),
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
        ),
        (
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}),
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ),
        (
            json!({"strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "http://x"}, "conversionReviewVersions": ["v1"]}}),
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; \
             desired format: https://host[/path]",
        ),
        (
            json!({"strategy": "None", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}),
            "[spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook, \
             spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook]",
        ),
    ];
    for (conversion, why) in cases {
        let message = server.post(DEFINITIONS, &definition(&conversion)).await.failed(422, "Invalid");
        let start = "CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: ";
        assert_eq!(message, format!("{start}{why}"));
    }
    let service = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "hooks"}}}});
    let made = server.post(DEFINITIONS, &definition(&service)).await.expect_success();
    assert_eq!(made["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 443);
    server.post(V1, &thing("v1", "a", &json!({"size": 3}))).await.expect_success();
    let message = server.get(&format!("{V2}/a")).await.failed(500, "InternalError");
    let end = "failed: Post \"https://hooks.default.svc:443/?timeout=30s\": service \"hooks\" not found";
    assert!(message.ends_with(end), "{message}");
}
