//! Changes of objects that are long already: replaced, merged, patched, applied; of built-in kinds and of a custom one.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use super::{LONG, SHORT, superlinear};
use crate::server::{DEFINITIONS, Server};

/// An object with a long list, and where the list is.
struct Case {
    what: &'static str,
    path: &'static str,
    object: fn(Value) -> Value,
    list: &'static str,
    entry: fn(usize) -> Value,
    is_map: bool,
    custom: bool,
}

impl Case {
    fn collection(&self, numbers: &mut dyn Iterator<Item = usize>) -> Value {
        if self.is_map {
            return Value::Object(
                numbers.map(|number| (format!("k{number}"), (self.entry)(number))).collect(),
            );
        }
        numbers.map(self.entry).collect()
    }

    fn whole(&self, length: usize) -> Value {
        self.of(length, &mut (0..length))
    }

    fn of(&self, length: usize, numbers: &mut dyn Iterator<Item = usize>) -> Value {
        let mut object = (self.object)(self.collection(numbers));
        object["metadata"]["name"] = json!(format!("x{length}"));
        object
    }
}

fn pod_of(field: &str, list: Value) -> Value {
    let mut pod = json!({"containers": [{"name": "c", "image": "i"}]});
    match field.strip_prefix("containers/0/") {
        Some(inner) => pod["containers"][0][inner] = list,
        None => pod[field] = list,
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {},
        "spec": {"selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod}},
    })
}

fn thing(field: &str, list: Value) -> Value {
    let mut thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}, "spec": {}});
    thing["spec"][field] = list;
    thing
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

macro_rules! case {
    ($what:literal, $path:expr, $list:literal, $object:expr, $entry:expr) => {
        Case {
            what: $what,
            path: $path,
            object: $object,
            list: $list,
            entry: $entry,
            is_map: false,
            custom: false,
        }
    };
}

fn built_in() -> Vec<Case> {
    let variable = |number| json!({"name": format!("V{number}"), "value": "v"});
    vec![
        case!(
            "env",
            DEPLOYMENTS,
            "/spec/template/spec/containers/0/env",
            |list| pod_of("containers/0/env", list),
            variable
        ),
        case!(
            "container ports",
            DEPLOYMENTS,
            "/spec/template/spec/containers/0/ports",
            |list| pod_of("containers/0/ports", list),
            |number| json!({"containerPort": number + 1, "name": format!("p-{number}")})
        ),
        case!(
            "volumes",
            DEPLOYMENTS,
            "/spec/template/spec/volumes",
            |list| pod_of("volumes", list),
            |number| json!({"name": format!("v{number}"), "emptyDir": {}})
        ),
        case!(
            "containers",
            DEPLOYMENTS,
            "/spec/template/spec/containers",
            |list| pod_of("containers", list),
            |number| json!({"name": format!("c{number}"), "image": "i"})
        ),
        case!(
            "tolerations",
            DEPLOYMENTS,
            "/spec/template/spec/tolerations",
            |list| pod_of("tolerations", list),
            |number| json!({"key": format!("k{number}"), "operator": "Exists"})
        ),
        case!(
            "pull secrets",
            DEPLOYMENTS,
            "/spec/template/spec/imagePullSecrets",
            |list| pod_of("imagePullSecrets", list),
            |number| json!({"name": format!("s{number}")})
        ),
        case!(
            "service ports",
            "/api/v1/namespaces/default/services",
            "/spec/ports",
            |list| json!({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"ports": list}}),
            |number| json!({"name": format!("p{number}"), "port": number + 1})
        ),
        case!(
            "finalizers",
            "/api/v1/namespaces/default/configmaps",
            "/metadata/finalizers",
            |list| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": list}}),
            |number| json!(format!("a.b/f{number}"))
        ),
        case!(
            "owners",
            "/api/v1/namespaces/default/configmaps",
            "/metadata/ownerReferences",
            |list| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"ownerReferences": list}}),
            |number| json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": format!("u{number}")})
        ),
        case!(
            "subjects",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            "/subjects",
            |list| json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": list}),
            |number| json!({"kind": "ServiceAccount", "name": format!("a{number}"), "namespace": "default"})
        ),
        Case {
            is_map: true,
            ..case!(
                "data",
                "/api/v1/namespaces/default/configmaps",
                "/data",
                |list| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": list}),
                |_| json!("v")
            )
        },
        Case {
            is_map: true,
            ..case!(
                "annotations",
                "/api/v1/namespaces/default/configmaps",
                "/metadata/annotations",
                |list| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": list}}),
                |_| json!("v")
            )
        },
    ]
}

fn custom() -> Vec<Case> {
    let named = |number| json!({"name": format!("n{number}"), "value": number});
    let mut cases = vec![
        case!("custom atomic", THINGS, "/spec/atomic", |list| thing("atomic", list), named),
        case!("custom set", THINGS, "/spec/set", |list| thing("set", list), |number| json!(format!(
            "s{number}"
        ))),
        case!("custom map list", THINGS, "/spec/named", |list| thing("named", list), named),
        case!("custom keys", THINGS, "/spec/keyed", |list| thing("keyed", list), |number| {
            json!({"name": format!("n{number}"), "port": number})
        }),
        case!("custom free", THINGS, "/spec/free", |list| thing("free", list), named),
        Case { is_map: true, ..case!("custom map", THINGS, "/spec/map", |list| thing("map", list), named) },
    ];
    for case in &mut cases {
        case.custom = true;
    }
    cases
}

