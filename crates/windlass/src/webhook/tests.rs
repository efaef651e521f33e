//! Webhooks without a server: reviews in, reviews out; and over HTTP without a socket.

use axum::{body::Body, http};
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    CustomResource, ResourceExt,
    core::{DynamicObject, admission::AdmissionResponse},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::{Metrics, Operator};

/// The hub: a size in one field.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "it.windlass.dev", version = "v2", kind = "Box", plural = "boxes", namespaced)]
#[kube(status = "BoxStatus")]
pub(crate) struct BoxSpec {
    size: Option<i64>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BoxStatus {
    volume: i64,
}

mod v1 {
    use super::*;

    /// A spoke: the size as text, and a colour that the hub has no field for.
    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "it.windlass.dev", version = "v1", kind = "Box", plural = "boxes", namespaced)]
    #[kube(status = "BoxStatus")]
    pub(crate) struct BoxSpec {
        pub size: String,
        pub colour: Option<String>,
    }

    impl Spoke for Box {
        type Hub = super::Box;

        fn into_hub(self) -> Result<super::Box, ConversionError> {
            let size = self.spec.size.parse().map_err(ConversionError::new)?;
            let spec = super::BoxSpec { size: Some(size), tags: Vec::new() };
            let mut hub = super::Box { metadata: self.metadata, spec, status: self.status };
            // Metadata is not a conversion's business; a mistake here must do no harm.
            hub.metadata.uid = Some("wrong".into());
            if let Some(colour) = self.spec.colour {
                keep(&mut hub, "v1", &colour)?;
            }
            Ok(hub)
        }

        fn from_hub(mut hub: super::Box) -> Result<Self, ConversionError> {
            let colour = kept(&mut hub, "v1")?;
            let spec = BoxSpec { size: hub.spec.size.unwrap_or(0).to_string(), colour };
            Ok(Self { metadata: hub.metadata, spec, status: hub.status })
        }
    }
}

mod v0 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "it.windlass.dev", version = "v0", kind = "Box", plural = "boxes", namespaced)]
    pub(crate) struct BoxSpec {
        pub edge: i64,
    }

    impl Spoke for Box {
        type Hub = super::Box;

        fn into_hub(self) -> Result<super::Box, ConversionError> {
            assert!(self.spec.edge >= 0, "a box has no negative edge");
            let spec = super::BoxSpec { size: Some(self.spec.edge), tags: Vec::new() };
            Ok(super::Box { metadata: self.metadata, spec, status: None })
        }

        fn from_hub(hub: super::Box) -> Result<Self, ConversionError> {
            Ok(Self { metadata: hub.metadata, spec: BoxSpec { edge: hub.spec.size.unwrap_or(0) } })
        }
    }
}

struct Rules;

impl Validator for Rules {
    type Resource = Box;

    async fn validate_create(&self, object: &Box, request: &Request) -> Verdict {
        let mut verdict = Verdict::allow();
        match object.spec.size {
            Some(13) => panic!("thirteen"),
            Some(size) if size < 1 => verdict.invalid("spec.size", size, "must be positive"),
            Some(size) if size > 100 => verdict.warn("large boxes are slow"),
            _ => &mut verdict,
        };
        for (index, tag) in object.spec.tags.iter().enumerate() {
            if object.spec.tags[..index].contains(tag) {
                verdict.duplicate(Path::new("spec").child("tags").index(index), tag);
            }
        }
        if request.user.username.as_deref() == Some("mallory") {
            return Verdict::deny("mallory may not have boxes");
        }
        verdict
    }

    async fn validate_update(&self, old: &Box, new: &Box, request: &Request) -> Verdict {
        let mut verdict = self.validate_create(new, request).await;
        if new.spec.size < old.spec.size {
            verdict.forbidden("spec.size", "must not shrink");
        }
        if request.dry_run {
            verdict.warn("a rehearsal");
        }
        verdict
    }

    async fn validate_delete(&self, object: &Box, _: &Request) -> Verdict {
        if object.labels().contains_key("keep") { Verdict::deny("it is kept") } else { Verdict::allow() }
    }
}

struct Sizes;

impl Defaulter for Sizes {
    type Resource = Box;

    async fn default(&self, object: &mut Box, _: &Request) -> Verdict {
        object.spec.size.get_or_insert(7);
        Verdict::allow()
    }
}

fn review(operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "operation": operation, "name": "one", "namespace": "ns",
            "kind": {"group": "it.windlass.dev", "version": "v2", "kind": "Box"},
            "resource": {"group": "it.windlass.dev", "version": "v2", "resource": "boxes"},
            "userInfo": {"username": "alice"}, "object": object, "oldObject": old,
        }
    })
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "it.windlass.dev/v2", "kind": "Box", "metadata": {"name": "one"}, "spec": spec})
}

async fn ask(webhook: &Webhook, review: Value) -> AdmissionResponse {
    let review: AdmissionReview<DynamicObject> = serde_json::from_value(review).unwrap();
    webhook.review(review).await.response.unwrap()
}

