//! Today's operators over what the last release has left behind: nothing restarts that need not.
//!
//! [`STATE`] holds the objects of that release and their children as the embedded cluster had them, and who owned which of
//! their fields. That state is put into a new cluster, in which the operators then run as they are today.
//! `cargo test -p windlass-operators --test it -- --ignored upgrade::record` writes the state as it is now: to be done once
//! for each release, from its own sources.

use std::{collections::BTreeMap, path::PathBuf};

use kube::{
    Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};
use windlass_operators::{catalogue, install, webhooks};

use crate::{
    bed::{Ground, until_empty},
    children::{self, kind_api, resource_of, title, value},
    plane::{NAMESPACE, Plane, Site, all},
    suite::condition_of,
    whole,
};

/// Where the state of the last release stands.
const STATE: &str = "tests/it/upgrade/0.1.0.json";
/// The field manager of the operators.
const MANAGER: &str = "windlass-operators";

/// The samples, and one of each kind with all of its children.
fn objects() -> Vec<Value> {
    let samples = catalogue().iter().map(|entry| entry.sample().unwrap());
    samples.chain(whole::objects()).collect()
}

/// What keeps an object from being at rest, if anything.
fn unrest(object: &DynamicObject) -> Option<String> {
    let (status, name) = (&object.data["status"], object.name_any());
    if object.data["spec"].get("databaseRef").is_some() {
        return (status["phase"] != "Succeeded").then(|| format!("{name}: {status}"));
    }
    let is = |type_: &str, wanted: &str| {
        condition_of(status, type_).is_some_and(|condition| condition["status"] == wanted)
    };
    let right = status["observedGeneration"].as_i64() == object.metadata.generation
        && is("Ready", "True")
        && is("Progressing", "False");
    (!right).then(|| format!("{name}: {status}"))
}

pub(crate) async fn at_rest(client: &Client) {
    until_empty("every object is ready", || async {
        let mut restless = Vec::new();
        for entry in catalogue() {
            let found = kind_api(client, NAMESPACE, entry).list(&ListParams::default()).await.unwrap();
            restless.extend(found.items.iter().filter_map(unrest));
        }
        restless
    })
    .await;
}

async fn list(client: &Client, resource: &ApiResource) -> Vec<Value> {
    let found = children::api(client, NAMESPACE, resource).list(&ListParams::default()).await.unwrap();
    found.items.iter().map(|object| value(object, resource)).collect()
}

/// Our entry of a child's managed fields.
fn owned_fields(child: &Value) -> Option<&Value> {
    let entries = child["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| entry["manager"] == MANAGER && entry.get("subresource").is_none())
}

/// Whether the operators made an object, and did not just note something on it.
fn is_made(child: &Value) -> bool {
    let fields = owned_fields(child).and_then(|ours| ours["fieldsV1"].as_object());
    fields.is_some_and(|fields| fields.keys().any(|part| part != "f:metadata"))
}

/// Writes the state of this release: by `WINDLASS_UPGRADE_RECORD=1 cargo test -p windlass-operators --test it upgrade`.
async fn record() {
    let env = Site::start(Ground::Embedded).await;
    env.allow_failures(|failure| failure.reason == "Conflict");
    for object in objects() {
        env.apply(&object).await;
    }
    at_rest(&env.client()).await;
    env.settled().await;
    let mut parents = Vec::new();
    for entry in catalogue() {
        parents.extend(list(&env.client(), &entry.resource()).await);
    }
    let mut made = Vec::new();
    for resource in children::kinds() {
        made.extend(list(&env.client(), &resource).await);
    }
    made.retain(is_made);
    for child in &mut made {
        let ours = owned_fields(child).cloned();
        child["metadata"]["managedFields"] = json!([ours]);
        child.as_object_mut().unwrap().remove("status");
    }
    let lines = |objects: Vec<Value>| {
        let lines: Vec<String> = objects.iter().map(Value::to_string).collect();
        lines.join(",\n")
    };
    let state = format!("{{\"children\":[\n{}\n],\n\"objects\":[\n{}\n]}}\n", lines(made), lines(parents));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(STATE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, state).unwrap();
    env.stop().await;
}

/// The part of a value that a set of fields names: what an apply of these fields would have said.
fn extracted(value: &Value, fields: &Value) -> Value {
    let fields = fields.as_object().unwrap();
    let inner: Vec<(&String, &Value)> = fields.iter().filter(|(key, _)| *key != ".").collect();
    if inner.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(map) => {
            let mut part = Map::new();
            for (key, below) in inner {
                let name = key.strip_prefix("f:").unwrap();
                if let Some(found) = map.get(name) {
                    part.insert(name.to_owned(), extracted(found, below));
                }
            }
            Value::Object(part)
        }
        // In the order that they have: another order would be another template.
        Value::Array(items) => items.iter().filter_map(|item| extracted_item(item, &inner)).collect(),
        other => other.clone(),
    }
}

fn extracted_item(item: &Value, fields: &[(&String, &Value)]) -> Option<Value> {
    fields.iter().find_map(|(key, below)| {
        let Some(keys) = key.strip_prefix("k:") else {
            let value: Value = serde_json::from_str(key.strip_prefix("v:").unwrap()).unwrap();
            return (value == *item).then_some(value);
        };
        let keys: Map<String, Value> = serde_json::from_str(keys).unwrap();
        keys.iter().all(|(name, value)| item[name] == *value).then(|| {
            let mut part = extracted(item, below);
            keys.iter().for_each(|(name, value)| part[name] = value.clone());
            part
        })
    })
}