fn definition() -> Value {
    let entry = json!({"type": "object", "required": ["name"],
        "x-kubernetes-validations": [{"rule": "self.name.size() < 100"}, {"rule": "self.name == oldSelf.name"}],
        "properties": {
            "name": {"type": "string", "maxLength": 100, "pattern": "^[a-z0-9]*$"},
            "value": {"type": "integer", "minimum": 0}, "port": {"type": "integer", "default": 7},
            "more": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "b"}}}}});
    let plain = json!({"type": "object", "properties": entry["properties"]});
    let list = |extra: Value| {
        let mut list = json!({"type": "array", "maxItems": 10_000, "items": entry});
        list.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        list
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "atomic": {"type": "array", "maxItems": 10_000, "items": plain},
                    "set": {"type": "array", "maxItems": 10_000, "items": {"type": "string", "maxLength": 100},
                        "x-kubernetes-list-type": "set"},
                    "named": list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})),
                    "keyed": list(json!({
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]})),
                    "map": {"type": "object", "maxProperties": 10_000, "additionalProperties": plain},
                    "free": {"type": "array", "items": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }}},
            }}}],
        },
    })
}

/// A way to change an object: the media type, whether it is an apply, and the body.
type Change = (&'static str, &'static str, fn(&Case, usize) -> Value);

fn nested(pointer: &str, value: Value) -> Value {
    pointer
        .rsplit('/')
        .filter(|part| !part.is_empty())
        .fold(value, |inner, part| if part == "0" { json!([inner]) } else { json!({part: inner}) })
}

fn operations(length: usize, one: impl Fn(usize) -> Value) -> Value {
    (0..length).map(one).collect()
}

const CHANGES: [Change; 9] = [
    ("replace", "PUT", |case, length| case.of(length, &mut (0..length).rev())),
    ("replace by half", "PUT", |case, length| case.of(length, &mut (0..length).step_by(2))),
    ("merge", "application/merge-patch+json", |case, length| {
        let list = case.collection(&mut (1..length).rev());
        if case.list.contains("/0/") {
            return case.of(length, &mut (1..length).rev());
        }
        nested(case.list, list)
    }),
    ("strategic", "application/strategic-merge-patch+json", |case, length| {
        let mut object = case.of(length, &mut (0..length + length / 2).rev());
        object["metadata"]["labels"] = json!({"a": "b"});
        object
    }),
    ("strategic delete", "application/strategic-merge-patch+json", |case, length| {
        let mut object = case.of(length, &mut (1..length).rev());
        let items = object.pointer_mut(case.list).and_then(Value::as_array_mut).into_iter().flatten();
        for item in items.filter(|item| item.is_object()) {
            item["$patch"] = json!("delete");
        }
        object
    }),
    ("insert at the head", "application/json-patch+json", |case, length| {
        operations(length, |number| {
            let place = if case.is_map { format!("n{number}") } else { "0".into() };
            json!({"op": "add", "path": format!("{}/{place}", case.list), "value": (case.entry)(number)})
        })
    }),
    ("remove the head", "application/json-patch+json", |case, length| {
        operations(length, |number| {
            let place = if case.is_map { format!("k{number}") } else { "0".into() };
            json!({"op": "remove", "path": format!("{}/{place}", case.list)})
        })
    }),
    ("apply", "apply", |case, length| case.of(length, &mut (0..length).rev())),
    ("apply half", "apply", |case, length| case.of(length, &mut (length / 2..length + length / 2))),
];

async fn grow(server: &Server, cases: &[Case]) -> Vec<String> {
    let mut found = Vec::new();
    for case in cases {
        let made = std::cell::RefCell::new(BTreeSet::new());
        let make = async |length: usize| {
            if !made.borrow_mut().insert(length) {
                return;
            }
            let place = format!("{}/x{length}?fieldManager=first&force=true", case.path);
            let applied = "application/apply-patch+yaml";
            let body = case.whole(length);
            let answer = server.send(Method::PATCH, &place, applied, "application/json", &body).await;
            assert!(answer.status.is_success(), "{} {length}: {}", case.what, answer.body["message"]);
        };
        make(SHORT).await;
        make(LONG).await;
        for (name, media, change) in CHANGES {
            if case.custom && media.contains("strategic") {
                continue;
            }
            let what = format!("{}: {name}", case.what);
            let send = async |body: &Value, length: usize| {
                // The longer ones are hardly ever needed; of several runs the shortest counts.
                make(length).await;
                let place = format!("{}/x{length}?dryRun=All", case.path);
                let (method, query, media) = match media {
                    "PUT" => (Method::PUT, "", "application/json"),
                    "apply" => {
                        (Method::PATCH, "&fieldManager=first&force=true", "application/apply-patch+yaml")
                    }
                    other => (Method::PATCH, "", other),
                };
                server.send(method, &format!("{place}{query}"), media, "application/json", body).await;
            };
            found.extend(superlinear(&what, &|length| change(case, length), &send).await);
        }
    }
    found
}

#[tokio::test]
async fn no_change_of_a_long_object_costs_more_than_its_length() {
    let found = grow(&Server::new(), &built_in()).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn no_change_of_a_long_custom_object_costs_more_than_its_length() {
    let server = Server::new();
    server.post(DEFINITIONS, &definition()).await.expect_success();
    let found = grow(&server, &custom()).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}
