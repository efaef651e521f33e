//! One object of each kind with which its operator makes all that it can make: every kind of child, and the options that
//! change one. What is written over all kinds begins with these.

use serde_json::{Value, json};
use windlass_operators::{Entry, catalogue};

/// The name of the object of a kind: several kinds make a Deployment of their own name.
pub(crate) fn name(kind: &str) -> String {
    format!("whole-{kind}")
}

/// The spec of a kind with everything that brings a child.
pub(crate) fn spec(kind: &str) -> Value {
    match kind {
        "podmanager" => json!({"replicas": 2, "image": "nginx:1.27"}),
        "imoocpod" => json!({"replicas": 2}),
        "webserver" => json!({"replicas": 2, "image": "nginx:1.27", "content": {"index.html": "hello"}}),
        "memcached" => json!({"size": 2, "exporter": {"image": "prom/memcached-exporter:v0.15.0"}}),
        "helloworld" => json!({"size": 2}),
        "webapp" => json!({
            "replicas": 2, "image": "nginx:1.27", "domain": "whole.example.com",
            "tls": {"secretName": "whole-tls"}, "autoscaling": {"min": 2, "max": 3},
        }),
        "database" => json!({
            "version": "15", "storage": {"size": "1Gi"}, "backup": {"schedule": "0 2 * * *"},
        }),
        "databasebackup" => json!({"databaseRef": {"name": name("database")}}),
        other => panic!("{other} is a new kind: say here what it is with all of its children"),
    }
}

/// An object of a kind with this name and spec.
pub(crate) fn object(entry: &Entry, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": entry.api_version, "kind": entry.kind, "metadata": {"name": name}, "spec": spec,
    })
}

/// All of them, in the order of the catalogue.
pub(crate) fn objects() -> Vec<Value> {
    catalogue().iter().map(|entry| object(entry, &name(entry.name), &spec(entry.name))).collect()
}
