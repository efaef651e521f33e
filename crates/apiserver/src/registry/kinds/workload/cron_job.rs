//! CronJobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::format,
    Strategy, cells,
    check::{self, Causes},
    containers, default, default_template, job, schedule, template_warnings, text,
};
use crate::{error::Cause, registry::strategy::Generation};

/// CronJob.
pub(super) static CRON_JOB: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |object| {
        default(object, "spec", || json!({}));
        defaults(&mut object["spec"]);
    },
    validate,
    warnings: |new, old| template_warnings(new, old, &["spec", "jobTemplate", "spec", "template"]),
    row: Some(row),
    ..Strategy::PLAIN
};

fn defaults(spec: &mut Value) {
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

/// What is wrong with a CronJob.
fn validate(new: &Value, old: Option<&Value>) -> Causes {
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
    job::validate_spec(&mut causes, job, "spec.jobTemplate.spec");
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let suspended = object.pointer("/spec/suspend").and_then(Value::as_bool);
    let suspended = suspended.map_or("<unset>", |value| if value { "True" } else { "False" });
    let last = match text(object, "/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        time => format::age(time, now),
    };
    let [names, images] = containers(object, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        cells::name(object),
        json!(text(object, "/spec/schedule")),
        cells::or_none(text(object, "/spec/timeZone")),
        json!(suspended),
        json!(cells::list(object, "/status/active").len()),
        json!(last),
        cells::age(object, now),
        names,
        images,
        json!(cells::selector(object.pointer("/spec/jobTemplate/spec/selector"))),
    ]
}
