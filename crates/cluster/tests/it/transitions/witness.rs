//! Watching what happens in a namespace, and telling it without names, times and numbers that are chance.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex},
};

use futures::TryStreamExt;
use regex::Regex;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use windlass::{
    k8s_openapi::api::core::v1::Event,
    kube::{
        Api, Client,
        api::{DynamicObject, ListParams},
        core::{ApiResource, GroupVersionKind},
        runtime::{WatchStreamExt, watcher},
    },
};

const KINDS: [(&str, &str, &str); 9] = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "ControllerRevision"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("", "v1", "Pod"),
];

/// What an object went through: each type of condition with its states, in their order.
type Conditions = BTreeMap<String, Vec<String>>;

pub(super) struct Witness {
    seen: Arc<Mutex<BTreeMap<String, Conditions>>>,
    watches: Vec<JoinHandle<()>>,
}

fn api(client: &Client, namespace: &str, kind: &(&str, &str, &str)) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.0, kind.1, kind.2));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

impl Witness {
    /// Begins to watch.
    pub(super) fn watch(client: &Client, namespace: &str) -> Self {
        let seen: Arc<Mutex<BTreeMap<String, Conditions>>> = Arc::default();
        let watch = |kind: &(&str, &str, &str)| {
            let (seen, name) = (seen.clone(), kind.2.to_owned());
            let stream = watcher(api(client, namespace, kind), watcher::Config::default()).applied_objects();
            tokio::spawn(async move {
                let note = stream.try_for_each(|object| {
                    let key = format!("{name} {}", object.metadata.name.clone().unwrap_or_default());
                    note(seen.lock().unwrap().entry(key).or_default(), &object.data);
                    async { Ok(()) }
                });
                drop(note.await);
            })
        };
        Self { watches: KINDS.iter().map(watch).collect(), seen }
    }

    /// What happened, as text.
    pub(super) async fn account(self, client: &Client, namespace: &str) -> String {
        self.watches.iter().for_each(JoinHandle::abort);
        let mut text = String::new();
        for kind in &KINDS {
            let mut objects = api(client, namespace, kind).list(&ListParams::default()).await.unwrap().items;
            objects.sort_by_key(age);
            let mut blocks: Vec<String> = objects.iter().map(|object| self.tell(kind.2, object)).collect();
            // Objects of one moment come in any order.
            if matches!(kind.2, "Pod" | "Job") {
                blocks.sort();
            }
            text.extend(blocks);
        }
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        let mut lines: Vec<String> =
            events.list(&ListParams::default()).await.unwrap().items.iter().filter_map(event).collect();
        lines.sort();
        lines.dedup();
        text.push_str("events\n");
        for line in lines {
            writeln!(text, "  {line}").unwrap();
        }
        anonymous(&text, namespace)
    }

    fn tell(&self, kind: &str, object: &DynamicObject) -> String {
        let name = object.metadata.name.clone().unwrap_or_default();
        let mut text = format!("{kind} {name}\n");
        let seen = self.seen.lock().unwrap();
        for (type_, states) in seen.get(&format!("{kind} {name}")).into_iter().flatten() {
            writeln!(text, "  {type_}: {}", states.join(" -> ")).unwrap();
        }
        let meta = &object.metadata;
        let owners = meta.owner_references.iter().flatten();
        let owners: Vec<String> = owners.map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
        let finalizers = meta.finalizers.clone().unwrap_or_default();
        let mut labels: BTreeMap<_, _> = meta.labels.clone().unwrap_or_default();
        let mut annotations: BTreeMap<_, _> = meta.annotations.clone().unwrap_or_default();
        // What the API server adds by itself is compared where the API server is.
        if kind == "Job" {
            labels.clear();
        }
        labels.remove("pod-template-generation");
        annotations.remove("deprecated.daemonset.template.generation");
        writeln!(text, "  owners {owners:?} finalizers {finalizers:?}").unwrap();
        writeln!(text, "  labels {labels:?} annotations {annotations:?}").unwrap();
        if let Some(revision) = object.data.get("revision") {
            writeln!(text, "  revision {revision}").unwrap();
        }
        let status = settled(object.data.get("status").unwrap_or(&Value::Null));
        // The node's own doing is not compared.
        if kind != "Pod" {
            writeln!(text, "  status {status}").unwrap();
        }
        text
    }
}

fn age(object: &DynamicObject) -> (String, String) {
    let revision = object.metadata.annotations.as_ref();
    let revision = revision.and_then(|all| all.get("deployment.kubernetes.io/revision").cloned());
    let number = object.data.get("revision").map(Value::to_string);
    (revision.or(number).unwrap_or_default(), object.metadata.name.clone().unwrap_or_default())
}

fn note(seen: &mut Conditions, object: &Value) {
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let state = format!("{} {}", text("status"), text("reason")).trim_end().to_owned();
        let states = seen.entry(text("type")).or_default();
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
}

/// A status without what is chance: times, uids, revisions.
fn settled(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let chance = |key: &str| key.ends_with("Time") || matches!(key, "uid" | "resourceVersion");
            let kept = map.iter().map(|(key, value)| {
                let value =
                    if chance(key) && !value.is_null() { Value::from("CHANCE") } else { settled(value) };
                (key.clone(), value)
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(settled).collect();
            items.sort_by_key(|item| item["type"].as_str().map(str::to_owned));
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// The node's events are its own, and some of the server's.
fn event(event: &Event) -> Option<String> {
    let about = &event.involved_object;
    let kind = about.kind.as_deref().unwrap_or_default();
    (kind != "Pod" && kind != "Node").then(|| {
        format!(
            "{kind} {} {} {}: {}",
            about.name.as_deref().unwrap_or_default(),
            event.type_.as_deref().unwrap_or_default(),
            event.reason.as_deref().unwrap_or_default(),
            event.message.as_deref().unwrap_or_default()
        )
    })
}

fn anonymous(text: &str, namespace: &str) -> String {
    let rules = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        (r"\btick-\d{8}\b", "tick-MINUTE"),
        (r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b", "-HASH"),
        (r#""[bcdfghjklmnpqrstvwxz2456789]{8,10}""#, "\"HASH\""),
        (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-POD"),
    ];
    let mut text = text.replace(namespace, "NAMESPACE");
    for (pattern, name) in rules {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
    }
    text
}
