//! Leases.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes},
    text,
};
use crate::error::Cause;

/// Lease.
pub(super) static LEASE: Strategy = Strategy {
    unconditional_update: false,
    // Of a feature that is off: who holds a lease is decided by those who want it.
    defaults: |lease| {
        if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
            spec.retain(|field, _| !matches!(field.as_str(), "strategy" | "preferredHolder"));
        }
    },
    validate: |new, _| validate(&new["spec"]),
    creates_on_update: true,
    row: Some(row),
    ..Strategy::PLAIN
};

fn validate(spec: &Value) -> Causes {
    let mut causes = Vec::new();
    if let Some(seconds) = spec.get("leaseDurationSeconds").and_then(Value::as_i64).filter(|one| *one <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), "must be greater than 0"));
    }
    check::non_negative(&mut causes, spec, "spec", &["leaseTransitions"]);
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![cells::name(object), json!(text(object, "/spec/holderIdentity")), cells::age(object, now)]
}
