//! An operator to pack, for tests: one kind, in two versions, with webhooks, as a program of the SDK's prints it.

use serde_json::{Value, json};

use crate::{Facts, Objects, RELEASE_NAMESPACE, WATCHED_NAMESPACE};

pub(crate) fn facts(version: &str) -> Facts {
    let mut facts = Facts::new("shop", version, format!("shop:v{version}")).unwrap();
    facts.description = "Keeps carts".to_owned();
    facts
}

fn role(kind: &str, name: &str, namespace: Option<&str>, rules: Value) -> [Value; 2] {
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules,
    });
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "shop", "namespace": RELEASE_NAMESPACE}],
    });
    if let Some(namespace) = namespace {
        role["metadata"]["namespace"] = json!(namespace);
        binding["metadata"]["namespace"] = json!(namespace);
    }
    [role, binding]
}

pub(crate) fn crd(served: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == "v1",
            "schema": {"openAPIV3Schema": {
                "description": "A cart of {{ things }}.",
                "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "description": "How many."},
                        "image": {"type": "string", "default": "cart:1"},
                        "mode": {"type": "string", "enum": ["Fast", "Safe"]},
                        "storage": {"type": "object", "properties": {"class": {"type": "string"}}},
                    }},
                    "status": {"type": "object", "properties": {"conditions": {"type": "array"}}},
                },
            }},
        })
    };
    let versions: Vec<Value> = served.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "carts.shop.com"},
        "spec": {
            "group": "shop.com", "scope": "Namespaced", "versions": versions,
            "names": {"kind": "Cart", "plural": "carts", "singular": "cart"},
            "conversion": {"strategy": "None"},
        },
    })
}

fn objects(watched: bool, crd: Value, more: &[Value]) -> Vec<Value> {
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "get"]},
        {"apiGroups": ["shop.com"], "resources": ["carts", "carts/status"], "verbs": ["get", "patch"]},
    ]);
    let mut args = vec!["run", "--metrics-bind-address=:8443"];
    let argument = format!("--watch-namespaces={WATCHED_NAMESPACE}");
    if watched {
        args.push(&argument);
    }
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE_NAMESPACE}}),
        crd,
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shop", "namespace": RELEASE_NAMESPACE}}),
    ];
    let wide =
        json!([{"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}]);
    if watched {
        all.extend(role("Role", "shop", Some(WATCHED_NAMESPACE), rules));
    } else {
        all.extend(role("ClusterRole", "shop", None, rules));
    }
    all.extend(role("ClusterRole", "shop-metrics-auth", None, wide));
    let viewer = json!([{"apiGroups": ["shop.com"], "resources": ["carts"], "verbs": ["get"]}]);
    all.push(role("ClusterRole", "shop-cart-viewer", None, viewer)[0].clone());
    all.push(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop-metrics", "namespace": RELEASE_NAMESPACE},
        "spec": {"ports": [{"port": 8443, "targetPort": "metrics"}]},
    }));
    all.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "namespace": RELEASE_NAMESPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "shop"}},
            "template": {
                "metadata": {"labels": {"app": "shop"}},
                "spec": {
                    "serviceAccountName": "shop",
                    "containers": [{
                        "name": "manager", "image": "shop:v1.0.0", "args": args,
                        "ports": [{"name": "webhook", "containerPort": 9443}],
                        "volumeMounts": [{"name": "webhook-certificates", "mountPath": "/certs"}],
                    }],
                    "volumes": [{"name": "webhook-certificates", "secret": {"secretName": "x"}}],
                },
            },
        },
    }));
    all.extend(more.iter().cloned());
    all
}

/// The operator with more objects.
pub(crate) fn shop_with(more: &[Value]) -> Objects {
    let crd = crd(&["v1"]);
    Objects::new(objects(false, crd.clone(), more)).unwrap().restricted(objects(true, crd, more))
}

/// The operator whose kind is converted by a webhook.
pub(crate) fn converting() -> Objects {
    let mut crd = crd(&["v1", "v1beta1"]);
    crd["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "shop-webhook", "namespace": RELEASE_NAMESPACE, "path": "/convert"}},
        },
    });
    Objects::new(objects(false, crd.clone(), &[])).unwrap().restricted(objects(true, crd, &[]))
}

pub(crate) fn sample(version: &str) -> Value {
    json!({"apiVersion": format!("shop.com/{version}"), "kind": "Cart", "metadata": {"name": "cart-sample"}})
}
