//! What is wrong with a workload, on creation, on change and in its status.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::batch;
use crate::{
    error::Cause,
    registry::{
        metadata::NameRule,
        resource::{Resource, text},
        strategy::{
            check::{self, Causes, at},
            pod, storage,
        },
    },
};

/// What is wrong with a workload.
pub(in crate::registry::strategy) fn workload(
    resource: &Resource,
    new: &Value,
    old: Option<&Value>,
) -> Causes {
    let mut causes = Vec::new();
    match &*resource.plural {
        "deployments" => deployment(&mut causes, new, old),
        "replicasets" => replica_set(&mut causes, new, old),
        "statefulsets" => stateful_set(&mut causes, new, old),
        "daemonsets" => daemon_set(&mut causes, new, old),
        "replicationcontrollers" => replication_controller(&mut causes, new),
        "controllerrevisions" => controller_revision(&mut causes, new, old),
        "jobs" => causes = batch::validate_job(new, old),
        "cronjobs" => causes = batch::validate_cron_job(new, old),
        "podtemplates" => pod::validate::template(&mut causes, &new["template"], "template"),
        _ => {}
    }
    causes
}

/// What is wrong with a workload's status.
pub(in crate::registry::strategy) fn status(resource: &Resource, new: &Value) -> Causes {
    let mut causes = Vec::new();
    let status = &new["status"];
    let counts: &[&str] = match &*resource.plural {
        "deployments" => &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "collisionCount",
        ],
        "replicasets" | "replicationcontrollers" => {
            &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"]
        }
        "statefulsets" => &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        "daemonsets" => &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        _ => return causes,
    };
    check::non_negative(&mut causes, status, "status", counts);
    let parts: &[&str] = match &*resource.plural {
        "deployments" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "replicasets" | "replicationcontrollers" => {
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]
        }
        "statefulsets" => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        _ => return causes,
    };
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    for part in parts.iter().filter(|part| number(part) > number("replicas")) {
        let why = "cannot be greater than status.replicas";
        causes.push(Cause::invalid(at("status", part), &json!(number(part)), why));
    }
    if number("availableReplicas") > number("readyReplicas") {
        let than = if &*resource.plural == "statefulsets" { "status.readyReplicas" } else { "readyReplicas" };
        let why = format!("cannot be greater than {than}");
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

fn deployment(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let spec = &new["spec"];
    check::non_negative(causes, spec, "spec", &["replicas"]);
    selector_and_template(causes, spec, "deployment", "invalid label selector");
    if check::is_selector(&spec["selector"]) {
        runs_for_ever(causes, spec, "ReplicaSet");
    }
    deployment_strategy(causes, &spec["strategy"]);
    check::non_negative(
        causes,
        spec,
        "spec",
        &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
    );
    let number = |field: &str| spec[field].as_i64().unwrap_or(0);
    if spec.get("progressDeadlineSeconds").is_some()
        && number("progressDeadlineSeconds") <= number("minReadySeconds")
    {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", &spec["progressDeadlineSeconds"], why));
    }
    if let Some(old) = old {
        check::immutable(causes, spec, &old["spec"], "spec", "selector");
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

fn deployment_strategy(causes: &mut Causes, strategy: &Value) {
    match text(strategy, "/type") {
        "Recreate" if strategy.get("rollingUpdate").is_some() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let path = "spec.strategy.rollingUpdate";
            let (unavailable, surge) =
                (&strategy["rollingUpdate"]["maxUnavailable"], &strategy["rollingUpdate"]["maxSurge"]);
            check::int_or_percent(causes, unavailable, &at(path, "maxUnavailable"));
            check::int_or_percent(causes, surge, &at(path, "maxSurge"));
            if check::amount(unavailable) == 0 && check::amount(surge) == 0 {
                let why = "may not be 0 when `maxSurge` is 0";
                causes.push(Cause::invalid(at(path, "maxUnavailable"), unavailable, why));
            }
            check::not_above_all(causes, unavailable, &at(path, "maxUnavailable"));
        }
        _ => causes.push(unknown_strategy("spec.strategy", strategy, "\"Recreate\", \"RollingUpdate\"")),
    }
}

fn replica_set(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let spec = &new["spec"];
    check::non_negative(causes, spec, "spec", &["replicas", "minReadySeconds"]);
    selector_and_template(causes, spec, "deployment", "invalid label selector");
    if check::is_selector(&spec["selector"]) {
        runs_for_ever(causes, spec, "ReplicaSet");
    }
    if let Some(old) = old {
        check::immutable(causes, spec, &old["spec"], "spec", "selector");
    }
}

fn stateful_set(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let spec = &new["spec"];
    let policy = text(spec, "/podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy) {
        let why = "must be 'OrderedReady' or 'Parallel'";
        causes.push(Cause::invalid("spec.podManagementPolicy", &json!(policy), why));
    }
    stateful_strategy(causes, &spec["updateStrategy"]);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for field in ["whenDeleted", "whenScaled"] {
        let path = "spec.persistentVolumeClaimRetentionPolicy";
        check::one_of(causes, retention, path, field, &["Retain", "Delete"]);
    }
    for (index, claim) in check::list(spec, "volumeClaimTemplates").iter().enumerate() {
        storage::validate_claim_spec(
            causes,
            &claim["spec"],
            &format!("spec.volumeClaimTemplates[{index}].spec"),
        );
    }
    check::non_negative(causes, spec, "spec", &["replicas", "minReadySeconds"]);
    check::non_negative(causes, &spec["ordinals"], "spec.ordinals", &["start"]);
    let service = text(spec, "/serviceName");
    if !service.is_empty() {
        check::name(causes, service, "spec.serviceName", NameRule::Label);
    }
    let mut checked = spec.clone();
    add_claimed_volumes(&mut checked);
    selector_and_template(causes, &checked, "statefulset", "");
    runs_for_ever(causes, spec, "StatefulSet");
    let Some(old) = old else { return };
    for field in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
        check::immutable(causes, spec, &old["spec"], "spec", field);
    }
}

/// Containers mount what the claims will give them.
fn add_claimed_volumes(spec: &mut Value) {
    let names: BTreeSet<String> = check::list(spec, "volumeClaimTemplates")
        .iter()
        .map(|claim| text(claim, "/metadata/name").to_owned())
        .collect();
    let Some(pod) = spec.pointer_mut("/template/spec").and_then(Value::as_object_mut) else { return };
    let volumes = pod.entry("volumes").or_insert_with(|| json!([]));
    let Some(volumes) = volumes.as_array_mut() else { return };
    volumes.retain(|volume| !names.contains(text(volume, "/name")));
    let claimed =
        names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    volumes.extend(claimed);
}

fn stateful_strategy(causes: &mut Causes, strategy: &Value) {
    let path = "spec.updateStrategy.rollingUpdate";
    match text(strategy, "/type") {
        "OnDelete" => {
            if let Some(rolling) = strategy.get("rollingUpdate") {
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                causes.push(Cause::invalid(path, rolling, why));
            }
        }
        "RollingUpdate" => {
            let rolling = &strategy["rollingUpdate"];
            check::non_negative(causes, rolling, path, &["partition"]);
            if let Some(most) = rolling.get("maxUnavailable") {
                let field = at(path, "maxUnavailable");
                check::int_or_percent(causes, most, &field);
                if check::amount(most) == 0 {
                    causes.push(Cause::invalid(&*field, most, "cannot be 0"));
                }
                check::not_above_all(causes, most, &field);
            }
        }
        kind => {
            let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
            causes.push(Cause {
                reason: "FieldValueInvalid".into(),
                message: format!(
                    "Invalid value: {{\"Type\":{},\"RollingUpdate\":{rolling}}}: must be 'RollingUpdate' or \
                     'OnDelete'",
                    json!(kind)
                ),
                field: "spec.updateStrategy".into(),
            });
        }
    }
}

fn daemon_set(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    let spec = &new["spec"];
    if let Some(old) = old {
        check::immutable(causes, spec, &old["spec"], "spec", "selector");
    }
    let selector = &spec["selector"];
    check::selector(causes, selector, "spec.selector");
    if check::is_selector(selector) {
        matching_labels(causes, selector, spec);
    }
    if !selector.is_null() && check::is_empty(selector) {
        causes.push(Cause::invalid("spec.selector", selector, "empty selector is invalid for daemonset"));
    }
    pod::validate::template(causes, &spec["template"], "spec.template");
    runs_for_ever(causes, spec, "DaemonSet");
    check::non_negative(causes, spec, "spec", &["minReadySeconds"]);
    daemon_strategy(causes, &spec["updateStrategy"]);
    check::non_negative(causes, spec, "spec", &["revisionHistoryLimit"]);
}

fn daemon_strategy(causes: &mut Causes, strategy: &Value) {
    let path = "spec.updateStrategy.rollingUpdate";
    match text(strategy, "/type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = &strategy["rollingUpdate"];
            for field in ["maxUnavailable", "maxSurge"] {
                check::int_or_percent(causes, &rolling[field], &at(path, field));
            }
            for field in ["maxUnavailable", "maxSurge"] {
                check::not_above_all(causes, &rolling[field], &at(path, field));
            }
            let (unavailable, surge) =
                (check::amount(&rolling["maxUnavailable"]), check::amount(&rolling["maxSurge"]));
            if unavailable != 0 && surge != 0 {
                let why = "may not be set when maxUnavailable is non-zero";
                causes.push(Cause::invalid(at(path, "maxSurge"), &rolling["maxSurge"], why));
            } else if unavailable == 0 && surge == 0 {
                let why = "cannot be 0 when maxSurge is 0";
                causes.push(Cause::required(at(path, "maxUnavailable"), why));
            }
        }
        _ => {
            causes.push(unknown_strategy("spec.updateStrategy", strategy, "\"RollingUpdate\", \"OnDelete\""));
        }
    }
}

fn replication_controller(causes: &mut Causes, new: &Value) {
    let spec = &new["spec"];
    check::non_negative(causes, spec, "spec", &["minReadySeconds", "replicas"]);
    if check::entries(spec, "selector").next().is_none() {
        causes.push(Cause::required("spec.selector", ""));
    }
    if check::list(&spec["template"]["spec"], "containers").is_empty() {
        causes.push(Cause::required("spec.template", ""));
        return;
    }
    let selector = json!({"matchLabels": spec["selector"]});
    matching_labels(causes, &selector, spec);
    pod::validate::template(causes, &spec["template"], "spec.template");
    runs_for_ever(causes, spec, "ReplicationController");
}

fn controller_revision(causes: &mut Causes, new: &Value, old: Option<&Value>) {
    if new.get("data").is_none_or(Value::is_null) {
        causes.push(Cause::required("data", "data is mandatory"));
    }
    check::non_negative(causes, new, "", &["revision"]);
    if let Some(old) = old {
        check::immutable(causes, new, old, "", "data");
    }
}
