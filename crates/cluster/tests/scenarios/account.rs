//! What became of the objects, as lines that are the same whenever the same has happened: generated names, hashes, uids,
//! times and addresses are told by what they stand for.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use super::witness::{Objects, Seen};

/// Lines by what they are about (`Deployment web | status.replicas`), with how often each value was there.
pub(crate) type Account = BTreeMap<String, BTreeMap<String, usize>>;

/// What matters to an account besides the objects.
pub(crate) struct Scene<'a> {
    pub(crate) namespace: &'a str,
    /// Whether it is told on which node a Pod is.
    pub(crate) placement: bool,
    /// What was refused or did not come.
    pub(crate) notes: &'a [String],
    /// Objects of the scenario that are in no namespace, as they are in the end.
    pub(crate) global: &'a [(String, Option<Value>)],
    pub(crate) events: &'a [Value],
}

/// Tells what happened.
pub(crate) fn tell(objects: &Objects, scene: &Scene<'_>) -> Account {
    let words = Words::of(objects, scene);
    let mut account = Account::new();
    let mut line = |about: String, value: String| {
        *account.entry(words.replace(&about)).or_default().entry(words.replace(&value)).or_default() += 1;
    };
    for note in scene.notes {
        line("steps".into(), note.clone());
    }
    for (_, seen) in objects {
        let object = format!("{} {}", seen.kind, text(&seen.object["metadata"]["name"]));
        for (aspect, value) in history(seen) {
            line(format!("{object} | {aspect}"), value);
        }
        if seen.gone {
            line(format!("{object} | gone"), "yes".into());
            continue;
        }
        for (aspect, value) in state(&seen.kind, &seen.object, scene.placement) {
            line(format!("{object} | {aspect}"), value);
        }
    }
    for (name, object) in scene.global {
        let kind = name.split('/').next().unwrap_or_default();
        match object {
            None => line(format!("{} | gone", name.replace('/', " ")), "yes".into()),
            Some(object) => {
                for (aspect, value) in state(kind, object, scene.placement) {
                    line(format!("{} | {aspect}", name.replace('/', " ")), value);
                }
            }
        }
    }
    for event in scene.events.iter().filter(|event| is_compared(event)) {
        let about = &event["involvedObject"];
        let (type_, reason) = (text(&event["type"]), text(&event["reason"]));
        let about = format!("event {} {} {type_} {reason}", text(&about["kind"]), text(&about["name"]));
        // Kubernetes' recorder gathers many alike in one.
        let message = text(&event["message"]).replace("(combined from similar events): ", "");
        line(about, message);
    }
    // How often an event came is a matter of moments.
    for (_, values) in account.iter_mut().filter(|(about, _)| about.starts_with("event ")) {
        for count in values.values_mut() {
            *count = (*count).min(2);
        }
    }
    account
}

/// An account as text, a line for each value.
pub(crate) fn text_of(account: &Account) -> String {
    let lines = account.iter().flat_map(|(about, values)| {
        values.iter().map(move |(value, count)| match count {
            1 => format!("{about}: {value}\n"),
            count => format!("{about}: {value} (x{count})\n"),
        })
    });
    lines.collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What the kubelet says is the node's own doing.
fn is_compared(event: &Value) -> bool {
    let component = [&event["source"]["component"], &event["reportingComponent"]].map(text).join(" ");
    !component.contains("kubelet") && !component.contains("kwok") && event["involvedObject"]["kind"] != "Node"
}

fn history(seen: &Seen) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    if seen.kind == "Pod" {
        lines.push(("life".to_owned(), seen.life.join(" > ")));
    } else {
        let conditions = seen.conditions.iter();
        lines.extend(conditions.map(|(type_, states)| (format!("condition {type_}"), states.join(" > "))));
    }
    if seen.kind == "ReplicaSet" || seen.kind == "ReplicationController" {
        lines.push(("replicas".to_owned(), seen.replicas.join(" > ")));
    }
    lines
}

