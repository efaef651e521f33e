//! Handlers that look around: the cache, the client, kinds of the moment, and rules of their own.

use std::sync::Arc;

use axum::{body::Body, http};
use k8s_openapi::api::{
    admissionregistration::v1::RuleWithOperations,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::PostParams,
    core::{DynamicObject, GroupVersionKind, admission::AdmissionResponse},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    Kind, Metrics, Operator,
    cache::{Caches, Transforms},
    webhook::{Mode, Reach, Request, Validator, Verdict, Webhook, Webhooks, router::Around},
};

/// A server in this process, with two maps.
async fn client() -> Client {
    use windlass_apiserver::{ApiServer, auth::Identity, environment, registry::Registry, store::Store};
    let clock = environment::TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let registry =
        Registry::new(Arc::new(Store::default()), environment::Environment::new(clock, 7)).unwrap();
    let server = ApiServer::new(Arc::new(registry)).as_user(Identity::admin());
    let client = Client::new(server, "default");
    for name in ["a", "b"] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    client
}

/// At most two maps.
struct Few;

impl Validator for Few {
    type Resource = ConfigMap;

    async fn validate_create(&self, _: &ConfigMap, request: &Request) -> Verdict {
        let Some(cache) = request.cache() else { return Verdict::allow() };
        let maps = cache.list::<ConfigMap>(request.namespace.as_deref()).unwrap();
        assert!(cache.list::<Secret>(None).is_err(), "what is not declared is not read");
        let live = request.client().unwrap();
        let live = Api::<ConfigMap>::namespaced(live.clone(), "default").get("a").await.unwrap();
        match maps.len() {
            0..2 => Verdict::allow(),
            count => Verdict::deny(format!("{count} are enough, {} is one", live.name_any())),
        }
    }
}

fn review(kind: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "operation": "CREATE", "name": "c", "namespace": "default",
            "kind": {"group": "", "version": "v1", "kind": kind},
            "resource": {"group": "", "version": "v1", "resource": "x"},
            "userInfo": {"username": "alice"}, "object": object,
        }
    })
}

async fn post(router: axum::Router, path: &str, body: Value) -> Value {
    let request = http::Request::post(path).body(Body::from(body.to_string())).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_handler_waits_for_the_cache_that_it_reads_and_not_for_ever() {
    let client = client().await;
    let hooks =
        Webhooks { admission: vec![Webhook::validating(Few).reads::<ConfigMap>()], conversions: vec![] };
    let caches =
        Caches::new(Arc::new(crate::wire::FieldManager::new("m", Vec::new())), Transforms::default());
    let namespaces = Vec::new();
    let around = Around { client: &client, caches: &caches, namespaces: &namespaces };
    let router = hooks.router(&Metrics::default(), Some(&around));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let path = "/validate--v1-configmap";
    let early = post(router.clone(), path, review("ConfigMap", &map)).await;
    assert_eq!(early["response"]["allowed"], false, "nothing is known yet: {early}");
    assert_eq!(early["response"]["status"]["message"], "the webhook's cache is not filled yet");

    let asked = tokio::spawn(post(router, path, review("ConfigMap", &map)));
    tokio::task::yield_now().await;
    let running = tokio::spawn(caches.run(crate::cache::Link {
        client: client.clone(),
        in_process: false,
        debugging: false,
    }));
    let answer = asked.await.unwrap();
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.contains("2 are enough, a is one"), "{answer}");
    running.abort();

    let review = serde_json::from_value(review("ConfigMap", &map)).unwrap();
    let alone = Webhook::validating(Few).review(review).await;
    assert!(alone.response.unwrap().allowed, "the plain form needs no operator");
}

/// Judges objects of a kind that is known only now.
struct Named;

impl Validator for Named {
    type Resource = DynamicObject;

    async fn validate_create(&self, object: &DynamicObject, _: &Request) -> Verdict {
        let mut verdict = Verdict::allow();
        if object.data["spec"]["size"] == 0 {
            verdict.invalid("spec.size", 0, "must be positive");
        }
        verdict
    }
}

#[tokio::test]
async fn a_kind_known_at_run_time_is_judged_and_named() {
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Crate");
    let kind = Kind::dynamic(&kube::core::ApiResource::from_gvk(&gvk), true);
    let webhook = Webhook::validating_dynamic(Named, kind);
    assert_eq!(webhook.path(), "/validate-example-com-v1-crate");
    let object = |size: i64| json!({"apiVersion": "example.com/v1", "kind": "Crate", "spec": {"size": size}});
    for (size, allowed) in [(0, false), (1, true)] {
        let review = serde_json::from_value(review("Crate", &object(size))).unwrap();
        let response = webhook.review(review).await.response.unwrap();
        assert_eq!(response.allowed, allowed);
        assert_eq!(
            response.result.message.contains("Crate.example.com \"c\" is invalid: spec.size"),
            !allowed
        );
    }
}

#[tokio::test]
async fn a_handler_of_ones_own_answers_for_its_rules_and_conditions_reach_the_configuration() {
    let all = || Some(vec!["*".to_owned()]);
    let rule = RuleWithOperations {
        api_groups: all(),
        api_versions: all(),
        operations: all(),
        resources: Some(vec!["pods/exec".to_owned()]),
        scope: None,
    };
    let webhook = Webhook::raw(Mode::Validating, "no-shell", [rule.clone()], |request, info| async move {
        let response = AdmissionResponse::from(&request);
        if info.user_is_in("admins") { response } else { response.deny("no shell") }
    })
    .match_condition("not-nodes", "!('system:nodes' in request.userInfo.groups)")
    .reads::<Secret>();
    let answer = webhook.review(serde_json::from_value(review("PodExecOptions", &json!({}))).unwrap()).await;
    assert_eq!(answer.response.unwrap().result.message, "no shell");

    let hooks = Webhooks { admission: vec![webhook.clone()], conversions: vec![] };
    let operator = Operator::new("op").webhook(webhook);
    let reach = Reach::Url("https://localhost:9443".into());
    let configuration = hooks.validating("op", &reach, None).unwrap();
    let [entry] = &configuration.webhooks.unwrap()[..] else { panic!("one webhook") };
    assert_eq!(entry.client_config.url.as_deref(), Some("https://localhost:9443/validate-no-shell"));
    assert_eq!(entry.rules.as_deref(), Some(&[rule][..]));
    assert_eq!(entry.name.split('.').count(), 4, "{}", entry.name);
    let condition = &entry.match_conditions.as_ref().unwrap()[0];
    assert_eq!(condition.name, "not-nodes");
    let secrets = operator.rbac().into_iter().find(|rule| rule.resources == Some(vec!["secrets".to_owned()]));
    assert_eq!(secrets.unwrap().verbs, ["get", "list", "watch"]);
}