#[tokio::test]
async fn a_bad_object_is_refused_with_every_field_at_fault() {
    let webhook = Webhook::validating(Rules);
    let bad = object(&json!({"size": 0, "tags": ["a", "a"]}));
    let response = ask(&webhook, review("CREATE", &bad, &Value::Null)).await;
    assert!(!response.allowed && response.uid == "u1");
    assert_eq!((response.result.code, response.result.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        response.result.message,
        "Box.it.windlass.dev \"one\" is invalid: [spec.size: Invalid value: 0: must be positive, \
         spec.tags[1]: Duplicate value: \"a\"]"
    );
    let causes = response.result.details.unwrap().causes;
    assert_eq!((causes[0].field.as_str(), causes[0].reason.as_str()), ("spec.size", "FieldValueInvalid"));

    let response = ask(&webhook, review("CREATE", &object(&json!({"size": 101})), &Value::Null)).await;
    assert!(response.allowed);
    assert_eq!(response.warnings.unwrap(), ["large boxes are slow"]);
}

#[tokio::test]
async fn a_validator_sees_who_asks_the_old_object_and_dry_runs() {
    let webhook = Webhook::validating(Rules).on_delete();
    let (small, large) = (object(&json!({"size": 1})), object(&json!({"size": 2})));
    let mut request = review("UPDATE", &small, &large);
    request["request"]["dryRun"] = true.into();
    let response = ask(&webhook, request).await;
    assert_eq!(
        response.result.message,
        "Box.it.windlass.dev \"one\" is invalid: spec.size: Forbidden: must not shrink"
    );
    assert_eq!(response.warnings.unwrap(), ["a rehearsal"]);

    let mut request = review("CREATE", &small, &Value::Null);
    request["request"]["userInfo"]["username"] = "mallory".into();
    let response = ask(&webhook, request).await;
    assert_eq!((response.result.code, response.result.message.as_str()), (403, "mallory may not have boxes"));

    let mut kept = small.clone();
    kept["metadata"]["labels"] = json!({"keep": ""});
    assert!(!ask(&webhook, review("DELETE", &Value::Null, &kept)).await.allowed);
    assert!(ask(&webhook, review("DELETE", &Value::Null, &small)).await.allowed);
}

#[tokio::test]
async fn an_invalid_object_that_is_going_can_lose_its_finalizers() {
    let webhook = Webhook::validating(Rules);
    let mut going = object(&json!({"size": 0}));
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut held = going.clone();
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    assert!(ask(&webhook, review("UPDATE", &going, &held)).await.allowed);
    let mut changed = going.clone();
    changed["spec"]["size"] = (-1).into();
    assert!(!ask(&webhook, review("UPDATE", &changed, &held)).await.allowed, "the spec is still guarded");
}

#[tokio::test]
async fn an_object_that_does_not_fit_its_type_is_refused_with_the_reason() {
    let response =
        ask(&Webhook::validating(Rules), review("CREATE", &object(&json!({"size": "x"})), &Value::Null))
            .await;
    assert_eq!(response.result.code, 400);
    assert!(
        response.result.message.starts_with("failed to read Box \"one\": "),
        "{}",
        response.result.message
    );
}

#[tokio::test]
async fn a_default_becomes_the_smallest_patch() {
    let webhook = Webhook::defaulting(Sizes);
    let response = ask(&webhook, review("CREATE", &object(&json!({"newer": true})), &Value::Null)).await;
    let patch: Value = serde_json::from_slice(&response.patch.unwrap()).unwrap();
    assert_eq!(patch, json!([{"op": "add", "path": "/spec/size", "value": 7}]));
    let response = ask(&webhook, review("UPDATE", &object(&json!({"size": 1})), &Value::Null)).await;
    assert!(response.allowed && response.patch.is_none());
}

fn boxes() -> Conversion {
    Conversion::hub::<Box>().spoke::<v1::Box>().spoke::<v0::Box>()
}

fn conversion(desired: &str, objects: &[Value]) -> ConversionReview {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u2", "desiredAPIVersion": desired, "objects": objects},
    }))
    .unwrap()
}

fn old_box(size: &str) -> Value {
    json!({
        "apiVersion": "it.windlass.dev/v1", "kind": "Box", "status": {"volume": 8},
        "metadata": {"name": "one", "uid": "a-b", "generation": 3, "labels": {"x": "y"}},
        "spec": {"size": size, "colour": "red"},
    })
}

#[test]
fn a_spoke_survives_the_way_to_the_hub_and_back() {
    let there = boxes().review(conversion("it.windlass.dev/v2", &[old_box("5"), old_box("6")]));
    let there = there.response.unwrap();
    assert_eq!(there.uid, "u2");
    let [first, second] = there.converted_objects.as_slice() else { panic!("{there:?}") };
    assert_eq!((&first["spec"]["size"], &second["spec"]["size"]), (&json!(5), &json!(6)));
    assert_eq!((&first["apiVersion"], &first["kind"]), (&json!("it.windlass.dev/v2"), &json!("Box")));
    assert_eq!(first["metadata"]["uid"], "a-b", "metadata is not the conversion's business");
    assert_eq!(first["status"], json!({"volume": 8}));
    let back = boxes().review(conversion("it.windlass.dev/v1", &there.converted_objects)).response.unwrap();
    assert_eq!(back.converted_objects[0], old_box("5"));
}