/// The last state of an object: what controllers write of it.
fn state(kind: &str, object: &Value, placement: bool) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let metadata = &object["metadata"];
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    for owner in owners {
        let controller = if owner["controller"] == true { " (controller)" } else { "" };
        lines
            .push(("owner".into(), format!("{} {}{controller}", text(&owner["kind"]), text(&owner["name"]))));
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        lines.push(("finalizer".into(), text(finalizer).to_owned()));
    }
    if !metadata["deletionTimestamp"].is_null() {
        lines.push(("deleting".into(), "yes".into()));
    }
    for part in ["labels", "annotations"] {
        for (key, value) in metadata[part].as_object().into_iter().flatten() {
            let ours = ["kwok.x-k8s.io", "windlass.dev", "batch.kubernetes.io/job-tracking"];
            if !ours.iter().any(|prefix| key.contains(prefix)) {
                lines.push((format!("{part} {key}"), text(value).to_owned()));
            }
        }
    }
    let mut told = told(kind, object);
    if kind == "Pod" && placement {
        told["nodeName"] = object["spec"]["nodeName"].clone();
    }
    flatten("", &told, &mut lines);
    lines
}

/// The fields that are compared.
fn told(kind: &str, object: &Value) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    match kind {
        "Pod" => {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let of_controllers =
                conditions.filter(|one| matches!(text(&one["type"]), "PodScheduled" | "DisruptionTarget"));
            // The node has words of its own.
            let of_controllers = of_controllers.cloned().map(|mut one| {
                if one["reason"] == "TerminationByKubelet" {
                    one["message"] = Value::Null;
                }
                one
            });
            // Where the name has no chance in it, it does not show.
            let (name, stem) = (text(&object["metadata"]["name"]), text(&object["metadata"]["generateName"]));
            let generated = Some(stem).filter(|stem| !stem.is_empty() && name.len() != stem.len() + 5);
            json!({
                "generateName": generated, "hostname": spec["hostname"], "subdomain": spec["subdomain"], "priority": spec["priority"],
                "status": {
                    "phase": status["phase"], "nominatedNodeName": status["nominatedNodeName"],
                    "conditions": of_controllers.collect::<Vec<_>>(),
                },
            })
        }
        "EndpointSlice" => json!({
            "addressType": object["addressType"], "endpoints": object["endpoints"], "ports": object["ports"],
        }),
        "Endpoints" => json!({ "subsets": object["subsets"] }),
        "ConfigMap" | "Secret" => {
            let keys = object["data"].as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            json!({"type": object["type"], "data": keys.collect::<Vec<_>>()})
        }
        "ClusterRole" => json!({ "rules": object["rules"] }),
        "ControllerRevision" => json!({ "revision": object["revision"] }),
        "Node" => {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let states = conditions.map(|one| {
                json!({
                    "type": one["type"], "status": one["status"],
                })
            });
            json!({
                "taints": spec["taints"], "unschedulable": spec["unschedulable"],
                "status": {"conditions": states.collect::<Vec<_>>()},
            })
        }
        "PersistentVolume" => json!({
            "capacity": spec["capacity"], "claim": spec["claimRef"]["name"],
            "reclaim": spec["persistentVolumeReclaimPolicy"], "status": {"phase": status["phase"]},
        }),
        "PersistentVolumeClaim" => json!({"volumeName": spec["volumeName"], "status": status}),
        "Namespace" => json!({"finalizers": spec["finalizers"], "status": status}),
        _ => {
            let kept = ["replicas", "suspend", "parallelism", "completions"];
            let kept: Value = kept.iter().map(|key| ((*key).to_owned(), spec[*key].clone())).collect();
            json!({"spec": kept, "status": status})
        }
    }
}

fn flatten(path: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, field) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let is_time = key.ends_with("Time") || key == "timeAdded" || key == "disruptedPods";
                match field {
                    Value::Null => {}
                    Value::Object(fields) if is_time => lines.push((path, fields.len().to_string())),
                    _ if is_time => lines.push((path, "TIME".into())),
                    _ => flatten(&path, field, lines),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if path.ends_with("conditions") {
                    let part = |key: &str| text(&item[key]);
                    let state = [part("status"), part("reason"), part("message")].join(" ");
                    lines.push((format!("{path} {}", part("type")), state.trim_end().to_owned()));
                } else {
                    lines.push((path.to_owned(), without_chance(item).to_string()));
                }
            }
        }
        Value::String(text) => lines.push((path.to_owned(), text.clone())),
        other => lines.push((path.to_owned(), other.to_string())),
    }
}

