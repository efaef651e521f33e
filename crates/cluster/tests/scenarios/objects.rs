//! What a step creates: the little that a scenario says, over what its kind needs to be valid.

use serde_json::{Map, Value, json};

use super::{kinds, scenario::Step};

/// The object of a step that creates one.
pub(crate) fn created(step: &Step, kind: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": kinds::named(kind).api_version, "kind": kind, "metadata": {"name": name},
    });
    if let Some(spec) = beginning(kind, name) {
        object["spec"] = spec;
    }
    if kind == "Pod" {
        object["metadata"]["labels"] = json!({"app": name});
    }
    merge(&mut object, &change(step));
    object
}

/// The change of a step.
pub(crate) fn change(step: &Step) -> Value {
    let mut change = step.with.clone().unwrap_or_else(|| json!({}));
    for (path, value) in [("labels", &step.labels), ("annotations", &step.annotations)] {
        if let Some(value) = value {
            change["metadata"][path] = value.clone();
        }
    }
    if let Some(spec) = &step.spec {
        change["spec"] = spec.clone();
    }
    change
}

/// The containers of a workload, with a tag of their image.
pub(crate) fn containers(name: &str, tag: &str) -> Value {
    json!([{"name": "main", "image": format!("example.com/{name}:{tag}")}])
}

fn pod(name: &str) -> Value {
    json!({"containers": containers(name, "1"), "terminationGracePeriodSeconds": 1})
}

fn template(name: &str) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": pod(name)})
}

fn job(name: &str) -> Value {
    let mut template = template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({ "template": template })
}

/// What a kind begins with.
fn beginning(kind: &str, name: &str) -> Option<Value> {
    let selector = json!({"matchLabels": {"app": name}});
    Some(match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" => {
            json!({"selector": selector, "template": template(name)})
        }
        "StatefulSet" => json!({"selector": selector, "template": template(name), "serviceName": name}),
        "ReplicationController" => json!({"selector": {"app": name}, "template": template(name)}),
        "Job" => job(name),
        "CronJob" => json!({"schedule": "* * * * *", "jobTemplate": {"spec": job(name)}}),
        "Pod" => pod(name),
        "PodDisruptionBudget" => json!({ "selector": selector }),
        "Service" => json!({"selector": {"app": name}, "ports": [{"port": 80}]}),
        "PersistentVolumeClaim" => {
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
        }
        _ => return None,
    })
}

/// Merges as JSON merge patch does, but that lists of one container are merged as well: a scenario says of a container
/// only what is special.
fn merge(target: &mut Value, change: &Value) {
    match change {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            for (key, field) in fields {
                if field.is_null() {
                    target.as_object_mut().unwrap().remove(key);
                } else {
                    merge(&mut target[key], field);
                }
            }
        }
        Value::Array(items) => match target.as_array_mut() {
            Some(old) if old.len() == 1 && items.len() == 1 && old[0]["image"].is_string() => {
                merge(&mut old[0], &items[0]);
            }
            _ => *target = change.clone(),
        },
        other => *target = other.clone(),
    }
}
