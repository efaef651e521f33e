//! Every child of every kind, edited, deleted and replaced by somebody else's: it comes right again.
//!
//! The children are those that the operators make of [`whole`], and what is edited is what they own by the server's books.

use futures::future::join_all;
use kube::{
    Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_operators::Entry;

use crate::{
    bed::{Ground, eventually},
    children::{self, controlled_by, kind_api, parents, resource_of, title, wanted},
    plane::{NAMESPACE, Site},
    suite::condition_of,
    whole,
};

/// How many fields of a child are edited, of all that the operator owns: every edit may roll its Pods.
const EDITS: usize = 6;

async fn get(client: &Client, child: &Value) -> Option<DynamicObject> {
    let name = child["metadata"]["name"].as_str().unwrap();
    children::api(client, NAMESPACE, &resource_of(child)).get_opt(name).await.unwrap()
}

fn as_value(object: &DynamicObject, like: &Value) -> Value {
    children::value(object, &resource_of(like))
}

/// Pointers to the plain values that the operators own of a child.
fn owned(child: &Value) -> Vec<String> {
    fn collect(fields: &Value, value: &Value, pointer: &str, found: &mut Vec<String>) {
        let Some(fields) = fields.as_object() else { return };
        for (key, below) in fields {
            if let Some(name) = key.strip_prefix("f:") {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                collect(below, &value[name], &pointer, found);
            } else if let Some(keys) = key.strip_prefix("k:") {
                let keys: Value = serde_json::from_str(keys).unwrap();
                let same =
                    |item: &Value| keys.as_object().unwrap().iter().all(|(name, key)| item[name] == *key);
                let Some(index) = value.as_array().and_then(|items| items.iter().position(same)) else {
                    continue;
                };
                let item = format!("{pointer}/{index}");
                let first = found.len();
                collect(below, &value[index], &item, found);
                // Under another key it is another item, and that one is whose who wrote it.
                let is_key = |pointer: &str| {
                    let name = pointer.strip_prefix(&item).and_then(|rest| rest.strip_prefix('/'));
                    name.is_some_and(|name| keys.get(name).is_some())
                };
                let kept: Vec<String> = found.drain(first..).filter(|pointer| !is_key(pointer)).collect();
                found.extend(kept);
            }
        }
        if fields.is_empty() && (value.is_string() || value.is_number() || value.is_boolean()) {
            found.push(pointer.to_owned());
        }
    }
    let mut found = Vec::new();
    for entry in child["metadata"]["managedFields"].as_array().into_iter().flatten() {
        if entry["manager"] == "windlass-operators" && entry.get("subresource").is_none() {
            collect(&entry["fieldsV1"], child, "", &mut found);
        }
    }
    // Who owns a child is not for others to say: a child that is disowned is somebody else's.
    found.retain(|pointer| !pointer.starts_with("/metadata/ownerReferences"));
    found
}

fn other(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
        Value::String(text) => json!(format!("{text}x")),
        other => other.clone(),
    }
}