/// An item of a list, without what chance decides.
fn without_chance(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.retain(|key, _| !matches!(key.as_str(), "uid" | "resourceVersion" | "timeAdded"));
        fields.values_mut().for_each(|field| *field = without_chance(field));
    } else if let Some(items) = item.as_array_mut() {
        for one in items.iter_mut() {
            *one = without_chance(one);
        }
        items.sort_by_key(Value::to_string);
    }
    item
}

/// What generated words stand for.
struct Words {
    names: Vec<(String, String)>,
    /// Names of what was made for somebody, by their stem.
    made: Vec<(Regex, String)>,
    patterns: Vec<(Regex, String)>,
}

impl Words {
    fn of(objects: &Objects, scene: &Scene<'_>) -> Self {
        let mut names = vec![(scene.namespace.to_owned(), "NAMESPACE".to_owned())];
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut patterns = Vec::new();
        for (_, seen) in objects {
            let metadata = &seen.object["metadata"];
            let name = text(&metadata["name"]);
            let hash = ["pod-template-hash", "controller-revision-hash"];
            let hash = hash.iter().find_map(|label| metadata["labels"][*label].as_str());
            // Somebody may tell of a Pod that could not be created.
            if matches!(seen.kind.as_str(), "ReplicaSet" | "ReplicationController" | "Job" | "DaemonSet") {
                let stem = regex::escape(name);
                let made =
                    Regex::new(&format!("\\b{stem}-(\\d+-)?[bcdfghjklmnpqrstvwxz2456789]{{5}}\\b")).unwrap();
                patterns.push((made, format!("{name}-${{1}}GENERATED")));
            }
            match seen.kind.as_str() {
                "ReplicaSet" | "ControllerRevision" => {
                    let owner = text(&metadata["ownerReferences"][0]["name"]);
                    // Whoever was orphaned has its hash as a label.
                    let orphan = hash.filter(|hash| owner.is_empty() && name.ends_with(hash));
                    let suffix = name.strip_prefix(&format!("{owner}-")).or(orphan).unwrap_or_default();
                    let hash = hash.map_or(suffix, |hash| hash.rsplit('-').next().unwrap_or(hash));
                    if !hash.is_empty() && !suffix.is_empty() && !names.iter().any(|(word, _)| word == hash) {
                        let count = counts.entry(format!("{} {owner}", seen.kind)).or_default();
                        *count += 1;
                        names.push((hash.to_owned(), format!("R{count}")));
                    }
                }
                _ => {
                    // An ordinal is no chance.
                    let stem = metadata["generateName"].as_str();
                    let chance = |stem: &&str| name.len() == stem.len() + 5;
                    if let Some(stem) = stem.filter(chance) {
                        names.push((name.to_owned(), format!("{stem}GENERATED")));
                    }
                }
            }
        }
        // A name may begin with another one, and a generated one has a hash in it that is replaced afterwards.
        names.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let fixed = [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
            (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
            (r"\b(\w+)-\d{8}\b", "$1-MINUTE"),
            (r"\b\d{8}$", "MINUTE"),
            (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "ADDRESS"),
            (r"\bwindlass-\d\b", "NODE"),
        ];
        let kept = fixed.into_iter().filter(|(_, word)| *word != "NODE" || !scene.placement);
        let kept = kept.map(|(pattern, word)| (Regex::new(pattern).unwrap(), word.to_owned())).collect();
        Self { names, made: patterns, patterns: kept }
    }

    fn replace(&self, text: &str) -> String {
        let expand = |text: String, (pattern, word): &(Regex, String)| {
            pattern.replace_all(&text, word.as_str()).into_owned()
        };
        let text = self.made.iter().fold(text.to_owned(), expand);
        let text = self.names.iter().fold(text, |text, (word, name)| text.replace(word.as_str(), name));
        self.patterns.iter().fold(text, expand)
    }
}
