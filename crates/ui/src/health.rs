//! How an object is, by the conventions of kstatus: an object as JSON enters, a [`Health`] and a sentence leave. Pure.
//!
//! The built-in kinds that say more than a condition are judged by their own fields; any other kind, known or not, by
//! its generation and its conditions `Stalled`, `Reconciling` and `Ready`.

use serde::Serialize;
use serde_json::Value;

/// How an object is, in the words of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Health {
    /// What was asked for is reached.
    Current,
    /// It is on its way.
    InProgress,
    /// It is stuck and will not get there by itself.
    Failed,
    /// It was deleted and is not gone yet.
    Terminating,
    /// There is no such object.
    NotFound,
    /// It cannot be told.
    Unknown,
}

/// A health, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// How it is.
    pub health: Health,
    /// Why, in one sentence; empty if there is nothing to say.
    pub message: String,
}

fn judged(health: Health, message: impl Into<String>) -> Judgement {
    Judgement { health, message: message.into() }
}

fn current() -> Judgement {
    judged(Health::Current, "")
}

fn on_its_way(message: impl Into<String>) -> Judgement {
    judged(Health::InProgress, message)
}

fn failed(message: impl Into<String>) -> Judgement {
    judged(Health::Failed, message)
}

/// Judges an object; `None` is one that does not exist.
pub fn judge(object: Option<&Value>) -> Judgement {
    let Some(object) = object else { return judged(Health::NotFound, "there is no such object") };
    if !object.is_object() {
        return judged(Health::Unknown, "this is not an object");
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return judged(Health::Terminating, terminating(object));
    }
    if let Some(judgement) = by_generation(object) {
        return judgement;
    }
    // Stalled and Reconciling are said on purpose, by whoever follows kstatus; they come before what a kind shows.
    if let Some(condition) = condition(object, "Stalled").filter(|stalled| is(stalled, "True")) {
        return failed(said(condition, "stalled"));
    }
    if let Some(condition) = condition(object, "Reconciling").filter(|going| is(going, "True")) {
        return on_its_way(said(condition, "reconciling"));
    }
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |v| v.0);
    match (group, object["kind"].as_str().unwrap_or_default()) {
        ("", "Pod") => pod(object),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Namespace") => current(),
        ("", "ReplicationController") | ("apps", "ReplicaSet") => replica_set(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => by_condition(object, "Available"),
        _ => by_condition(object, "Ready"),
    }
}

/// A controller that has not seen the last change says nothing about it.
fn by_generation(object: &Value) -> Option<Judgement> {
    let generation = object["metadata"]["generation"].as_i64()?;
    let observed = object["status"]["observedGeneration"].as_i64()?;
    (observed < generation)
        .then(|| on_its_way(format!("generation {generation} is not observed yet, only {observed}")))
}

/// Any kind: `Ready` true is there, anything else is on its way, and no such condition means that nothing is awaited.
fn by_condition(object: &Value, name: &str) -> Judgement {
    match condition(object, name) {
        None => current(),
        Some(ready) if is(ready, "True") => current(),
        Some(ready) => on_its_way(said(ready, &format!("{name} is {}", text(&ready["status"])))),
    }
}

fn terminating(object: &Value) -> String {
    let finalizers: Vec<&str> =
        object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match finalizers.as_slice() {
        [] => "being deleted".into(),
        names => format!("being deleted; waits for {}", names.join(", ")),
    }
}

fn pod(pod: &Value) -> Judgement {
    let status = &pod["status"];
    match status["phase"].as_str() {
        Some("Succeeded") => current(),
        Some("Failed") => failed(or(text(&status["message"]), or(text(&status["reason"]), "the Pod failed"))),
        Some("Running") => match condition(pod, "Ready") {
            Some(ready) if is(ready, "True") => current(),
            ready => stuck(status).map_or_else(
                || {
                    on_its_way(ready.map_or("containers are not ready".into(), |ready| {
                        said(ready, "containers are not ready")
                    }))
                },
                failed,
            ),
        },
        Some("Pending") => match condition(pod, "PodScheduled") {
            Some(scheduled) if is(scheduled, "False") => {
                let why = said(scheduled, "the Pod cannot be scheduled");
                // Said at once, and often untrue a moment later; kstatus waits for as long before it calls it a failure.
                on_its_way(why)
            }
            _ => stuck(status).map_or_else(|| on_its_way("containers are being started"), failed),
        },
        _ => on_its_way("the Pod is not taken up yet"),
    }
}

/// Why a container of the Pod does not start, if it has been tried.
fn stuck(status: &Value) -> Option<String> {
    const HOPELESS: [&str; 6] = [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
    ];
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists.iter().flat_map(|list| status[*list].as_array().into_iter().flatten());
    containers.into_iter().find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str().filter(|reason| HOPELESS.contains(reason))?;
        let message = text(&waiting["message"]);
        let name = text(&container["name"]);
        Some(if message.is_empty() {
            format!("{name}: {reason}")
        } else {
            format!("{name}: {reason}: {message}")
        })
    })
}

fn service(service: &Value) -> Judgement {
    let spec = &service["spec"];
    if spec["type"] == "LoadBalancer"
        && service["status"]["loadBalancer"]["ingress"].as_array().is_none_or(Vec::is_empty)
    {
        return on_its_way("no load balancer yet");
    }
    current()
}

