//! The kinds that carry a Pod template: what they share, and the smaller ones of them.
//!
//! Deployments, StatefulSets, DaemonSets, Jobs and CronJobs have rooms of their own.

mod cron_job;
mod daemon_set;
mod deployment;
mod job;
mod replicas;
mod schedule;
mod stateful_set;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at},
    default, pod, small, text,
};
use crate::{
    error::Cause,
    registry::{metadata::meta, strategy::Generation},
};

/// PodTemplate.
static POD_TEMPLATE: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: default_template,
    validate: |new, _| {
        let mut causes = Vec::new();
        pod::validate::template(&mut causes, &new["template"], "template");
        causes
    },
    warnings: |new, old| template_warnings(new, old, &["template"]),
    returns_deleted: true,
    row: Some(pod_template),
    ..Strategy::PLAIN
};

/// ControllerRevision.
static CONTROLLER_REVISION: Strategy = Strategy {
    validate: |new, old| {
        let mut causes = Vec::new();
        validate_revision(&mut causes, new, old);
        causes
    },
    row: Some(controller_revision),
    ..Strategy::PLAIN
};

/// The kinds of `apps` and `batch`, and those of the core group that carry a template.
pub(super) fn kind(plural: &str) -> &'static Strategy {
    match plural {
        "controllerrevisions" => &CONTROLLER_REVISION,
        "cronjobs" => &cron_job::CRON_JOB,
        "daemonsets" => &daemon_set::DAEMON_SET,
        "deployments" => &deployment::DEPLOYMENT,
        "jobs" => &job::JOB,
        "podtemplates" => &POD_TEMPLATE,
        "replicasets" => &replicas::REPLICA_SET,
        "replicationcontrollers" => &replicas::REPLICATION_CONTROLLER,
        "statefulsets" => &stateful_set::STATEFUL_SET,
        _ => &small::PLAIN,
    }
}

/// Defaults of what all of them have: a spec with a template.
fn default_spec(object: &mut Value) {
    default(object, "spec", || json!({}));
    default(&mut object["spec"], "template", || json!({}));
    default_template(&mut object["spec"]);
}

fn default_template(holder: &mut Value) {
    if let Some(template) = holder.get_mut("template") {
        default(template, "metadata", || json!({}));
        default(template, "spec", || json!({}));
        pod::default_spec(&mut template["spec"]);
    }
}

/// Warnings about a template, which is only worth a word when it may have changed.
fn template_warnings(object: &Value, old: Option<&Value>, place: &[&str]) -> Vec<String> {
    if old.is_some_and(|old| meta(old, "generation") == meta(object, "generation")) {
        return Vec::new();
    }
    let found = place.iter().try_fold(object, |inner, field| inner.get(field));
    found.map_or_else(Vec::new, |pod| pod::warnings::of_pod(pod, &place.join(".")))
}

/// The same where the template stands in the spec.
fn spec_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    template_warnings(object, old, &["spec", "template"])
}

/// Checks the numbers of a status: none is negative, no part is more than the whole, and what is available is ready.
fn count_replicas(status: &Value, counts: &[&str], parts: &[&str], ready: &str) -> Causes {
    let mut causes = Vec::new();
    check::non_negative(&mut causes, status, "status", counts);
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    for part in parts.iter().filter(|part| number(part) > number("replicas")) {
        let why = "cannot be greater than status.replicas";
        causes.push(Cause::invalid(at("status", part), &json!(number(part)), why));
    }
    if number("availableReplicas") > number("readyReplicas") {
        let why = format!("cannot be greater than {ready}");
        causes.push(Cause::invalid("status.availableReplicas", &json!(number("availableReplicas")), why));
    }
    causes
}

/// The selector, and that the template has the labels that it asks for.
fn selector_and_template(causes: &mut Causes, spec: &Value, kind: &str, unreadable: &str) {
    let selector = &spec["selector"];
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else {
        check::selector(causes, selector, "spec.selector");
        if check::is_empty(selector) {
            let why = format!("empty selector is invalid for {kind}");
            causes.push(Cause::invalid("spec.selector", selector, why));
        }
    }
    if !selector.is_null() && !check::is_selector(selector) {
        causes.push(Cause::invalid("spec.selector", selector, unreadable));
        return;
    }
    if selector.is_null() || !check::is_empty(selector) {
        matching_labels(causes, selector, spec);
    }
    pod::validate::template(causes, &spec["template"], "spec.template");
}

fn matching_labels(causes: &mut Causes, selector: &Value, spec: &Value) {
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    if !check::selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
    }
}

/// What runs on and on must be restarted and have no deadline.
fn runs_for_ever(causes: &mut Causes, spec: &Value, kind: &str) {
    let pod = &spec["template"]["spec"];
    let policy = text(pod, "/restartPolicy");
    if policy != "Always" {
        causes.push(Cause::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if pod.get("activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", &why));
    }
}

/// A strategy as the real server's messages show it.
fn shown(strategy: &Value) -> Value {
    json!({"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")})
}

fn unknown_strategy(field: &str, strategy: &Value, allowed: &str) -> Cause {
    let (kind, rolling) = (&shown(strategy)["Type"], &shown(strategy)["RollingUpdate"]);
    Cause {
        reason: "FieldValueNotSupported".into(),
        message: format!(
            "Unsupported value: {{\"Type\":{kind},\"RollingUpdate\":{rolling}}}: supported values: {allowed}"
        ),
        field: field.into(),
    }
}

fn validate_revision(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if new.get("data").is_none_or(Value::is_null) {
        causes.push(Cause::required("data", "data is mandatory"));
    }
    check::non_negative(causes, new, "", &["revision"]);
    if let Some(old) = old {
        check::immutable(causes, new, old, "", "data");
    }
}

/// Names and images of the containers of a template.
fn containers(object: &Value, pointer: &str) -> [Value; 2] {
    let containers = cells::list(object, pointer);
    ["/name", "/image"]
        .map(|field| json!(cells::joined(containers.iter().map(|one| text(one, field).to_owned()))))
}

fn template(object: &Value) -> [Value; 2] {
    containers(object, "/spec/template/spec/containers")
}

fn selected(object: &Value) -> Value {
    json!(cells::selector(object.pointer("/spec/selector")))
}

/// `2/3`: how many of the wanted replicas are ready.
fn ready(object: &Value) -> Value {
    json!(format!(
        "{}/{}",
        cells::number(object, "/status/readyReplicas"),
        cells::number(object, "/spec/replicas")
    ))
}

fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = cells::list(object, "/metadata/ownerReferences");
    let owner =
        owners.iter().find(|one| one["controller"] == json!(true)).map_or("<none>".to_owned(), |one| {
            let kind = text(one, "/kind").to_lowercase();
            match text(one, "/apiVersion").split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", text(one, "/name")),
                None => format!("{kind}/{}", text(one, "/name")),
            }
        });
    vec![
        cells::name(object),
        json!(owner),
        json!(cells::number(object, "/revision")),
        cells::age(object, now),
    ]
}

fn pod_template(object: &Value, _: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "/template/spec/containers");
    vec![
        cells::name(object),
        names,
        images,
        json!(cells::labels(object.pointer("/template/metadata/labels"))),
    ]
}
