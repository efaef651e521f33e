//! FlowSchemas and PriorityLevelConfigurations.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Strategy, cells, required, text};
use crate::registry::strategy::Generation;

/// FlowSchema.
pub(super) static FLOW_SCHEMA: Strategy = Strategy {
    generation: Generation::SPEC,
    validate: required::flow_schema,
    row: Some(flow_schema),
    ..Strategy::PLAIN
};

/// PriorityLevelConfiguration.
pub(super) static PRIORITY_LEVEL: Strategy = Strategy {
    generation: Generation::SPEC,
    validate: required::priority_level,
    row: Some(priority_level),
    ..Strategy::PLAIN
};

fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    let dangling =
        cells::list(object, "/status/conditions").iter().find(|one| text(one, "/type") == "Dangling");
    vec![
        cells::name(object),
        json!(text(object, "/spec/priorityLevelConfiguration/name")),
        json!(cells::number(object, "/spec/matchingPrecedence")),
        cells::or(text(object, "/spec/distinguisherMethod/type"), "<none>"),
        cells::age(object, now),
        json!(dangling.map_or("?", |one| text(one, "/status"))),
    ]
}

fn priority_level(object: &Value, now: Timestamp) -> Vec<Value> {
    let none = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_else(|| json!("<none>"));
    vec![
        cells::name(object),
        json!(text(object, "/spec/type")),
        none("/spec/limited/nominalConcurrencyShares"),
        none("/spec/limited/limitResponse/queuing/queues"),
        none("/spec/limited/limitResponse/queuing/handSize"),
        none("/spec/limited/limitResponse/queuing/queueLengthLimit"),
        cells::age(object, now),
    ]
}
