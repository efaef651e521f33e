//! What must hold on every day, without a line from the author.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write,
    time::Duration,
};

use windlass::{
    kube::{
        Api, Client,
        api::{DynamicObject, ListParams},
    },
    serde_json::{self, Value},
};

use crate::{
    network::Entry,
    replica::Runs,
    setup::Setup,
    user::{NAMESPACE, named},
};

/// How often the same request may be made within [`WINDOW`]: more is a loop that nothing slows down.
const MOST_ALIKE: usize = 60;
const WINDOW: Duration = Duration::from_secs(10);
/// How many requests, watches apart, may be made at rest.
const MOST_AT_REST: usize = 40;

/// How often may be looked at rest: once in three seconds.
const MOST_RUNS_AT_REST: usize = 100;

/// What was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Which oracle: two days are alike if the same was broken.
    pub(crate) oracle: &'static str,
    pub(crate) detail: String,
}

impl Broken {
    pub(crate) fn new(oracle: &'static str, detail: impl Into<String>) -> Self {
        Self { oracle, detail: detail.into() }
    }

    /// The end is not that of the undisturbed day.
    pub(crate) fn differs(expected: &[String], stood: &[String], after: Duration) -> Self {
        let mut detail = format!("{after:?} after the last fault the end is not that of the undisturbed day");
        for line in expected.iter().filter(|line| !stood.contains(line)) {
            let _ = write!(detail, "\n    without faults: {}", shortened(line, stood));
        }
        for line in stood.iter().filter(|line| !expected.contains(line)) {
            let _ = write!(detail, "\n    here:           {}", shortened(line, expected));
        }
        Self::new("end", detail)
    }
}

/// The object of a line, and where it differs from the object of the same name on the other side.
fn shortened(line: &str, others: &[String]) -> String {
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_default();
    let (object, name) = (read(line), named(&read(line)));
    let other = others.iter().map(|other| read(other)).find(|other| named(other) == name);
    let Some(other) = other else { return format!("{name} (only here)") };
    let mut fields = Vec::new();
    differences(&object, &other, String::new(), &mut fields);
    format!("{name}: {}", fields.join("; "))
}

fn differences(one: &Value, other: &Value, path: String, fields: &mut Vec<String>) {
    if one == other || fields.len() > 8 {
        return;
    }
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differences(&one[key], &other[key], format!("{path}.{key}"), fields);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, format!("{path}[{index}]"), fields);
            }
        }
        _ => fields.push(format!("{path} = {one}")),
    }
}

/// What the day's record says: invariants, panics, permissions, loops.
pub(crate) fn at_the_end(log: &[Entry], panics: &[String], violations: &[String]) -> Result<(), Broken> {
    if let Some(panic) = panics.first() {
        return Err(Broken::new("panic", panic.as_str()));
    }
    if let Some(violation) = violations.first() {
        return Err(Broken::new("invariant", violation.as_str()));
    }
    if let Some(entry) = log.iter().find(|entry| entry.status == 403) {
        return Err(Broken::new("forbidden", format!("{} {} was forbidden", entry.method, entry.path)));
    }
    no_hot_loop(log)
}

/// The same request must not be made again and again without a pause.
fn no_hot_loop(log: &[Entry]) -> Result<(), Broken> {
    let mut recent: BTreeMap<(&str, &str, bool), VecDeque<Duration>> = BTreeMap::new();
    for entry in log {
        let times = recent.entry((entry.method.as_str(), &entry.path, entry.is_watch())).or_default();
        times.push_back(entry.at);
        while times.front().is_some_and(|first| *first + WINDOW < entry.at) {
            times.pop_front();
        }
        if times.len() > MOST_ALIKE {
            let what = format!("{} {}", entry.method, entry.path);
            let why = format!("{what} was made {} times within {WINDOW:?}", times.len());
            return Err(Broken::new("hot-loop", why));
        }
    }
    Ok(())
}

