//! Deployments and the other kinds that carry a Pod template.

use serde_json::{Value, json};

use super::{Resource, default, pod, text};
use crate::error::Cause;

/// Defaults of a workload.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    let plural = &*resource.plural;
    if plural == "cronjobs" {
        default_cron_job(&mut object["spec"]);
        return;
    }
    if !matches!(
        plural,
        "deployments" | "replicasets" | "statefulsets" | "daemonsets" | "jobs" | "replicationcontrollers"
    ) {
        return;
    }
    default(object, "spec", || json!({}));
    default_template(&mut object["spec"]);
    let spec = &mut object["spec"];
    match plural {
        "deployments" => default_deployment(spec),
        "replicasets" | "replicationcontrollers" => default(spec, "replicas", || json!(1)),
        "statefulsets" => default_stateful_set(spec),
        "daemonsets" => default_daemon_set(spec),
        _ => default_job(spec),
    }
}

fn default_template(spec: &mut Value) {
    if let Some(template) = spec.get_mut("template") {
        default(template, "metadata", || json!({}));
        default(template, "spec", || json!({}));
        pod::default_spec(&mut template["spec"]);
    }
}

fn default_deployment(spec: &mut Value) {
    default(spec, "replicas", || json!(1));
    default(spec, "revisionHistoryLimit", || json!(10));
    default(spec, "progressDeadlineSeconds", || json!(600));
    default(spec, "strategy", || json!({}));
    let strategy = &mut spec["strategy"];
    default(strategy, "type", || json!("RollingUpdate"));
    if text(strategy, "/type") == "RollingUpdate" {
        default(strategy, "rollingUpdate", || json!({}));
        default(&mut strategy["rollingUpdate"], "maxUnavailable", || json!("25%"));
        default(&mut strategy["rollingUpdate"], "maxSurge", || json!("25%"));
    }
}

fn default_stateful_set(spec: &mut Value) {
    default(spec, "replicas", || json!(1));
    default(spec, "revisionHistoryLimit", || json!(10));
    default(spec, "podManagementPolicy", || json!("OrderedReady"));
    default(spec, "updateStrategy", || json!({}));
    let strategy = &mut spec["updateStrategy"];
    default(strategy, "type", || json!("RollingUpdate"));
    if text(strategy, "/type") == "RollingUpdate" {
        default(strategy, "rollingUpdate", || json!({}));
        default(&mut strategy["rollingUpdate"], "partition", || json!(0));
    }
    default(spec, "persistentVolumeClaimRetentionPolicy", || json!({}));
    let policy = &mut spec["persistentVolumeClaimRetentionPolicy"];
    default(policy, "whenDeleted", || json!("Retain"));
    default(policy, "whenScaled", || json!("Retain"));
}

fn default_daemon_set(spec: &mut Value) {
    default(spec, "revisionHistoryLimit", || json!(10));
    default(spec, "updateStrategy", || json!({}));
    let strategy = &mut spec["updateStrategy"];
    default(strategy, "type", || json!("RollingUpdate"));
    if text(strategy, "/type") == "RollingUpdate" {
        default(strategy, "rollingUpdate", || json!({}));
        default(&mut strategy["rollingUpdate"], "maxSurge", || json!(0));
        default(&mut strategy["rollingUpdate"], "maxUnavailable", || json!(1));
    }
}

fn default_job(spec: &mut Value) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        default(spec, "completions", || json!(1));
    }
    default(spec, "parallelism", || json!(1));
    default(spec, "backoffLimit", || json!(6));
    default(spec, "completionMode", || json!("NonIndexed"));
    default(spec, "suspend", || json!(false));
    default(spec, "podReplacementPolicy", || json!("TerminatingOrFailed"));
}

fn default_cron_job(spec: &mut Value) {
    default(spec, "concurrencyPolicy", || json!("Allow"));
    default(spec, "suspend", || json!(false));
    default(spec, "successfulJobsHistoryLimit", || json!(3));
    default(spec, "failedJobsHistoryLimit", || json!(1));
    if let Some(template) = spec.pointer_mut("/jobTemplate/spec") {
        default_template(template);
    }
}

/// What is wrong with a workload of the `apps` group.
pub(super) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    if !matches!(&*resource.plural, "deployments" | "replicasets" | "statefulsets" | "daemonsets") {
        return Vec::new();
    }
    let spec = &new["spec"];
    let mut causes = Vec::new();
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.replicas", &json!(replicas), why));
    }
    let selector = &spec["selector"];
    if selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none() {
        causes.push(if selector.is_null() {
            Cause::required("spec.selector", "")
        } else {
            Cause::invalid("spec.selector", selector, "empty selector is invalid for deployment")
        });
    } else if !selects(selector, &spec["template"]["metadata"]["labels"]) {
        let labels = &spec["template"]["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
    }
    if let Some(old) = old
        && old["spec"]["selector"] != *selector
    {
        causes.push(Cause::invalid("spec.selector", selector, "field is immutable"));
    }
    causes.extend(pod::validate_spec(&spec["template"]["spec"], "spec.template.spec"));
    let policy = text(&spec["template"]["spec"], "/restartPolicy");
    if policy != "Always" && ["OnFailure", "Never"].contains(&policy) {
        causes.push(Cause::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    causes
}

/// Whether a structured selector matches labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = |(key, value): (&String, &Value)| label(key).is_some() && label(key) == value.as_str();
    let expressions = selector["matchExpressions"].as_array().map_or(&[][..], Vec::as_slice);
    let holds = |expression: &Value| {
        let value = label(text(expression, "/key"));
        let listed = value.is_some_and(|value| {
            expression["values"].as_array().is_some_and(|values| values.iter().any(|one| one == value))
        });
        match text(expression, "/operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    wanted.into_iter().all(equal) && expressions.iter().all(holds)
}
