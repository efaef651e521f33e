//! ConfigMaps.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Strategy, cells,
    check::{Causes, entries},
    data::{self, decoded_size, kept, key},
};
use crate::error::Cause;

/// ConfigMap.
pub(super) static CONFIG_MAP: Strategy = Strategy { validate, row: Some(row), ..Strategy::PLAIN };

fn validate(new: &Value, old: Option<&Value>) -> Causes {
    let mut causes = Vec::new();
    kept(&mut causes, new, old, &["data", "binaryData"]);
    for (name, _) in entries(new, "data") {
        key(&mut causes, name, "data");
        if new.get("binaryData").is_some_and(|binary| binary.get(name).is_some()) {
            let why = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(format!("data[{name}]"), &json!(name), why));
        }
    }
    for (name, _) in entries(new, "binaryData") {
        key(&mut causes, name, "binaryData");
    }
    let texts: usize = entries(new, "data").map(|(_, value)| value.as_str().map_or(0, str::len)).sum();
    if texts + decoded_size(new, "binaryData") > data::LONGEST {
        causes.push(Cause::too_long("[]", data::LONGEST));
    }
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = data::count(object, &["data", "binaryData"]);
    vec![cells::name(object), json!(entries), cells::age(object, now)]
}