#[test]
fn spokes_convert_into_each_other_and_what_fits_already_is_left_alone() {
    let review = boxes().review(conversion("it.windlass.dev/v0", &[old_box("5")]));
    assert_eq!(review.response.unwrap().converted_objects[0]["spec"], json!({"edge": 5}));
    let same = boxes().convert(old_box("not a number"), "it.windlass.dev/v1").unwrap();
    assert_eq!(same, old_box("not a number"));
}

#[test]
fn a_failed_conversion_says_which_object_and_why() {
    let failed = |desired, object: Value| {
        let response = boxes().review(conversion(desired, &[object])).response.unwrap();
        assert!(response.converted_objects.is_empty());
        response.result.message
    };
    assert_eq!(
        failed("it.windlass.dev/v2", old_box("wide")),
        "failed to convert Box \"one\" from it.windlass.dev/v1 to it.windlass.dev/v2: \
         invalid digit found in string"
    );
    assert!(failed("it.windlass.dev/v9", old_box("1")).contains("known are it.windlass.dev/v2 and"));
    assert!(failed("other.dev/v1", old_box("1")).contains("no conversion of Box to other.dev/v1"));
    let negative = json!({
        "apiVersion": "it.windlass.dev/v0", "kind": "Box", "metadata": {"name": "n"}, "spec": {"edge": -1}
    });
    assert_eq!(failed("it.windlass.dev/v2", negative), "the conversion panicked: a box has no negative edge");
}

async fn post(router: &axum::Router, path: &str, body: &Value) -> (http::StatusCode, Vec<u8>) {
    let request = http::Request::post(path).body(Body::from(body.to_string())).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    (status, axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
}

#[tokio::test]
async fn a_panic_costs_one_request_and_every_request_is_counted() {
    let hooks = Webhooks {
        admission: vec![Webhook::validating(Rules), Webhook::defaulting(Sizes)],
        conversions: vec![boxes()],
    };
    let metrics = Metrics::default();
    let router = hooks.router(&metrics, None);
    let path = "/validate-it-windlass-dev-v2-box";
    for (size, allowed) in [(13, false), (5, true)] {
        let body = review("CREATE", &object(&json!({"size": size})), &Value::Null);
        let (status, body) = post(&router, path, &body).await;
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status.as_u16(), &answer["response"]["allowed"]), (200, &json!(allowed)), "{answer}");
    }
    let (status, _) = post(&router, path, &json!({"kind": "Pod"})).await;
    assert_eq!(status, 400);
    let body = review("CREATE", &object(&json!({})), &Value::Null);
    let (_, body) = post(&router, "/mutate-it-windlass-dev-v2-box", &body).await;
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert!(answer["response"]["patch"].is_string(), "a patch travels as base64: {answer}");
    assert_eq!(answer["response"]["patchType"], "JSONPatch");

    let page = metrics.encode().unwrap();
    for line in [
        format!("controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"200\"}} 2"),
        format!("controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"400\"}} 1"),
        format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{path}\"}} 0"),
        format!("controller_runtime_webhook_latency_seconds_count{{webhook=\"{path}\"}} 3"),
        "controller_runtime_webhook_panics_total 1".into(),
        "controller_runtime_conversion_webhook_panics_total 0".into(),
    ] {
        assert!(page.contains(&line), "{line} is missing in\n{page}");
    }
}

#[test]
fn versions_of_one_kind_are_one_definition_that_stores_the_hub() {
    let operator = Operator::new("op").crd::<v1::Box>().crd::<Box>().converts(boxes()).crd::<v0::Box>();
    let [crd] = operator.crds() else { panic!("one definition was expected") };
    let versions = |crd: &CustomResourceDefinition| -> Vec<(String, bool)> {
        crd.spec.versions.iter().map(|version| (version.name.clone(), version.storage)).collect()
    };
    let expected =
        [("v1", false), ("v2", true), ("v0", false)].map(|(name, stored)| (name.to_owned(), stored));
    assert_eq!(versions(crd), expected);
}

#[test]
fn two_webhooks_on_one_path_are_noticed() {
    struct Maps;
    impl Defaulter for Maps {
        type Resource = ConfigMap;
        async fn default(&self, _: &mut ConfigMap, _: &Request) -> Verdict {
            Verdict::allow()
        }
    }
    let mut hooks = Webhooks::default();
    hooks.admission.push(Webhook::defaulting(Maps));
    assert_eq!((hooks.collision(), hooks.is_empty()), (None, false));
    hooks.admission.push(Webhook::defaulting(Maps));
    assert_eq!(hooks.collision().as_deref(), Some("/mutate--v1-configmap"));
}
