//! Jobs and CronJobs.

use serde_json::{Value, json};

use super::{super::pod, default_template, schedule};
use crate::{
    error::Cause,
    registry::{
        metadata,
        resource::text,
        strategy::{
            check::{self, Causes, at},
            default,
        },
    },
};

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

pub(super) fn default_job(spec: &mut Value) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        default(spec, "completions", || json!(1));
    }
    default(spec, "parallelism", || json!(1));
    let patient = spec.get("backoffLimitPerIndex").is_some();
    default(spec, "backoffLimit", || json!(if patient { i64::from(i32::MAX) } else { 6 }));
    default(spec, "completionMode", || json!("NonIndexed"));
    default(spec, "suspend", || json!(false));
    default(spec, "manualSelector", || json!(false));
    let replaced = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    default(spec, "podReplacementPolicy", || json!(replaced));
    let rules = spec.pointer_mut("/podFailurePolicy/rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let conditions = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if text(condition, "/status").is_empty() {
                condition["status"] = json!("True");
            }
        }
    }
}

pub(super) fn default_cron_job(spec: &mut Value) {
    default(spec, "concurrencyPolicy", || json!("Allow"));
    default(spec, "suspend", || json!(false));
    default(spec, "successfulJobsHistoryLimit", || json!(3));
    default(spec, "failedJobsHistoryLimit", || json!(1));
    default(spec, "jobTemplate", || json!({}));
    default(&mut spec["jobTemplate"], "metadata", || json!({}));
    default(&mut spec["jobTemplate"], "spec", || json!({}));
    let job = &mut spec["jobTemplate"]["spec"];
    default(job, "template", || json!({}));
    default_template(job);
}

/// A Job finds its Pods by its own uid, unless the user wants to say how.
pub(super) fn generate_selector(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        let labels = job.pointer("/spec/template/metadata/labels").cloned();
        if let Some(labels) = labels {
            metadata::metadata(job).entry("labels").or_insert(labels);
        }
        return;
    }
    let (uid, name) = (text(job, "/metadata/uid").to_owned(), text(job, "/metadata/name").to_owned());
    let template =
        metadata::metadata(&mut job["spec"]["template"]).entry("labels").or_insert_with(|| json!({}));
    for (key, value) in [(UID, &uid), (NAME, &name), ("controller-uid", &uid), ("job-name", &name)] {
        template[key] = json!(value);
    }
    let labels = template.clone();
    let selector = &mut job["spec"]["selector"];
    if selector.is_null() {
        *selector = json!({});
    }
    selector["matchLabels"][UID] = json!(uid);
    metadata::metadata(job).entry("labels").or_insert(labels);
}

/// What is wrong with a Job.
pub(super) fn validate_job(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    let spec = &new["spec"];
    job_spec(&mut causes, spec, "spec");
    match old {
        None => generated_selector(&mut causes, new),
        Some(old) => job_update(&mut causes, spec, old),
    }
    causes
}

/// The selector that the server made must be the only one.
fn generated_selector(causes: &mut Causes, job: &Value) {
    let spec = &job["spec"];
    let wanted = json!({"matchLabels": {UID: job["metadata"]["uid"]}});
    if spec["manualSelector"] != json!(true) && spec["selector"] != wanted {
        causes.push(Cause::invalid("spec.selector", &spec["selector"], "`selector` not auto-generated"));
    }
    if spec["manualSelector"] == json!(true) && spec["selector"].is_null() {
        causes.push(Cause::required("spec.selector", ""));
        return;
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    if !check::selects(&spec["selector"], labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
    }
}

fn job_spec(causes: &mut Causes, spec: &Value, path: &str) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    check::non_negative(causes, spec, path, &counts);
    if spec.get("maxFailedIndexes").is_some() && spec.get("backoffLimitPerIndex").is_none() {
        let why = "when maxFailedIndexes is specified";
        causes.push(Cause::required(at(path, "backoffLimitPerIndex"), why));
    }
    check::one_of(causes, spec, path, "completionMode", &["NonIndexed", "Indexed"]);
    match text(spec, "/completionMode") {
        "Indexed" => indexed(causes, spec, path),
        "NonIndexed" | "" => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(value) = spec.get(field) {
                    causes.push(Cause::invalid(at(path, field), value, "requires indexed completion mode"));
                }
            }
        }
        _ => {}
    }
    check::one_of(causes, spec, path, "podReplacementPolicy", &["Failed", "TerminatingOrFailed"]);
    pod::validate::template(causes, &spec["template"], &at(path, "template"));
    restart_policy(causes, spec, path);
}

