//! Events are one kind under two groups: core `v1`, which is stored, and `events.k8s.io/v1`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::resource::Resource;

/// The fields that differ: core name, `events.k8s.io` name.
const RENAMED: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// Whether the resource is the one of `events.k8s.io`.
pub(super) fn is_modern(resource: &Resource) -> bool {
    &*resource.group == "events.k8s.io" && &*resource.plural == "events"
}

/// A stored event as `events.k8s.io/v1` shows it.
pub(super) fn to_modern(event: Value) -> Value {
    rename(event, "events.k8s.io/v1", |(core, modern)| (core, modern))
}

/// An event of `events.k8s.io/v1` as it is stored.
pub(super) fn to_core(event: Value) -> Value {
    rename(event, "v1", |(core, modern)| (modern, core))
}

/// A field that `events.k8s.io/v1` names, as it is stored.
pub(super) fn core_field(field: &str) -> Cow<'_, str> {
    let (first, rest) = field.split_once('.').map_or((field, None), |(first, rest)| (first, Some(rest)));
    match (RENAMED.iter().find(|(_, modern)| *modern == first), rest) {
        (Some((core, _)), Some(rest)) => format!("{core}.{rest}").into(),
        (Some((core, _)), None) => Cow::Borrowed(core),
        (None, _) => field.into(),
    }
}

fn rename(
    event: Value,
    api_version: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let Value::Object(event) = event else { return event };
    let mut out = Map::new();
    for (key, value) in event {
        let name = RENAMED.into_iter().map(&direction).find(|(from, _)| *from == key);
        out.insert(name.map_or(key, |(_, to)| to.to_owned()), value);
    }
    if api_version != "v1" {
        out.retain(|key, value| !(key.starts_with("reporting") && value == ""));
    }
    out.insert("apiVersion".into(), api_version.into());
    Value::Object(out)
}