fn claim(claim: &Value) -> Judgement {
    match text(&claim["status"]["phase"]) {
        "Bound" => current(),
        "Lost" => failed("its volume is lost"),
        phase => on_its_way(format!("not bound: {}", or(phase, "Pending"))),
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

fn wanted(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn deployment(object: &Value) -> Judgement {
    if let Some(progress) = condition(object, "Progressing")
        && progress["reason"] == "ProgressDeadlineExceeded"
    {
        return failed(said(progress, "its progress deadline is exceeded"));
    }
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|failure| is(failure, "True")) {
        return on_its_way(said(failure, "Pods cannot be created"));
    }
    let (status, wanted) = (&object["status"], wanted(object));
    let updated = number(&status["updatedReplicas"]);
    let replicas = number(&status["replicas"]);
    let available = number(&status["availableReplicas"]);
    if updated < wanted {
        return on_its_way(format!("{updated} of {wanted} replicas are up to date"));
    }
    if replicas > updated {
        return on_its_way(format!("{} old replicas are to go", replicas.saturating_sub(updated)));
    }
    if available < updated {
        return on_its_way(format!("{available} of {updated} replicas are available"));
    }
    if wanted > 0 && condition(object, "Available").is_some_and(|available| !is(available, "True")) {
        return on_its_way("not available");
    }
    current()
}

fn replica_set(object: &Value) -> Judgement {
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|failure| is(failure, "True")) {
        return on_its_way(said(failure, "Pods cannot be created"));
    }
    let (status, wanted) = (&object["status"], wanted(object));
    let replicas = number(&status["replicas"]);
    for (field, word) in
        [("fullyLabeledReplicas", "labelled"), ("availableReplicas", "available"), ("readyReplicas", "ready")]
    {
        let count = number(&status[field]);
        if count < wanted {
            return on_its_way(format!("{count} of {wanted} replicas are {word}"));
        }
    }
    if replicas > wanted {
        return on_its_way(format!("{} replicas are to go", replicas.saturating_sub(wanted)));
    }
    current()
}

fn stateful_set(object: &Value) -> Judgement {
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return current();
    }
    let (status, wanted) = (&object["status"], wanted(object));
    for (field, word) in [("replicas", "there"), ("readyReplicas", "ready"), ("currentReplicas", "current")] {
        let count = number(&status[field]);
        // In a rollout these two share the replicas.
        let count =
            if field == "currentReplicas" { count.max(number(&status["updatedReplicas"])) } else { count };
        if count < wanted {
            return on_its_way(format!("{count} of {wanted} replicas are {word}"));
        }
    }
    let replicas = number(&status["replicas"]);
    if replicas > wanted {
        return on_its_way(format!("{} replicas are to go", replicas.saturating_sub(wanted)));
    }
    let partition = number(&object["spec"]["updateStrategy"]["rollingUpdate"]["partition"]);
    let updated = number(&status["updatedReplicas"]);
    if partition > 0 {
        return if updated < wanted.saturating_sub(partition) {
            on_its_way(format!(
                "{updated} of {} replicas of the partition are up to date",
                wanted.saturating_sub(partition)
            ))
        } else {
            current()
        };
    }
    if !status["updateRevision"].is_null() && status["currentRevision"] != status["updateRevision"] {
        return on_its_way(format!("{updated} of {wanted} replicas are up to date"));
    }
    current()
}

fn daemon_set(object: &Value) -> Judgement {
    let status = &object["status"];
    if status["observedGeneration"].is_null() {
        return on_its_way("not observed yet");
    }
    let wanted = number(&status["desiredNumberScheduled"]);
    for (field, word) in [
        ("currentNumberScheduled", "scheduled"),
        ("updatedNumberScheduled", "up to date"),
        ("numberAvailable", "available"),
        ("numberReady", "ready"),
    ] {
        let count = number(&status[field]);
        if count < wanted {
            return on_its_way(format!("{count} of {wanted} Pods are {word}"));
        }
    }
    current()
}

fn job(object: &Value) -> Judgement {
    if let Some(condition) = condition(object, "Failed").filter(|condition| is(condition, "True")) {
        return failed(said(condition, "the Job failed"));
    }
    if condition(object, "Complete").is_some_and(|condition| is(condition, "True")) {
        return current();
    }
    if condition(object, "Suspended").is_some_and(|condition| is(condition, "True")) {
        return judged(Health::Current, "suspended");
    }
    let status = &object["status"];
    if status["startTime"].is_null() {
        return on_its_way("not started yet");
    }
    // As kstatus has it: a Job that works is as it should be.
    let message = format!(
        "{} active, {} succeeded, {} failed",
        number(&status["active"]),
        number(&status["succeeded"]),
        number(&status["failed"])
    );
    judged(Health::Current, message)
}

fn definition(object: &Value) -> Judgement {
    for condition in conditions(object) {
        match (text(&condition["type"]), text(&condition["status"])) {
            ("NamesAccepted", "False") => return failed(said(condition, "its names are taken")),
            ("Established", "False") if condition["reason"] != "Installing" => {
                return failed(said(condition, "not established"));
            }
            ("Established", "True") => return current(),
            _ => {}
        }
    }
    on_its_way("being established")
}

/// The conditions of an object, in its order.
pub fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    conditions(object).find(|condition| condition["type"] == name)
}

fn is(condition: &Value, status: &str) -> bool {
    condition["status"] == status
}

/// What a condition says for itself, or else.
fn said(condition: &Value, otherwise: &str) -> String {
    or(text(&condition["message"]), or(text(&condition["reason"]), otherwise)).to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

#[cfg(test)]
mod tests;
