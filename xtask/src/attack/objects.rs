//! The objects that attacks are made of.

use serde_json::{Value, json};

pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(super) const SERVICES: &str = "/api/v1/namespaces/default/services";

pub(super) fn config_map(name: &str, data: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": name}},
        "data": {"value": data}})
}

/// A Pod whose one container has so many environment variables.
pub(super) fn pod(name: &str, variables: usize) -> Value {
    let env: Vec<Value> =
        (0..variables).map(|index| json!({"name": format!("V{index}"), "value": "x"})).collect();
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx", "env": env}]}})
}

/// A Service with so many ports.
pub(super) fn service(name: &str, ports: usize) -> Value {
    let ports: Vec<Value> = (0..ports)
        .map(|index| {
            let port = index % 65_535 + 1;
            json!({"name": format!("p{index}"), "port": port, "protocol": "TCP"})
        })
        .collect();
    json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": ports}})
}

pub(super) fn deployment(name: &str, replicas: usize) -> Value {
    json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "nginx", "ports": [{"containerPort": 8443}]}]}}}})
}

/// A definition of `things` in the group `example.com`, with a schema of its spec.
pub(super) fn definition(spec: &Value) -> Value {
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": spec}}}}]}})
}

/// Rights for a user of every name.
pub(super) fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "rules": rules})
}

pub(super) fn binding(role: &str, user: &str) -> Value {
    json!({"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})
}
