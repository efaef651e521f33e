//! StatefulSets.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::volume_claim,
    Strategy, cells,
    check::{self, Causes, at},
    count_replicas, default, default_spec, ready, runs_for_ever, selector_and_template, spec_warnings,
    template, text,
};
use crate::{
    error::Cause,
    registry::{metadata::NameRule, strategy::Generation},
};

/// StatefulSet.
pub(super) static STATEFUL_SET: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |object| {
        default_spec(object);
        defaults(&mut object["spec"]);
    },
    validate: |new, old| {
        let mut causes = Vec::new();
        validate(&mut causes, new, old);
        causes
    },
    validate_status: |new| count_replicas(&new["status"], &COUNTS, &PARTS, "status.readyReplicas"),
    warnings: spec_warnings,
    row: Some(row),
    ..Strategy::PLAIN
};

const COUNTS: [&str; 7] = [
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
];
const PARTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

fn defaults(spec: &mut Value) {
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
        volume_claim::defaults(claim);
    }
}

fn validate(causes: &mut Causes, new: &Value, old: Option<&Value>) {
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
        volume_claim::validate_spec(
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![cells::name(object), ready(object), cells::age(object, now), names, images]
}
