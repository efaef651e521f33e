//! Whoever matches a version of a resource sees that version: webhooks and policies, of new, changed, deleted and only
//! tried objects, for every kind that is served in several versions.
//!
//! For every pair of versions a request is made in the one and matched in the other. What a webhook saw must be what
//! somebody who reads in its version reads.

use http::Method;
use serde_json::{Value, json};

use crate::{
    admission::configure,
    conversion,
    hook::Hook,
    server::{DEFINITIONS, Server},
};

/// A kind, and the versions that it is served in.
struct Kind {
    plural: &'static str,
    /// Group, version, and the path of its objects.
    versions: [(&'static str, &'static str, &'static str); 2],
    /// An object of each version that is accepted; the number makes it another one.
    object: fn(version: usize, number: usize) -> Value,
    /// A change that both versions take.
    change: fn(number: usize) -> Value,
}

impl Kind {
    fn api_version(&self, version: usize) -> String {
        let (group, version, _) = self.versions[version];
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }
}

const AUTOSCALERS: Kind = Kind {
    plural: "horizontalpodautoscalers",
    versions: [
        ("autoscaling", "v1", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"),
        ("autoscaling", "v2", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"),
    ],
    object: |version, number| {
        let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let mut spec =
            json!({"minReplicas": 1 + number % 3, "maxReplicas": 4 + number, "scaleTargetRef": reference});
        let target = |percent: usize| json!({"type": "Utilization", "averageUtilization": percent});
        match (version, number % 4) {
            (0, 0) => {}
            (0, _) => spec["targetCPUUtilizationPercentage"] = json!(10 + number),
            (_, 0) => {}
            (_, 1) => {
                spec["metrics"] =
                    json!([{"type": "Resource", "resource": {"name": "cpu", "target": target(50 + number)}}]);
            }
            (_, 2) => {
                spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "memory", "target": target(60)}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": target(70)}}]);
            }
            _ => {
                spec["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 30 + number}});
                spec["metrics"] = json!([{"type": "Pods", "pods": {"metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "7"}}}]);
            }
        }
        json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": format!("a{number}")}, "spec": spec})
    },
    change: |number| json!({"spec": {"maxReplicas": 20 + number}}),
};

const EVENTS: Kind = Kind {
    plural: "events",
    versions: [
        ("", "v1", "/api/v1/namespaces/default/events"),
        ("events.k8s.io", "v1", "/apis/events.k8s.io/v1/namespaces/default/events"),
    ],
    object: |version, number| {
        let about = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default"});
        let mut event = json!({"kind": "Event", "metadata": {"name": format!("a{number}")}, "reason": "Tested",
            "type": if number % 2 == 0 { "Normal" } else { "Warning" }});
        if version == 0 {
            event["involvedObject"] = about;
            event["message"] = json!(format!("message {number}"));
            event["source"] = json!({"component": "test"});
            event["firstTimestamp"] = json!("2026-01-01T00:00:00Z");
            event["lastTimestamp"] = json!("2026-01-01T00:00:00Z");
            event["count"] = json!(1 + number);
        } else {
            event["regarding"] = about;
            event["note"] = json!(format!("message {number}"));
            event["reportingController"] = json!("example.com/test");
            event["reportingInstance"] = json!("one");
            event["action"] = json!("Test");
            event["eventTime"] = json!("2026-01-01T00:00:00.000000Z");
        }
        event
    },
    change: |number| json!({"metadata": {"labels": {"number": number.to_string()}}}),
};

const THINGS: Kind = Kind {
    plural: "things",
    versions: [
        ("example.com", "v1", "/apis/example.com/v1/namespaces/default/things"),
        ("example.com", "v2", "/apis/example.com/v2/namespaces/default/things"),
    ],
    object: |version, number| {
        let field = ["size", "width"][version];
        let mut thing =
            conversion::thing(["v1", "v2"][version], &format!("a{number}"), &json!({field: number}));
        if number % 2 == 1 {
            thing["spec"]["color"] = json!("blue");
        }
        thing
    },
    change: |number| json!({"spec": {"color": format!("color{number}")}}),
};

/// What does not differ between the object that is admitted and the one that is stored.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    object
}

/// What was seen is of the version that was matched.
fn check(kind: &Kind, request: &Value, [asked, matched]: [usize; 2], dry: bool, what: &str) {
    let version = |place: usize| {
        let (group, version, _) = kind.versions[place];
        (json!(group), json!(version))
    };
    let at = |field: &str| (request[field]["group"].clone(), request[field]["version"].clone());
    assert_eq!(at("kind"), version(matched), "{what}: {request}");
    assert_eq!(at("resource"), version(matched), "{what}");
    assert_eq!(at("requestKind"), version(asked), "{what}");
    assert_eq!(at("requestResource"), version(asked), "{what}");
    assert_eq!(request["dryRun"], json!(dry), "{what}");
    let operation = request["operation"].as_str().unwrap();
    for (field, there) in [("object", operation != "DELETE"), ("oldObject", operation != "CREATE")] {
        let own = &request[field]["apiVersion"];
        if there {
            assert_eq!(*own, json!(kind.api_version(matched)), "{what} {field}");
        } else {
            assert!(request[field].is_null(), "{what} {field}");
        }
    }
}

/// Who sees what of a create, a change and a delete, each tried first.
async fn webhooks_see_their_version(server: &Server, kind: &Kind) {
    for asked in [0, 1] {
        for matched in [0, 1] {
            let (group, version, _) = kind.versions[matched];
            let rules = json!([{"operations": ["*"], "apiGroups": [group], "apiVersions": [version],
                "resources": [kind.plural]}]);
            for style in ["Mutating", "Validating"] {
                let hook = Hook::responding(json!({"allowed": true})).await;
                let exact = Hook::responding(json!({"allowed": true})).await;
                configure(server, style, "x", &hook.client_config(), &rules, &json!({})).await;
                let only = json!({"matchPolicy": "Exact"});
                configure(server, style, "exact", &exact.client_config(), &rules, &only).await;
                for number in 0..4 {
                    let what = format!("{} {asked} {matched} {style} {number}", kind.plural);
                    play(server, kind, [asked, matched], &hook, number, &what).await;
                }
                let asked_exactly = if asked == matched { hook.seen().len() } else { 0 };
                assert_eq!(exact.seen().len(), asked_exactly, "{} {asked} {matched}", kind.plural);
                for name in ["x", "exact"] {
                    let path = format!(
                        "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/{name}",
                        style.to_lowercase()
                    );
                    server.delete(&path, &Value::Null).await.expect_success();
                }
            }
        }
    }
}

async fn play(server: &Server, kind: &Kind, pair: [usize; 2], hook: &Hook, number: usize, what: &str) {
    let [asked, matched] = pair;
    let (own, other) = (kind.versions[asked].2, kind.versions[matched].2);
    let mut object = (kind.object)(asked, number);
    object["apiVersion"] = json!(kind.api_version(asked));
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let last = || hook.seen().last().unwrap()["request"].clone();
    let read = async || server.get(&format!("{other}/{name}")).await.expect_success();
    let json = "application/json";
    let mut tried = Value::Null;
    for dry in [true, false] {
        let query = if dry { "?dryRun=All" } else { "" };
        server.send(Method::POST, &format!("{own}{query}"), json, json, &object).await.expect_success();
        check(kind, &last(), pair, dry, what);
        if dry {
            tried = last()["object"].clone();
        }
    }
    let made = read().await;
    assert_eq!(comparable(&last()["object"]), comparable(&made), "{what}: a create");
    assert_eq!(comparable(&tried), comparable(&made), "{what}: a create that is tried");
    for dry in [true, false] {
        let query = if dry { "?dryRun=All" } else { "" };
        let path = format!("{own}/{name}{query}");
        server.merge(&path, &(kind.change)(number)).await.expect_success();
        check(kind, &last(), pair, dry, what);
        assert_eq!(comparable(&last()["oldObject"]), comparable(&made), "{what}: before a change");
    }
    let changed = read().await;
    assert_eq!(comparable(&last()["object"]), comparable(&changed), "{what}: a change");
    assert_ne!(comparable(&made), comparable(&changed), "{what}: the change must be one");
    for dry in [true, false] {
        let query = if dry { "?dryRun=All" } else { "" };
        server.delete(&format!("{own}/{name}{query}"), &Value::Null).await.expect_success();
        check(kind, &last(), pair, dry, what);
        assert_eq!(comparable(&last()["oldObject"]), comparable(&changed), "{what}: a delete");
    }
}

/// The same of policies: the expression is true of the matched version alone, so a refusal is a wrong version. That
/// it was evaluated at all is seen by turning it round.
async fn policies_see_their_version(server: &Server, kind: &Kind) {
    let group = "/apis/admissionregistration.k8s.io/v1";
    for asked in [0, 1] {
        for matched in [0, 1] {
            for negated in [false, true] {
                let (own_group, version, _) = kind.versions[matched];
                let api_version = kind.api_version(matched);
                let right = format!(
                    "(object == null || object.apiVersion == '{api_version}') && \
                     (oldObject == null || oldObject.apiVersion == '{api_version}') && \
                     request.kind.version == '{version}' && request.kind.group == '{own_group}' && \
                     request.requestKind.version == '{}' && request.requestKind.group == '{}'",
                    kind.versions[asked].1, kind.versions[asked].0
                );
                let expression = if negated { format!("!({right})") } else { right };
                let policy = json!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail",
                    "matchConstraints": {"resourceRules": [{"operations": ["*"], "apiGroups": [own_group],
                        "apiVersions": [version], "resources": [kind.plural]}]},
                    "validations": [{"expression": expression}]}});
                let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
                let own = kind.versions[asked].2;
                let create = async |number: usize, query: &str| {
                    let mut object = (kind.object)(asked, number);
                    object["apiVersion"] = json!(kind.api_version(asked));
                    server.post(&format!("{own}{query}"), &object).await.status.is_success()
                };
                assert!(create(0, "").await);
                server.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.expect_success();
                server
                    .post(&format!("{group}/validatingadmissionpolicybindings"), &binding)
                    .await
                    .expect_success();
                let what = format!("{} {asked} {matched} {negated}", kind.plural);
                for query in ["?dryRun=All", ""] {
                    assert_eq!(create(1, query).await, !negated, "{what}: create{query}");
                    let path = format!("{own}/a0{query}");
                    let changed = server.merge(&path, &(kind.change)(3)).await.status.is_success();
                    assert_eq!(changed, !negated, "{what}: change{query}");
                    let deleted = server.delete(&path, &Value::Null).await.status.is_success();
                    assert_eq!(deleted, !negated, "{what}: delete{query}");
                }
                for path in ["validatingadmissionpolicies/p", "validatingadmissionpolicybindings/b"] {
                    server.delete(&format!("{group}/{path}"), &Value::Null).await.expect_success();
                }
                for name in ["a0", "a1"] {
                    server.delete(&format!("{own}/{name}"), &Value::Null).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn webhooks_see_the_version_of_an_autoscaler_that_they_match() {
    webhooks_see_their_version(&Server::new(), &AUTOSCALERS).await;
}

#[tokio::test]
async fn webhooks_see_the_version_of_an_event_that_they_match() {
    webhooks_see_their_version(&Server::new(), &EVENTS).await;
}

#[tokio::test]
async fn webhooks_see_the_version_of_a_custom_object_that_they_match() {
    let (server, _converter, _hook) = conversion::start().await;
    webhooks_see_their_version(&server, &THINGS).await;
}

#[tokio::test]
async fn policies_see_the_version_that_they_match() {
    policies_see_their_version(&Server::new(), &AUTOSCALERS).await;
    policies_see_their_version(&Server::new(), &EVENTS).await;
    let (server, _converter, _hook) = conversion::start().await;
    policies_see_their_version(&server, &THINGS).await;
}

/// Every kind that is served in several versions is one of those above.
#[tokio::test]
async fn no_kind_with_several_versions_is_left_out() {
    let server = Server::new();
    let registry = server.registry();
    let catalog = registry.catalog();
    let mut several = std::collections::BTreeMap::<String, usize>::new();
    for resource in catalog.resources() {
        *several.entry(format!("{:?}", resource.table)).or_default() += 1;
    }
    let several = several.values().filter(|count| **count > 1).count();
    assert_eq!(several, 2, "horizontalpodautoscalers and events");
}

/// A policy that leaves a version out leaves out what is asked in another one too.
#[tokio::test]
async fn what_is_excluded_is_excluded_in_every_version() {
    let server = Server::new();
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rule = |version: &str| {
        json!([{"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": [version],
            "resources": ["horizontalpodautoscalers"]}])
    };
    let policy = json!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rule("*"), "excludeResourceRules": rule("v2")},
        "validations": [{"expression": "false"}]}});
    server.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.expect_success();
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    server.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).await.expect_success();
    for version in [0, 1] {
        let object = (AUTOSCALERS.object)(version, version);
        server.post(AUTOSCALERS.versions[version].2, &object).await.expect_success();
    }
}

/// Objects of a definition are selected by the fields that it names now, whichever version wrote them.
#[tokio::test]
async fn fields_of_custom_objects_are_selected_in_every_version() {
    let server = Server::new();
    let version = |name: &str, storage: bool, fields: Value| {
        json!({"name": name, "served": true, "storage": storage, "selectableFields": fields,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}}}})
    };
    let path = |field: &str| json!({"jsonPath": format!(".spec.{field}")});
    let mut definition = conversion::definition(&json!({"strategy": "None"}));
    definition["spec"]["versions"] =
        json!(
            [version("v1", true, json!([path("a")])), version("v2", false, json!([path("b"), path("a")])),]
        );
    server.post(DEFINITIONS, &definition).await.expect_success();
    for (number, place) in THINGS.versions.iter().enumerate() {
        let name = format!("by-{}", place.1);
        let thing =
            conversion::thing(place.1, &name, &json!({"a": format!("a{number}"), "b": format!("b{number}")}));
        server.post(place.2, &thing).await.expect_success();
    }
    let named = async |place: usize, selector: &str| {
        let path = format!("{}?fieldSelector={selector}", THINGS.versions[place].2);
        let list = server.get(&path).await.expect_success();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for place in [0, 1] {
        assert_eq!(named(place, "spec.a%3Da0").await, ["by-v1"], "{place}");
        assert_eq!(named(place, "spec.a%3Da1").await, ["by-v2"], "{place}");
    }
    assert_eq!(named(1, "spec.b%3Db0").await, ["by-v1"]);
    // A field that is named later selects what was there before.
    let add = json!({"spec": {"versions": [version("v1", true, json!([path("b")])), version("v2", false, json!([]))]}});
    server.merge(&format!("{DEFINITIONS}/things.example.com"), &add).await.expect_success();
    assert_eq!(named(0, "spec.b%3Db0").await, ["by-v1"]);
    assert_eq!(named(0, "spec.b%3Db1").await, ["by-v2"]);
}

/// Who owns what is kept in the version of each manager, and compared in it: a change of one version takes from a manager
/// of another what it changed there, and nothing else.
#[tokio::test]
async fn managers_own_fields_of_their_own_version() {
    let server = Server::new();
    let [(.., old), (.., new)] = AUTOSCALERS.versions;
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let intent = |version: &str, percent: Value| {
        let mut spec = json!({"maxReplicas": 3, "scaleTargetRef": reference});
        if version == "v1" {
            spec["targetCPUUtilizationPercentage"] = percent;
        } else {
            spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": percent}}}]);
        }
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"}, "spec": spec})
    };
    server.apply(&format!("{old}/a"), "older", &intent("v1", json!(50))).await.expect_success();
    // The same in other words is no conflict; another value is one, and names the field of the other version.
    server.apply(&format!("{new}/a"), "newer", &intent("v2", json!(50))).await.expect_success();
    let conflict = server.apply(&format!("{new}/a"), "newest", &intent("v2", json!(70))).await;
    let message = conflict.failed(409, "Conflict");
    // Asked of Kubernetes 1.37.1.
    let both = "Apply failed with 2 conflicts: conflicts with \"newer\":\n- .spec.metrics\nconflicts with \"older\":\n- \
                .spec.targetCPUUtilizationPercentage";
    assert_eq!(message, both);
    // A change of something else leaves both with what they have.
    server.merge(&format!("{new}/a"), &json!({"spec": {"minReplicas": 2}})).await.expect_success();
    let managers = async || {
        let object = server.get(&format!("{new}/a")).await.expect_success();
        let entries = object["metadata"]["managedFields"].as_array().unwrap().clone();
        entries
            .into_iter()
            .filter(|entry| entry["operation"] == "Apply")
            .map(|entry| {
                (entry["manager"].as_str().unwrap().to_owned(), entry["fieldsV1"]["f:spec"].to_string())
            })
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = managers().await;
    assert!(
        before["older"].contains("f:targetCPUUtilizationPercentage") && before["newer"].contains("f:metrics")
    );
    let metrics = intent("v2", json!(90))["spec"]["metrics"].clone();
    server.merge(&format!("{new}/a"), &json!({"spec": {"metrics": metrics}})).await.expect_success();
    let after = managers().await;
    assert!(!after["older"].contains("f:targetCPUUtilizationPercentage"), "{after:?}");
    assert!(after["older"].contains("f:maxReplicas") && !after["newer"].contains("f:metrics"), "{after:?}");
}
