//! Deployments and the other kinds that carry a Pod template: what they start with.

pub(super) mod batch;
mod schedule;
pub(super) mod validate;

use serde_json::{Value, json};

use super::{Resource, default, pod, storage, text};
use crate::registry::metadata;

/// DaemonSets count the versions of their template here, for clients of a version that is gone.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Defaults of a workload.
pub(super) fn defaults(resource: &Resource, object: &mut Value) {
    match &*resource.plural {
        "cronjobs" => {
            default(object, "spec", || json!({}));
            batch::default_cron_job(&mut object["spec"]);
        }
        "podtemplates" => {
            default_template(object);
        }
        "deployments" | "replicasets" | "statefulsets" | "daemonsets" | "jobs" | "replicationcontrollers" => {
            default(object, "spec", || json!({}));
            default(&mut object["spec"], "template", || json!({}));
            default_template(&mut object["spec"]);
            default_kind(&resource.plural, object);
        }
        _ => {}
    }
}

fn default_kind(plural: &str, object: &mut Value) {
    let spec = &mut object["spec"];
    match plural {
        "deployments" => default_deployment(spec),
        "replicasets" => default(spec, "replicas", || json!(1)),
        "replicationcontrollers" => default_replication_controller(object),
        "statefulsets" => default_stateful_set(spec),
        "daemonsets" => default_daemon_set(spec),
        _ => batch::default_job(spec),
    }
}

fn default_template(holder: &mut Value) {
    if let Some(template) = holder.get_mut("template") {
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

/// A controller without a selector or labels takes those of its template.
fn default_replication_controller(object: &mut Value) {
    let spec = &mut object["spec"];
    default(spec, "replicas", || json!(1));
    if let Some(spec) = spec.as_object_mut()
        && spec.get("minReadySeconds") == Some(&json!(0))
    {
        spec.remove("minReadySeconds");
    }
    let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() else { return };
    default(&mut object["spec"], "selector", || labels.clone());
    metadata::metadata(object).entry("labels").or_insert(labels);
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
        default(&mut strategy["rollingUpdate"], "maxUnavailable", || json!(1));
    }
    default(spec, "persistentVolumeClaimRetentionPolicy", || json!({}));
    let policy = &mut spec["persistentVolumeClaimRetentionPolicy"];
    default(policy, "whenDeleted", || json!("Retain"));
    default(policy, "whenScaled", || json!("Retain"));
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        default(claim, "apiVersion", || json!("v1"));
        default(claim, "kind", || json!("PersistentVolumeClaim"));
        storage::default_claim(claim);
    }
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

/// Sets what only a new workload gets: the selector of a Job, the template's number of a DaemonSet.
pub(super) fn complete_new(resource: &Resource, object: &mut Value) {
    match &*resource.plural {
        "jobs" => batch::generate_selector(object),
        "daemonsets" => number_template(object, 1),
        _ => {}
    }
}

/// Counts the versions of a DaemonSet's template.
pub(super) fn complete_changed(resource: &Resource, new: &mut Value, old: &Value) {
    if &*resource.plural != "daemonsets" {
        return;
    }
    let before = old.pointer("/metadata/annotations").and_then(|all| all.get(TEMPLATE_GENERATION));
    let before = before.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0);
    let changed = new["spec"]["template"] != old["spec"]["template"];
    number_template(new, before + i64::from(changed));
}

fn number_template(object: &mut Value, number: i64) {
    let annotations = metadata::metadata(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[TEMPLATE_GENERATION] = json!(number.to_string());
}
