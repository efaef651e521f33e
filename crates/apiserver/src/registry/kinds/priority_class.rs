//! PriorityClasses.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{self, Causes},
    default, text,
};
use crate::{error::Cause, registry::strategy::Generation};

/// PriorityClass.
pub(super) static PRIORITY_CLASS: Strategy = Strategy {
    generation: Generation::One,
    defaults: |class| default(class, "preemptionPolicy", || json!("PreemptLowerPriority")),
    validate,
    undeletable: |name| {
        SYSTEM.contains(&name).then_some("this is a system priority class and cannot be deleted")
    },
    row: Some(row),
    ..Strategy::PLAIN
};

/// The priority classes that every cluster has.
const SYSTEM: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

fn validate(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    let value = new["value"].as_i64().unwrap_or(0);
    let name = text(new, "/metadata/name");
    let system = SYSTEM.contains(&name);
    if let Some(old) = old {
        if new["value"] != old["value"] {
            causes.push(Cause::forbidden("value", "may not be changed in an update."));
        }
        check::immutable(&mut causes, new, old, "", "preemptionPolicy");
        return causes;
    }
    if name.starts_with("system-") && !system {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
             known system priority class"
        );
        causes.push(Cause::forbidden("metadata.name", &why));
    }
    if value > 1_000_000_000 && !system {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        causes.push(Cause::forbidden("value", why));
    }
    check::one_of(&mut causes, new, "", "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let default = object.get("globalDefault").and_then(Value::as_bool).unwrap_or(false);
    vec![
        cells::name(object),
        json!(cells::number(object, "/value")),
        json!(default),
        cells::age(object, now),
        json!(text(object, "/preemptionPolicy")),
    ]
}