fn indexed(causes: &mut Causes, spec: &Value, path: &str) {
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    if number("completions").is_none() {
        causes.push(Cause::required(at(path, "completions"), "when completion mode is Indexed"));
    }
    if let Some(wide) = number("parallelism").filter(|wide| *wide > 100_000) {
        let why = "must be less than or equal to 100000 when completion mode is Indexed";
        causes.push(Cause::invalid(at(path, "parallelism"), &json!(wide), why));
    }
    if let (Some(most), Some(all)) = (number("maxFailedIndexes"), number("completions"))
        && most > all
    {
        let why = "must be less than or equal to completions";
        causes.push(Cause::invalid(at(path, "maxFailedIndexes"), &json!(most), why));
    }
}

/// What ends must not be started again for ever.
fn restart_policy(causes: &mut Causes, spec: &Value, path: &str) {
    let field = format!("{path}.template.spec.restartPolicy");
    match text(&spec["template"], "/spec/restartPolicy") {
        "Always" | "" => causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if spec.get("podFailurePolicy").is_some() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            causes.push(Cause::invalid(field, &json!("OnFailure"), why));
        }
        "OnFailure" | "Never" => {}
        other => causes.push(Cause::not_supported(field, other, &["OnFailure", "Never"])),
    }
}

fn job_update(causes: &mut Causes, spec: &Value, old: &Value) {
    let before = &old["spec"];
    let elastic = text(spec, "/completionMode") == "Indexed"
        && spec["completions"] == spec["parallelism"]
        && before["completions"] == before["parallelism"];
    if !elastic {
        check::immutable(causes, spec, before, "spec", "completions");
    }
    check::immutable(causes, spec, before, "spec", "selector");
    template_update(causes, spec, old);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        check::immutable(causes, spec, before, "spec", field);
    }
}

/// The template of a Job that is suspended and has not started can still be told where to run.
fn template_update(causes: &mut Causes, spec: &Value, old: &Value) {
    let waits =
        old.pointer("/spec/suspend") == Some(&json!(true)) && old.pointer("/status/startTime").is_none();
    let fixed = |spec: &Value| {
        let mut template = spec["template"].clone();
        if let Some(metadata) = template["metadata"].as_object_mut()
            && waits
        {
            metadata.remove("labels");
            metadata.remove("annotations");
        }
        if let Some(pod) = template["spec"].as_object_mut()
            && waits
        {
            for field in ["nodeSelector", "tolerations", "affinity", "schedulingGates"] {
                pod.remove(field);
            }
        }
        template
    };
    if fixed(spec) != fixed(&old["spec"]) {
        causes.push(Cause::invalid("spec.template", &spec["template"], "field is immutable"));
    }
}

/// What is wrong with a CronJob.
pub(super) fn validate_cron_job(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    let name = text(new, "/metadata/name");
    if old.is_none() && name.len() > 52 {
        causes.push(Cause::invalid("metadata.name", &json!(name), "must be no more than 52 characters"));
    }
    let spec = &new["spec"];
    let schedule = text(spec, "/schedule");
    if !schedule.is_empty() {
        if let Err(why) = schedule::parse(schedule) {
            causes.push(Cause::invalid("spec.schedule", &json!(schedule), why));
        }
        if schedule.contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            causes.push(Cause::invalid("spec.schedule", &json!(schedule), why));
        }
    }
    check::non_negative(&mut causes, spec, "spec", &["startingDeadlineSeconds"]);
    time_zone(&mut causes, spec);
    check::required_one_of(&mut causes, spec, "spec", "concurrencyPolicy", &["Allow", "Forbid", "Replace"]);
    let job = &spec["jobTemplate"]["spec"];
    job_spec(&mut causes, job, "spec.jobTemplate.spec");
    if job["manualSelector"] == json!(true) {
        causes.push(Cause {
            reason: "FieldValueNotSupported".into(),
            message: "Unsupported value: true: supported values: \"nil\", \"false\"".into(),
            field: "spec.jobTemplate.spec.manualSelector".into(),
        });
    }
    check::non_negative(&mut causes, spec, "spec", &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]);
    if schedule.is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    }
    causes
}

fn time_zone(causes: &mut Causes, spec: &Value) {
    let Some(zone) = spec.get("timeZone").and_then(Value::as_str) else { return };
    let why = if zone.is_empty() {
        "timeZone must be nil or non-empty string".to_owned()
    } else if zone.eq_ignore_ascii_case("Local") {
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned()
    } else if jiff::tz::TimeZone::get(zone).is_err() {
        format!("unknown time zone {zone}")
    } else {
        return;
    };
    causes.push(Cause::invalid("spec.timeZone", &json!(zone), why));
}
