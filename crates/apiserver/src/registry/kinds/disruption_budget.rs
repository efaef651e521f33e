//! PodDisruptionBudgets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes},
    default,
};
use crate::{error::Cause, registry::strategy::Generation};

/// PodDisruptionBudget.
pub(super) static DISRUPTION_BUDGET: Strategy = Strategy {
    unconditional_update: false,
    generation: Generation::SPEC,
    defaults: |budget| default(budget, "spec", || json!({})),
    validate: |new, _| {
        let mut causes = Vec::new();
        validate(&mut causes, &new["spec"]);
        causes
    },
    row: Some(row),
    ..Strategy::PLAIN
};

fn validate(causes: &mut Causes, spec: &Value) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if let (Some(least), Some(most)) = (least, most) {
        let null = Value::Null;
        let shown = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec.get("selector").unwrap_or(&null),
            spec.get("unhealthyPodEvictionPolicy").unwrap_or(&null)
        );
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {shown}: minAvailable and maxUnavailable cannot be both set"),
            field: "spec".into(),
        });
    }
    for (field, value) in [("spec.minAvailable", least), ("spec.maxUnavailable", most)] {
        if let Some(value) = value {
            check::int_or_percent(causes, value, field);
            check::not_above_all(causes, value, field);
        }
    }
    check::selector(causes, &spec["selector"], "spec.selector");
    check::one_of(causes, spec, "spec", "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"]);
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        cells::name(object),
        cells::or(&cells::plain(object.pointer("/spec/minAvailable")), "N/A"),
        cells::or(&cells::plain(object.pointer("/spec/maxUnavailable")), "N/A"),
        json!(cells::number(object, "/status/disruptionsAllowed")),
        cells::age(object, now),
    ]
}
