//! LimitRanges.

use serde_json::{Map, Value, json};

use super::{
    Strategy, cells,
    check::{Causes, entries, list},
    default, text,
};
use crate::{error::Cause, schema::quantity};

/// LimitRange.
pub(super) static LIMIT_RANGE: Strategy = Strategy {
    defaults: |range| {
        let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
        limits.into_iter().flatten().for_each(default_limit);
    },
    validate: |new, _| validate(&new["spec"]),
    creates_on_update: true,
    ..Strategy::PLAIN
};

/// What a container may have at most it gets, and what it gets it asks for.
fn default_limit(limit: &mut Value) {
    if text(limit, "/type") != "Container" {
        return;
    }
    for (from, into) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(amounts) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
        let target = limit
            .as_object_mut()
            .expect("a limit that has a type must be an object")
            .entry(into)
            .or_insert_with(|| Value::Object(Map::new()));
        for (name, amount) in amounts {
            default(target, &name, || amount);
        }
    }
}

fn plain(amount: &Value) -> String {
    cells::plain(Some(amount))
}

fn validate(spec: &Value) -> Causes {
    let mut causes = Vec::new();
    for (index, limit) in list(spec, "limits").iter().enumerate() {
        for (name, least) in entries(limit, "min") {
            let (shown, least) = (plain(least), quantity::parse(&plain(least)));
            for (kind, words, value_of_min) in [
                ("max", "max value", true),
                ("defaultRequest", "default request value", false),
                ("default", "default value", true),
            ] {
                let Some(other) = limit.get(kind).and_then(|all| all.get(name)).map(plain) else { continue };
                if least > quantity::parse(&other) {
                    let field = if kind == "max" { "min" } else { kind };
                    let value = if value_of_min { &shown } else { &other };
                    causes.push(Cause::invalid(
                        format!("spec.limits[{index}].{field}[{name}]"),
                        &json!(value),
                        format!("min value {shown} is greater than {words} {other}"),
                    ));
                }
            }
        }
    }
    causes
}
