//! Every field of every kind, from the schemas: what is set and removed again leaves no trace, and no number hurts.
//!
//! [`schema`] lists the fields with a value for each. A field that is new in a schema is tested without a word here; one of a
//! type that nobody can guess a value of fails [`schema::example`] until it has one.

mod schema;

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::{
    api::core::v1::Pod, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_operators::{Entry, install, webapp::api::gateway::HTTPRoute, webhooks};

use crate::{
    bed::{Ground, TIMEOUT, create_namespace, eventually},
    children::{controlled_among, kind_api, kinds, parents, wanted},
    plane::{NAMESPACE, Plane, all},
    suite::condition_of,
    webapp::gateway,
};

/// How many objects are looked at together.
const AT_ONCE: usize = 12;
/// Fields that say something about the object itself and not about its children.
const WITHOUT_EFFECT: &[&str] = &[
    // There is one engine.
    "database.engine",
    "database.deletionPolicy",
    "database.deletionProtection",
];

/// The smallest spec with which the options have something to change.
fn base(kind: &str, name: &str) -> Value {
    match kind {
        "podmanager" => json!({"replicas": 1, "image": "nginx:1.27"}),
        "imoocpod" => json!({"replicas": 1}),
        "webserver" => json!({"replicas": 1, "image": "nginx:1.27"}),
        "memcached" | "helloworld" => json!({"size": 1}),
        "webapp" => json!({"replicas": 2, "image": "nginx:1.27", "domain": format!("{name}.example.com")}),
        "database" => json!({"version": "15", "storage": {"size": "1Gi"}}),
        other => panic!("{other} is a new kind: say here what its smallest spec is"),
    }
}

/// An object in a namespace of its own: to look at its children must not cost the more, the more objects there are.
struct Place<'a> {
    client: &'a Client,
    entry: &'a Entry,
    namespace: String,
    name: String,
}

impl Place<'_> {
    fn api(&self) -> Api<DynamicObject> {
        kind_api(self.client, &self.namespace, self.entry)
    }
}

/// What an operator wants of an object's children. Which index a Pod has depends on how often it was replaced.
async fn standing(place: &Place<'_>, uid: &str) -> Vec<Value> {
    let mut all = kinds();
    all.push(ApiResource::erase::<HTTPRoute>(&()));
    let children = controlled_among(&all, place.client, &place.namespace, uid).await;
    let mut children: Vec<Value> = children.into_iter().map(wanted).collect();
    for pod in children.iter_mut().filter(|child| child["kind"] == "Pod") {
        pod["metadata"].as_object_mut().unwrap().remove("name");
    }
    // A Job is done once.
    children.retain(|child| child["kind"] != "Job");
    children.sort_by_key(Value::to_string);
    children
}

async fn is_observed(place: &Place<'_>) -> bool {
    let object = place.api().get(&place.name).await.unwrap();
    object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
}

async fn is_ready(place: &Place<'_>) -> bool {
    let object = place.api().get(&place.name).await.unwrap();
    let status = &object.data["status"];
    let is = |type_, value| condition_of(status, type_).is_some_and(|found| found["status"] == value);
    status["observedGeneration"].as_i64() == object.metadata.generation
        && is("Ready", "True")
        && is("Progressing", "False")
}

async fn set_spec(place: &Place<'_>, spec: &Value) -> kube::Result<DynamicObject> {
    let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    place.api().patch(&place.name, &PatchParams::default(), &patch).await
}

