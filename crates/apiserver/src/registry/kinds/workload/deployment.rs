//! Deployments.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes, at},
    count_replicas, default, default_spec, ready, runs_for_ever, selected, selector_and_template,
    spec_warnings, template, text, unknown_strategy,
};
use crate::{
    error::Cause,
    registry::{
        metadata::meta,
        strategy::{Generation, changed},
    },
};

/// Deployment.
pub(super) static DEPLOYMENT: Strategy = Strategy {
    // Its controller copies the annotations of a Deployment to its ReplicaSets: they are a part of what is wanted.
    generation: Generation::Changes(|_, subresource, new, old| {
        changed(new, old, true) || subresource.is_empty() && annotations(new).ne(annotations(old))
    }),
    defaults: |object| {
        default_spec(object);
        defaults(&mut object["spec"]);
    },
    validate: |new, old| {
        let mut causes = Vec::new();
        validate(&mut causes, new, old);
        causes
    },
    validate_status: |new| count_replicas(&new["status"], &COUNTS, &PARTS, "readyReplicas"),
    warnings: spec_warnings,
    row: Some(row),
    ..Strategy::PLAIN
};

const COUNTS: [&str; 7] = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "collisionCount",
];
const PARTS: [&str; 3] = ["updatedReplicas", "readyReplicas", "availableReplicas"];

/// The annotations of a Deployment but for those that its controller writes with the status.
fn annotations(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = meta(object, "annotations").as_object().into_iter().flatten();
    all.filter(|(key, _)| !key.starts_with("deployment.kubernetes.io/"))
}

fn defaults(spec: &mut Value) {
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

fn validate(causes: &mut Causes, new: &Value, old: Option<&Value>) {
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        cells::name(object),
        ready(object),
        json!(cells::number(object, "/status/updatedReplicas")),
        json!(cells::number(object, "/status/availableReplicas")),
        cells::age(object, now),
        names,
        images,
        selected(object),
    ]
}