/// Puts an object of the release into a cluster, and says which uid took the place of its own.
async fn put(client: &Client, old: &Value) -> (String, String) {
    let name = old["metadata"]["name"].as_str().unwrap();
    let entry = catalogue().iter().find(|entry| old["kind"] == entry.kind).unwrap();
    let api = kind_api(client, NAMESPACE, entry);
    let mut new = json!({
        "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": {"name": name}, "spec": old["spec"],
    });
    for field in ["labels", "annotations", "finalizers"] {
        new["metadata"][field] = old["metadata"][field].clone();
    }
    let created = api.create(&PostParams::default(), &serde_json::from_value(new).unwrap()).await.unwrap();
    (old["metadata"]["uid"].as_str().unwrap().to_owned(), created.uid().unwrap())
}

/// Puts a child of the release into a cluster, with the fields that the operators owned.
async fn put_child(client: &Client, child: &Value) {
    let resource = resource_of(child);
    let api = children::api(client, NAMESPACE, &resource);
    let name = child["metadata"]["name"].as_str().unwrap();
    let fields = owned_fields(child).unwrap();
    let mut part = extracted(child, &fields["fieldsV1"]);
    part["apiVersion"] = child["apiVersion"].clone();
    part["kind"] = child["kind"].clone();
    part["metadata"]["name"] = name.into();
    let put = if fields["operation"] == "Apply" {
        api.patch(name, &PatchParams::apply(MANAGER), &Patch::Apply(&part)).await
    } else {
        let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
        api.create(&params, &serde_json::from_value(part).unwrap()).await
    };
    put.unwrap_or_else(|error| panic!("failed to put {} in place: {error}", title(child)));
}

/// The Pods that a release made, and the templates of those that others make for it, by the names of what has them.
async fn standing(client: &Client) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for resource in children::kinds() {
        for child in list(client, &resource).await {
            let what = match resource.kind.as_str() {
                "Pod" => &child["metadata"]["uid"],
                // Its Pods are replaced by the operator alone, whatever the template says: the Pods are what counts.
                "StatefulSet" if child["spec"]["updateStrategy"]["type"] == "OnDelete" => continue,
                "Deployment" | "StatefulSet" => &child["spec"]["template"],
                _ => continue,
            };
            found.insert(title(&child), what.clone());
        }
    }
    found
}

on_both_control_planes! {
    nothing_restarts_when_the_operators_are_upgraded: nothing_restarts;
}

async fn nothing_restarts(ground: Ground) {
    if std::env::var_os("WINDLASS_UPGRADE_RECORD").is_some() {
        return record().await;
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(STATE);
    let text = std::fs::read_to_string(path).unwrap();
    let state: Value = serde_json::from_str(&text).unwrap();
    let plane = Plane::start(ground).await;
    let client = plane.client();
    // Nobody converts yet, and what is stored is in the newest version.
    install::crds(&client, &webhooks::without_conversion(all().crds())).await.unwrap();
    let mut uids = Vec::new();
    for object in state["objects"].as_array().unwrap() {
        uids.push(put(&client, object).await);
    }
    // Owners, labels and selectors name their object by its uid.
    let renamed = uids.iter().fold(text, |text, (old, new)| text.replace(old, new));
    let renamed: Value = serde_json::from_str(&renamed).unwrap();
    let (pods, others): (Vec<_>, Vec<_>) =
        renamed["children"].as_array().unwrap().iter().partition(|child| child["kind"] == "Pod");
    for child in others {
        put_child(&client, child).await;
    }
    for object in renamed["objects"].as_array().unwrap() {
        let entry = catalogue().iter().find(|entry| object["kind"] == entry.kind).unwrap();
        let (api, name) = (kind_api(&client, NAMESPACE, entry), object["metadata"]["name"].as_str().unwrap());
        let status = Patch::Merge(json!({"status": object["status"]}));
        api.patch_status(name, &PatchParams::default(), &status).await.unwrap();
    }
    // The cluster's own controllers make Pods of it, as they had.
    plane.pods_run().await;
    let before = standing(&client).await;

    let env = plane.operate().await;
    env.allow_failures(|failure| failure.reason == "Conflict");
    at_rest(&client).await;
    env.settled().await;
    let after = standing(&client).await;
    for (title, was) in &before {
        assert_eq!(after.get(title), Some(was), "{title} restarts because the operators were upgraded");
    }
    // The hash by which an operator knows Pods of its own holds the uid of their owner, which no client can choose: so
    // what it would make today is compared with what it made. That the hash of a template is as it was is a test beside it.
    for pod in pods {
        let live = list(&client, &resource_of(pod)).await;
        let same = |live: &Value| {
            live["metadata"]["ownerReferences"] == pod["metadata"]["ownerReferences"]
                && template_of(live) == template_of(pod)
        };
        assert!(live.iter().any(same), "{} would be made otherwise today: {}", title(pod), template_of(pod));
    }
    env.assert_second_reconcile_writes_nothing().await;
    env.stop().await;
}

/// What a Pod was made of, without its own name and the hash.
fn template_of(pod: &Value) -> Value {
    let mut pod = children::wanted(pod.clone());
    let metadata = pod["metadata"].as_object_mut().unwrap();
    metadata.remove("name");
    metadata["labels"].as_object_mut().unwrap().remove("windlass.dev/template-hash");
    pod
}