/// Runs must leave the clock time to go on.
pub(crate) fn endless(runs: &Runs) -> Result<(), Broken> {
    match &runs.endless {
        Some(object) => {
            Err(Broken::new("hot-loop", format!("{object} is reconciled again and again without a pause")))
        }
        None => Ok(()),
    }
}

/// At rest nothing is written, next to nothing asked, and seldom looked.
pub(crate) fn quiet(log: &[Entry], runs: usize) -> Result<(), Broken> {
    if runs > MOST_RUNS_AT_REST {
        return Err(Broken::new("hot-loop", format!("{runs} runs at rest within 5 minutes")));
    }
    let writes: Vec<String> = log
        .iter()
        .filter(|entry| entry.is_write())
        .map(|one| format!("{} {}", one.method, one.path))
        .collect();
    if !writes.is_empty() {
        let (count, first) = (writes.len(), &writes[..writes.len().min(3)]);
        return Err(Broken::new("writes-at-rest", format!("{count} writes at rest: {}", first.join(", "))));
    }
    // A kind that is not served is asked for every few seconds, which costs nobody anything.
    let asked = log.iter().filter(|entry| !entry.is_watch() && entry.status != 404);
    let asked = asked.filter(|entry| !entry.path.contains("/leases"));
    let asked: Vec<String> = asked.map(|one| format!("{} {}", one.method, one.path)).collect();
    if asked.len() > MOST_AT_REST {
        let why = format!(
            "{} requests at rest within 5 minutes, the last of them {}",
            asked.len(),
            asked[asked.len() - 1]
        );
        return Err(Broken::new("hot-loop", why));
    }
    Ok(())
}

async fn list(client: &Client, kind: &windlass::Kind) -> Result<Vec<Value>, Broken> {
    let api = if kind.namespaced {
        Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &kind.api_resource())
    } else {
        Api::all_with(client.clone(), &kind.api_resource())
    };
    let found = match api.list(&ListParams::default()).await {
        Ok(found) => found.items,
        // A kind that may not be served is not.
        Err(windlass::kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(Broken::new("start", format!("{} cannot be listed: {error}", kind.plural))),
    };
    let values = found.into_iter().map(|object| {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["kind"] = kind.kind.clone().into();
        value
    });
    Ok(values.collect())
}

/// At rest a status says the generation that there is, if it says one at all.
pub(crate) async fn honest(client: &Client, setup: &Setup) -> Result<(), Broken> {
    for kind in &setup.reconciled {
        for object in list(client, kind).await? {
            let (observed, generation) =
                (&object["status"]["observedGeneration"], &object["metadata"]["generation"]);
            if observed.is_i64() && observed != generation {
                let why =
                    format!("{} has generation {generation}, and its status says {observed}", named(&object));
                return Err(Broken::new("observed-generation", why));
            }
        }
    }
    Ok(())
}

/// Once everything is deleted, nothing refers to an owner that is gone, and nothing waits for a finalizer.
pub(crate) async fn nothing_left(client: &Client, setup: &Setup) -> Result<(), Broken> {
    let mut objects = Vec::new();
    for kind in &setup.kinds {
        objects.extend(list(client, kind).await?);
    }
    let uids: BTreeSet<&str> = objects.iter().filter_map(|one| one["metadata"]["uid"].as_str()).collect();
    for object in &objects {
        let meta = &object["metadata"];
        if meta["deletionTimestamp"].is_string() {
            let why = format!("{} waits for {}", named(object), meta["finalizers"]);
            return Err(Broken::new("finalizer", why));
        }
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        let ours = |owner: &&Value| setup.reconciled.iter().any(|kind| owner["kind"] == kind.kind.as_str());
        for owner in owners.filter(ours) {
            if !owner["uid"].as_str().is_some_and(|uid| uids.contains(uid)) {
                let why = format!("{} is left, and its owner {} is gone", named(object), named_owner(owner));
                return Err(Broken::new("orphan", why));
            }
        }
    }
    Ok(())
}

fn named_owner(owner: &Value) -> String {
    format!("{} {}", owner["kind"].as_str().unwrap_or("?"), owner["name"].as_str().unwrap_or("?"))
}
