//! PriorityLevelConfigurations.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    super::{
        Strategy, cells,
        check::{Causes, at},
        default, text,
    },
    conditions,
};
use crate::{error::Cause, registry::strategy::Generation};

/// PriorityLevelConfiguration.
pub(in crate::registry::kinds) static PRIORITY_LEVEL: Strategy = Strategy {
    generation: Generation::SPEC,
    defaults,
    validate: |new, _| {
        let mut causes = Vec::new();
        validate(&mut causes, new);
        conditions(&mut causes, new);
        causes
    },
    validate_status: |new| {
        let mut causes = Vec::new();
        conditions(&mut causes, new);
        causes
    },
    row: Some(row),
    ..Strategy::PLAIN
};

fn defaults(level: &mut Value) {
    if let Some(limited) = level.pointer_mut("/spec/limited") {
        default(limited, "nominalConcurrencyShares", || json!(30));
        default(limited, "lendablePercent", || json!(0));
        if let Some(queuing) = limited.pointer_mut("/limitResponse/queuing") {
            for (field, value) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
                if queuing[field].as_i64().is_none_or(|number| number == 0) {
                    queuing[field] = json!(value);
                }
            }
        }
    }
    if let Some(exempt) = level.pointer_mut("/spec/exempt") {
        default(exempt, "nominalConcurrencyShares", || json!(0));
        default(exempt, "lendablePercent", || json!(0));
    }
}

fn validate(causes: &mut Causes, level: &Value) {
    let spec = &level["spec"];
    let kind = text(spec, "/type");
    if (text(level, "/metadata/name") == "exempt") != (kind == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.push(Cause::invalid("spec.type", &json!(kind), why));
    }
    let (limited, exempt) = (spec.get("limited"), spec.get("exempt"));
    match kind {
        "Exempt" => {
            if limited.is_some() {
                causes.push(Cause::forbidden("spec.limited", "must be nil if the type is not Limited"));
            }
            if let Some(exempt) = exempt {
                shares(causes, exempt, "spec.exempt");
            }
        }
        "Limited" => {
            if exempt.is_some() {
                causes.push(Cause::forbidden("spec.exempt", "must be nil if the type is Limited"));
            }
            match limited {
                None => {
                    causes.push(Cause::required("spec.limited", "must not be empty when type is Limited"));
                }
                Some(limited) => limited_errors(causes, limited),
            }
        }
        "" => causes.push(Cause::required("spec.type", "")),
        other => causes.push(Cause::not_supported("spec.type", other, &["Exempt", "Limited"])),
    }
}

fn number(object: &Value, field: &str) -> Option<i64> {
    object.get(field).and_then(Value::as_i64)
}

fn shares(causes: &mut Causes, object: &Value, path: &str) {
    if let Some(shares) = number(object, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        let why = "must be a non-negative integer";
        causes.push(Cause::invalid(at(path, "nominalConcurrencyShares"), &json!(shares), why));
    }
    if path == "spec.limited" {
        response(causes, &object["limitResponse"]);
    }
    if let Some(percent) = number(object, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        let why = "must be between 0 and 100, inclusive";
        causes.push(Cause::invalid(at(path, "lendablePercent"), &json!(percent), why));
    }
}

fn limited_errors(causes: &mut Causes, limited: &Value) {
    shares(causes, limited, "spec.limited");
    if let Some(percent) = number(limited, "borrowingLimitPercent").filter(|percent| *percent < 0) {
        let why = "if specified, must be a non-negative integer";
        causes.push(Cause::invalid("spec.limited.borrowingLimitPercent", &json!(percent), why));
    }
}

fn response(causes: &mut Causes, response: &Value) {
    let path = "spec.limited.limitResponse";
    match (text(response, "/type"), response.get("queuing")) {
        ("Reject", Some(_)) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            causes.push(Cause::forbidden(at(path, "queuing"), why));
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            causes.push(Cause::required(at(path, "queuing"), why));
        }
        ("Queue", Some(queuing)) => queues(causes, queuing, &at(path, "queuing")),
        ("", _) => causes.push(Cause::required(at(path, "type"), "")),
        (other, _) => causes.push(Cause::not_supported(at(path, "type"), other, &["Queue", "Reject"])),
    }
}

/// The most queues of a level, and the bits of the hash that deals requests to them.
const MOST_QUEUES: i64 = 10_000_000;
const HASH_BITS: u32 = 60;

fn queues(causes: &mut Causes, queuing: &Value, path: &str) {
    let of = |field| number(queuing, field).unwrap_or_default();
    let (length, queues, hand) = (of("queueLengthLimit"), of("queues"), of("handSize"));
    let mut refuse = |field: &str, value: i64, why: String| {
        causes.push(Cause::invalid(at(path, field), &json!(value), why));
    };
    if length <= 0 {
        refuse("queueLengthLimit", length, "must be positive".to_owned());
    }
    if queues <= 0 {
        refuse("queues", queues, "must be positive".to_owned());
    } else if queues > MOST_QUEUES {
        refuse("queues", queues, format!("must not be greater than {MOST_QUEUES}"));
    }
    if hand <= 0 {
        refuse("handSize", hand, "must be positive".to_owned());
    } else if hand > queues {
        refuse("handSize", hand, format!("should not be greater than queues ({queues})"));
    } else if entropy(queues, hand) > HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        );
        refuse("handSize", hand, why);
    }
}

/// The bits that it takes to deal a hand from a deck.
fn entropy(deck: i64, hand: i64) -> u32 {
    let bits: f64 = (0..hand.min(64)).map(|dealt| ((deck - dealt).max(1) as f64).log2()).sum();
    bits.ceil() as u32
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
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
