//! Kinds that run Pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::format,
    age,
    cells::{joined, labels, list, name, number, or_none, selector, text},
};

/// Names and images of the containers of a template.
fn containers(object: &Value, pointer: &str) -> [Value; 2] {
    let containers = list(object, pointer);
    ["/name", "/image"].map(|field| json!(joined(containers.iter().map(|one| text(one, field).to_owned()))))
}

fn template(object: &Value) -> [Value; 2] {
    containers(object, "/spec/template/spec/containers")
}

fn selected(object: &Value) -> Value {
    json!(selector(object.pointer("/spec/selector")))
}

/// `2/3`: how many of the wanted replicas are ready.
fn ready(object: &Value) -> Value {
    json!(format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas")))
}

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        name(object),
        ready(object),
        json!(number(object, "/status/updatedReplicas")),
        json!(number(object, "/status/availableReplicas")),
        age(object, now),
        names,
        images,
        selected(object),
    ]
}

fn replicas(object: &Value, now: Timestamp, selector: Value) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        name(object),
        json!(number(object, "/spec/replicas")),
        json!(number(object, "/status/replicas")),
        json!(number(object, "/status/readyReplicas")),
        age(object, now),
        names,
        images,
        selector,
    ]
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, selected(object))
}

pub(super) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, json!(labels(object.pointer("/spec/selector"))))
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![name(object), ready(object), age(object, now), names, images]
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = |field: &str| json!(number(object, &format!("/status/{field}")));
    let [names, images] = template(object);
    vec![
        name(object),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        json!(labels(object.pointer("/spec/template/spec/nodeSelector"))),
        age(object, now),
        names,
        images,
        selected(object),
    ]
}

pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = list(object, "/metadata/ownerReferences");
    let owner =
        owners.iter().find(|one| one["controller"] == json!(true)).map_or("<none>".to_owned(), |one| {
            let kind = text(one, "/kind").to_lowercase();
            match text(one, "/apiVersion").split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", text(one, "/name")),
                None => format!("{kind}/{}", text(one, "/name")),
            }
        });
    vec![name(object), json!(owner), json!(number(object, "/revision")), age(object, now)]
}

pub(super) fn pod_template(object: &Value, _: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "/template/spec/containers");
    vec![name(object), names, images, json!(labels(object.pointer("/template/metadata/labels")))]
}

fn job_state(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let conditions = list(job, "/status/conditions");
        conditions.iter().any(|one| text(one, "/type") == kind && text(one, "/status") == "True")
    };
    let deleting = !text(job, "/metadata/deletionTimestamp").is_empty();
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if deleting => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = number(object, "/status/succeeded");
    let parallelism = number(object, "/spec/parallelism");
    let completions = match object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let time = |pointer: &str| text(object, pointer).parse::<Timestamp>().ok();
    let took = time("/status/startTime").map_or_else(String::new, |start| {
        let end = time("/status/completionTime").unwrap_or(now);
        format::duration(end.as_second() - start.as_second())
    });
    let [names, images] = template(object);
    vec![
        name(object),
        json!(job_state(object)),
        json!(completions),
        json!(took),
        age(object, now),
        names,
        images,
        selected(object),
    ]
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let suspended = object.pointer("/spec/suspend").and_then(Value::as_bool);
    let suspended = suspended.map_or("<unset>", |value| if value { "True" } else { "False" });
    let last = match text(object, "/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        time => format::age(time, now),
    };
    let [names, images] = containers(object, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        name(object),
        json!(text(object, "/spec/schedule")),
        or_none(text(object, "/spec/timeZone")),
        json!(suspended),
        json!(list(object, "/status/active").len()),
        json!(last),
        age(object, now),
        names,
        images,
        json!(selector(object.pointer("/spec/jobTemplate/spec/selector"))),
    ]
}