/// Edits fields of a child one by one. Returns how many the API server let through.
async fn edited(client: &Client, child: &Value) -> usize {
    let fields = owned(child);
    let (api, name) =
        (children::api(client, NAMESPACE, &resource_of(child)), child["metadata"]["name"].as_str().unwrap());
    let mut changed = 0;
    for pointer in fields.iter().step_by((fields.len() / EDITS).max(1)) {
        let right = child.pointer(pointer).unwrap();
        let patch = json!([{"op": "replace", "path": pointer, "value": other(right)}]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
        if api.patch(name, &PatchParams::default(), &patch).await.is_err() {
            // What nobody can change nobody has to put right.
            continue;
        }
        changed += 1;
        eventually(&format!("{} has {pointer} as before", title(child)), || async {
            let live = as_value(&get(client, child).await?, child);
            (live.pointer(pointer) == Some(right)).then_some(())
        })
        .await;
    }
    changed
}

async fn deleted(client: &Client, child: &Value) {
    let (api, name) =
        (children::api(client, NAMESPACE, &resource_of(child)), child["metadata"]["name"].as_str().unwrap());
    api.delete(name, &DeleteParams::background()).await.unwrap();
    let before = wanted(child.clone());
    eventually(&format!("{} is there again", title(child)), || async {
        let live = get(client, child).await.filter(|live| live.metadata.deletion_timestamp.is_none())?;
        let again = live.uid().as_deref() != child["metadata"]["uid"].as_str();
        (again && comparable(wanted(as_value(&live, child))) == comparable(before.clone())).then_some(())
    })
    .await;
}

/// A child without the addresses that the server gives out.
fn comparable(mut child: Value) -> Value {
    if child["kind"] == "Service" {
        for field in ["clusterIP", "clusterIPs"] {
            child["spec"][field] = json!(null);
        }
    }
    child
}

fn condition_is(object: &DynamicObject, type_: &str, status: &str, reason: Option<&str>) -> bool {
    condition_of(&object.data["status"], type_).is_some_and(|found| {
        found["status"] == status && reason.is_none_or(|reason| found["reason"] == reason)
    })
}

/// Puts somebody else's object in the place of a child, and takes it away again.
async fn replaced(client: &Client, entry: &Entry, parent: &str, child: &Value) {
    let what = format!("{} of {}", title(child), entry.kind);
    let (api, name) =
        (children::api(client, NAMESPACE, &resource_of(child)), child["metadata"]["name"].as_str().unwrap());
    let owner = kind_api(client, NAMESPACE, entry);
    let pause =
        |value: Value| Patch::Merge(json!({"metadata": {"annotations": {"windlass.dev/paused": value}}}));
    owner.patch(parent, &PatchParams::default(), &pause("true".into())).await.unwrap();
    // What runs may still finish.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    api.delete(name, &DeleteParams::background()).await.unwrap();
    eventually(&format!("{what} is gone"), || async { get(client, child).await.is_none().then_some(()) })
        .await;
    let mut foreign = comparable(wanted(child.clone()));
    foreign["metadata"] = json!({"name": name, "labels": {"whose": "theirs"}});
    let foreign: DynamicObject = serde_json::from_value(foreign).unwrap();
    let theirs = api.create(&PostParams::default(), &foreign).await.unwrap();
    owner.patch(parent, &PatchParams::default(), &pause(Value::Null)).await.unwrap();
    eventually(&format!("{what}: the conflict is told"), || async {
        let object = owner.get(parent).await.unwrap();
        condition_is(&object, "Degraded", "True", Some("NameConflict")).then_some(())
    })
    .await;
    let left = api.get(name).await.unwrap();
    assert_eq!((left.uid(), left.owner_references().len()), (theirs.uid(), 0), "{what}: it is left alone");
    assert_eq!(left.labels()["whose"], "theirs");
    api.delete(name, &DeleteParams::background()).await.unwrap();
    eventually(&format!("{what}: the conflict heals"), || async {
        let object = owner.get(parent).await.unwrap();
        let own = get(client, child).await?.owner_references().iter().any(|it| it.controller == Some(true));
        // An autoscaler that nobody measures for has something else to say.
        (own && !condition_is(&object, "Degraded", "True", Some("NameConflict"))).then_some(())
    })
    .await;
}

async fn every_child_of(client: &Client, entry: &Entry) {
    let parent = whole::name(entry.name);
    let owner = kind_api(client, NAMESPACE, entry);
    let ready = || async {
        eventually(&format!("{parent} is ready"), || async {
            let object = owner.get(&parent).await.unwrap();
            let ready = condition_is(&object, "Ready", "True", None)
                && condition_is(&object, "Progressing", "False", None);
            ready.then(|| object.uid().unwrap())
        })
        .await
    };
    let uid = ready().await;
    let children = controlled_by(client, NAMESPACE, &uid).await;
    assert!(!children.is_empty(), "{parent} has children");
    for child in &children {
        let now = || async { get(client, child).await.map(|live| as_value(&live, child)) };
        if child["kind"] == "Job" {
            continue;
        }
        if child["kind"] == "Pod" {
            // Pods that an operator makes itself are replaced, not edited; their names are free for others.
            let name = child["metadata"]["name"].as_str().unwrap();
            let pods = children::api(client, NAMESPACE, &resource_of(child));
            pods.delete(name, &DeleteParams::default()).await.unwrap();
            eventually(&format!("{} is replaced", title(child)), || async {
                let live = controlled_by(client, NAMESPACE, &uid).await;
                let same = live.iter().any(|pod| pod["metadata"]["uid"] == child["metadata"]["uid"]);
                (!same && live.len() == children.len()).then_some(())
            })
            .await;
            continue;
        }
        let changed = edited(client, &now().await.unwrap()).await;
        assert!(changed > 0, "something of {} can be edited", title(child));
        ready().await;
        deleted(client, &now().await.unwrap()).await;
        ready().await;
        replaced(client, entry, &parent, &now().await.unwrap()).await;
        ready().await;
    }
}

on_both_control_planes! {
    every_child_edited_deleted_or_replaced_comes_right: comes_right;
}

async fn comes_right(ground: Ground) {
    let env = Site::start(ground).await;
    env.allow_failures(|_| true);
    for entry in parents() {
        env.apply(&whole::object(entry, &whole::name(entry.name), &whole::spec(entry.name))).await;
    }
    let client = &env.client();
    join_all(parents().map(|entry| every_child_of(client, entry))).await;
    env.stop().await;
}