async fn leaves_no_trace(client: &Client, entry: &Entry, case: schema::Case) {
    let what = format!("{}.{}", entry.name, case.path);
    let name = entry.name.to_owned();
    let place = &Place { client, entry, namespace: create_namespace(client).await, name };
    // A domain is one for the whole cluster.
    let plain = base(entry.name, &place.namespace);
    let object = json!({
        "apiVersion": entry.api_version, "kind": entry.kind, "metadata": {"name": place.name}, "spec": plain,
    });
    let api = place.api();
    let created = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let uid = created.uid().unwrap();
    eventually(&format!("{what}: the object is ready"), || async { is_ready(place).await.then_some(()) })
        .await;
    let before = standing(place, &uid).await;
    let stored = api.get(&place.name).await.unwrap().data["spec"].clone();

    let mut with = stored.clone();
    case.set_in(&mut with);
    match set_spec(place, &with).await {
        Ok(_) => {}
        // An object of optional fields may have to have one of them.
        Err(kube::Error::Api(status)) if case.bare && status.code == 422 => return,
        Err(error) => panic!("{what} cannot be set: {error}"),
    }
    eventually(&format!("{what} is seen"), || async { is_observed(place).await.then_some(()) }).await;
    if !case.bare && !WITHOUT_EFFECT.contains(&what.as_str()) {
        eventually(&format!("{what} has an effect on the children"), || async {
            (standing(place, &uid).await != before).then_some(())
        })
        .await;
    }
    set_spec(place, &stored).await.unwrap();
    let mut last = Vec::new();
    let restored = async {
        loop {
            last = standing(place, &uid).await;
            if last == before && is_observed(place).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    if tokio::time::timeout(TIMEOUT, restored).await.is_err() {
        let left: Vec<&Value> = last.iter().filter(|child| !before.contains(child)).collect();
        let lost: Vec<&Value> = before.iter().filter(|child| !last.contains(child)).collect();
        panic!("{what} leaves a trace: {}\nbut it was {}", json!(left), json!(lost));
    }
    api.delete(&place.name, &DeleteParams::default()).await.unwrap();
}

on_both_control_planes! {
    every_optional_field_set_and_removed_again_leaves_no_trace: no_field_leaves_a_trace;
    every_number_has_bounds_and_is_refused_beyond_them: numbers_are_bounded;
    a_number_that_was_stored_before_its_bound_hurts_nobody: stored_numbers_hurt_nobody;
}

async fn no_field_leaves_a_trace(ground: Ground) {
    let plane = Plane::start(ground).await;
    gateway::install(&plane.client()).await;
    let env = plane.operate().await;
    env.allow_failures(|_| true);
    let client = &env.client();
    let crds = all();
    let mut cases = Vec::new();
    for entry in parents() {
        let found = schema::cases(crds.crds(), entry);
        assert!(found.len() > 5, "{} has optional fields", entry.kind);
        cases.extend(found.into_iter().map(|case| (entry, case)));
    }
    // There are hundreds: WINDLASS_FIELDS=all takes all of them, a plain run one in ten.
    if std::env::var("WINDLASS_FIELDS").as_deref() != Ok("all") {
        cases = cases.into_iter().step_by(10).collect();
    }
    eprintln!("{} fields", cases.len());
    // One that fails keeps nobody from learning of the others.
    let tried = stream::iter(cases).map(|(entry, case)| async move {
        let what = format!("{}.{}", entry.name, case.path);
        let tried = AssertUnwindSafe(leaves_no_trace(client, entry, case)).catch_unwind().await;
        tried.is_err().then_some(what)
    });
    let failed: Vec<String> = tried.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
    assert!(failed.is_empty(), "failed, each with its reason above: {failed:#?}");
    env.stop().await;
}

async fn numbers_are_bounded(ground: Ground) {
    let plane = Plane::start(ground).await;
    let client = plane.client();
    install::crds(&client, &webhooks::without_conversion(all().crds())).await.unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    for entry in parents() {
        for number in schema::numbers(all().crds(), entry) {
            let what = format!("{}.{}", entry.name, number.path);
            let (Some(least), Some(most)) = (number.least, number.most) else {
                panic!("{what} is a number without a minimum or a maximum");
            };
            for (value, fits) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
                let mut spec = base(entry.name, "it");
                number.set_in(&mut spec, value);
                let object = json!({
                    "apiVersion": entry.api_version, "kind": entry.kind, "metadata": {"name": "it"}, "spec": spec,
                });
                let object = serde_json::from_value(object).unwrap();
                match kind_api(&client, NAMESPACE, entry).create(&dry_run, &object).await {
                    Ok(_) => assert!(fits, "{what}: {value} is let in"),
                    Err(kube::Error::Api(status)) if status.code == 422 => {
                        assert!(!fits, "{what}: {value} is refused: {}", status.message);
                    }
                    Err(error) => panic!("{what}: {error}"),
                }
            }
        }
    }
}

/// The kinds as they might have been before they had any bounds.
fn boundless() -> Vec<CustomResourceDefinition> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for word in ["minimum", "maximum", "x-kubernetes-validations"] {
                    map.remove(word);
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut crds = serde_json::to_value(webhooks::without_conversion(all().crds())).unwrap();
    strip(&mut crds);
    serde_json::from_value(crds).unwrap()
}

async fn stored_numbers_hurt_nobody(ground: Ground) {
    const MANY: i64 = i32::MAX as i64;
    let plane = Plane::start(ground).await;
    let client = plane.client();
    install::crds(&client, &boundless()).await.unwrap();
    let mut stored = Vec::new();
    for entry in parents() {
        for (index, number) in schema::numbers(all().crds(), entry).into_iter().enumerate() {
            for (which, value) in [("many", MANY), ("less", -1)] {
                let name = format!("{}-{which}-{index}", entry.name);
                let mut spec = base(entry.name, &name);
                number.set_in(&mut spec, value);
                let object = json!({
                    "apiVersion": entry.api_version, "kind": entry.kind, "metadata": {"name": name}, "spec": spec,
                });
                let api = kind_api(&client, NAMESPACE, entry);
                match api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await {
                    Ok(_) => stored.push((entry, name, number.path.clone(), value)),
                    // What is scaled a real API server stores with no number below zero, whatever the schema says.
                    Err(kube::Error::Api(status)) if value < 0 && status.code == 422 => {}
                    Err(error) => panic!("{name} cannot be stored: {error}"),
                }
            }
        }
    }
    let env = plane.operate().await;
    env.allow_failures(|failure| failure.reason != "ReconcilePanicked");
    // Whoever comes now is served as ever.
    for entry in parents() {
        let object = json!({
            "apiVersion": entry.api_version, "kind": entry.kind, "metadata": {"name": format!("{}-plain", entry.name)},
            "spec": base(entry.name, "plain"),
        });
        env.apply(&object).await;
    }
    for entry in parents() {
        let name = format!("{}-plain", entry.name);
        let place = &Place { client: &client, entry, namespace: NAMESPACE.to_owned(), name };
        eventually(&format!("{} is ready beside the others", place.name), || async {
            is_ready(place).await.then_some(())
        })
        .await;
    }
    for (entry, name, path, value) in stored {
        eventually(&format!("{name} says what it makes of {path} {value}"), || async {
            let object = kind_api(&client, NAMESPACE, entry).get(&name).await.unwrap();
            let status = &object.data["status"];
            let seen = status["observedGeneration"].as_i64() == object.metadata.generation;
            let counts = ["replicas", "size", "autoscaling.max", "autoscaling.min"].contains(&path.as_str());
            let degraded = condition_of(status, "Degraded");
            let refused = degraded.is_some_and(|found| found["reason"] == "InvalidSpec");
            (seen && (refused || !counts)).then_some(())
        })
        .await;
    }
    let api = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let count = api.list(&ListParams::default()).await.unwrap().items.len();
    assert!(count < 200, "no number of Pods that nobody can have asked for: {count}");
    env.stop().await;
}
