//! DaemonSets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at},
    default, default_spec, matching_labels, pod, runs_for_ever, selected, spec_warnings, template, text,
    unknown_strategy,
};
use crate::{
    error::Cause,
    registry::{metadata, strategy::Generation},
};

/// DaemonSet.
pub(super) static DAEMON_SET: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults: |object| {
        default_spec(object);
        defaults(&mut object["spec"]);
    },
    complete_create: |object, _| number_template(object, 1),
    complete_update: count_template,
    validate: |new, old| {
        let mut causes = Vec::new();
        validate(&mut causes, new, old);
        causes
    },
    validate_status,
    warnings: spec_warnings,
    row: Some(row),
    ..Strategy::PLAIN
};

/// DaemonSets count the versions of their template here, for clients of a version that is gone.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn defaults(spec: &mut Value) {
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

/// Counts the versions of the template.
fn count_template(new: &mut Value, old: &Value) {
    let before = old.pointer("/metadata/annotations").and_then(|all| all.get(TEMPLATE_GENERATION));
    let before = before.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0);
    let changed = new["spec"]["template"] != old["spec"]["template"];
    number_template(new, before + i64::from(changed));
}

fn number_template(object: &mut Value, number: i64) {
    let annotations = metadata::metadata(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[TEMPLATE_GENERATION] = json!(number.to_string());
}

fn validate(causes: &mut Causes, new: &Value, old: Option<&Value>) {
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

fn validate_status(new: &Value) -> Causes {
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut causes = Vec::new();
    check::non_negative(&mut causes, &new["status"], "status", &counts);
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = |field: &str| json!(cells::number(object, &format!("/status/{field}")));
    let [names, images] = template(object);
    vec![
        cells::name(object),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        json!(cells::labels(object.pointer("/spec/template/spec/nodeSelector"))),
        cells::age(object, now),
        names,
        images,
        selected(object),
    ]
}
