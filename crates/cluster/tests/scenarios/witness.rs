//! Watching a namespace: every object that there was, and what it went through.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use serde_json::Value;
use tokio::task::JoinHandle;
use windlass::kube::{
    Client,
    runtime::watcher::{self, Event},
};

use super::{kinds, kinds::Kind, play::split, scenario::Scenario};

/// What is known about one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) kind: String,
    /// As it was last seen.
    pub(crate) object: Value,
    /// The states of each condition, in their order.
    pub(crate) conditions: BTreeMap<String, Vec<String>>,
    /// How many replicas it was told to have.
    pub(crate) replicas: Vec<String>,
    /// What a Pod went through.
    pub(crate) life: Vec<&'static str>,
    pub(crate) gone: bool,
}

/// The objects by uid, in the order in which they were first seen.
pub(crate) type Objects = Vec<(String, Seen)>;

pub(crate) struct Witness {
    seen: Arc<Mutex<Objects>>,
    watches: Vec<JoinHandle<()>>,
}

/// The kinds that a scenario is about.
pub(crate) fn kinds_of(scenario: &Scenario) -> Vec<&'static Kind> {
    let steps = scenario.steps.iter();
    let named = steps.filter_map(|step| step.create.as_deref().or(step.wait.as_deref()));
    let named = named.map(|reference| split(reference).0);
    kinds::following(named.chain(scenario.watch.iter().map(String::as_str)))
}

impl Witness {
    /// Begins to watch.
    pub(crate) fn watch(client: &Client, namespace: &str, kinds: &[&'static Kind]) -> Self {
        let seen: Arc<Mutex<Objects>> = Arc::default();
        let watch = |kind: &&'static Kind| {
            let (seen, kind) = (seen.clone(), *kind);
            let stream = watcher::watcher(kind.api(client, namespace), watcher::Config::default());
            tokio::spawn(async move {
                // A watch that fails is begun again.
                stream
                    .filter_map(|event| async { event.ok() })
                    .for_each(|event| {
                        let (object, gone) = match event {
                            Event::Apply(object) | Event::InitApply(object) => (object, false),
                            Event::Delete(object) => (object, true),
                            Event::Init | Event::InitDone => return std::future::ready(()),
                        };
                        note(
                            &mut seen.lock().unwrap(),
                            kind.name,
                            serde_json::to_value(object).unwrap(),
                            gone,
                        );
                        std::future::ready(())
                    })
                    .await;
            })
        };
        Self { watches: kinds.iter().map(watch).collect(), seen }
    }

    /// Everything that was seen.
    pub(crate) fn end(self) -> Objects {
        self.watches.iter().for_each(JoinHandle::abort);
        self.seen.lock().unwrap().clone()
    }
}

fn note(objects: &mut Objects, kind: &str, object: Value, gone: bool) {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let place = objects.iter().position(|(known, _)| *known == uid).unwrap_or_else(|| {
        objects.push((uid, Seen { kind: kind.to_owned(), ..Seen::default() }));
        objects.len() - 1
    });
    let seen = &mut objects[place].1;
    // What is said about an object while it goes depends on who sees it last.
    let stays = object["metadata"]["deletionTimestamp"].is_null();
    for condition in object["status"]["conditions"].as_array().into_iter().flatten().filter(|_| stays) {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let state = format!("{} {}", text("status"), text("reason")).trim_end().to_owned();
        push(seen.conditions.entry(text("type")).or_default(), state);
    }
    if let Some(replicas) = object["spec"]["replicas"].as_i64() {
        push(&mut seen.replicas, replicas.to_string());
    }
    if kind == "Pod" {
        push(&mut seen.life, life(&object));
    }
    seen.gone = gone;
    seen.object = object;
}

fn push<T: PartialEq>(states: &mut Vec<T>, state: T) {
    if states.last() != Some(&state) {
        states.push(state);
    }
}

fn life(pod: &Value) -> &'static str {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True");
    match pod["status"]["phase"].as_str() {
        _ if !pod["metadata"]["deletionTimestamp"].is_null() => "Terminating",
        Some("Running") if ready => "Ready",
        Some("Running") => "Running",
        Some("Succeeded") => "Succeeded",
        Some("Failed") => "Failed",
        _ => "Pending",
    }
}
