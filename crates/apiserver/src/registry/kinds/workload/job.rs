//! Jobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::format,
    Strategy, cells,
    check::{self, Causes, at},
    default, default_spec, pod, selected, spec_warnings, template, text,
};
use crate::{
    error::Cause,
    registry::{
        metadata,
        strategy::{Generation, Selectable},
    },
};

/// Job.
pub(super) static JOB: Strategy = Strategy {
    generation: Generation::SPEC,
    selectable: &[Selectable::with_default("status.successful", "/status/succeeded", "0")],
    unknown_field: Some(|field| format!("field label \"{field}\" not supported for Job")),
    defaults: |object| {
        default_spec(object);
        defaults(&mut object["spec"]);
    },
    complete_create: |job, _| generate_selector(job),
    validate,
    warnings: spec_warnings,
    orphans_by_default: true,
    orphan_warning: Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them \
         or set propagationPolicy=Orphan to suppress this warning",
    ),
    row: Some(row),
    ..Strategy::PLAIN
};

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

fn defaults(spec: &mut Value) {
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

/// A Job finds its Pods by its own uid, unless the user wants to say how.
fn generate_selector(job: &mut Value) {
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
fn validate(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    let spec = &new["spec"];
    validate_spec(&mut causes, spec, "spec");
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

/// What is wrong with the spec of a Job, also of one inside a CronJob.
pub(super) fn validate_spec(causes: &mut Causes, spec: &Value, path: &str) {
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

fn job_state(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let conditions = cells::list(job, "/status/conditions");
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = cells::number(object, "/status/succeeded");
    let parallelism = cells::number(object, "/spec/parallelism");
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
        cells::name(object),
        json!(job_state(object)),
        json!(completions),
        json!(took),
        cells::age(object, now),
        names,
        images,
        selected(object),
    ]
}
