//! ReplicaSets, and ReplicationControllers, which came before them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes},
    count_replicas, default, default_spec, matching_labels, pod, runs_for_ever, selected,
    selector_and_template, spec_warnings, template,
};
use crate::{
    error::Cause,
    registry::{
        metadata,
        strategy::{Generation, Selectable},
    },
};

/// ReplicaSet.
pub(super) static REPLICA_SET: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |object| {
        default_spec(object);
        default(&mut object["spec"], "replicas", || json!(1));
    },
    validate: |new, old| {
        let mut causes = Vec::new();
        replica_set(&mut causes, new, old);
        causes
    },
    validate_status,
    warnings: spec_warnings,
    row: Some(|object, now| row(object, now, selected(object))),
    ..Strategy::PLAIN
};

/// ReplicationController.
pub(super) static REPLICATION_CONTROLLER: Strategy = Strategy {
    generation: Generation::SPEC,
    selectable: &[Selectable::with_default("status.replicas", "/status/replicas", "0")],
    defaults: |object| {
        default_spec(object);
        default_replication_controller(object);
    },
    validate: |new, _| {
        let mut causes = Vec::new();
        replication_controller(&mut causes, new);
        causes
    },
    validate_status,
    warnings: spec_warnings,
    orphans_by_default: true,
    row: Some(|object, now| row(object, now, json!(cells::labels(object.pointer("/spec/selector"))))),
    ..Strategy::PLAIN
};

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

fn replication_controller(causes: &mut Causes, new: &Value) {
    let spec = &new["spec"];
    check::non_negative(causes, spec, "spec", &["minReadySeconds", "replicas"]);
    if check::entries(spec, "selector").next().is_none() {
        causes.push(Cause::required("spec.selector", ""));
    }
    let template = &spec["template"];
    let labelled = check::entries(&template["metadata"], "labels").next().is_some();
    if check::list(&template["spec"], "containers").is_empty() && !labelled {
        causes.push(Cause::required("spec.template", ""));
        return;
    }
    let selector = json!({"matchLabels": spec["selector"]});
    matching_labels(causes, &selector, spec);
    pod::validate::template(causes, &spec["template"], "spec.template");
    runs_for_ever(causes, spec, "ReplicationController");
}

fn validate_status(new: &Value) -> Causes {
    let counts =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    count_replicas(&new["status"], &counts, &parts, "readyReplicas")
}

fn row(object: &Value, now: Timestamp, selector: Value) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        cells::name(object),
        json!(cells::number(object, "/spec/replicas")),
        json!(cells::number(object, "/status/replicas")),
        json!(cells::number(object, "/status/readyReplicas")),
        cells::age(object, now),
        names,
        images,
        selector,
    ]
}
