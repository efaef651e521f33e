//! Events: one kind under two groups, core `v1`, which is stored, and `events.k8s.io/v1`. They expire.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Strategy, cells, check::Causes, format, text};
use crate::{
    error::Cause,
    registry::strategy::{Conversion, Selectable},
};

/// Event of the core group.
pub(super) static EVENT: Strategy = Strategy {
    selectable: &[
        Selectable::new("involvedObject.kind", "/involvedObject/kind"),
        Selectable::new("involvedObject.namespace", "/involvedObject/namespace"),
        Selectable::new("involvedObject.name", "/involvedObject/name"),
        Selectable::new("involvedObject.uid", "/involvedObject/uid"),
        Selectable::new("involvedObject.apiVersion", "/involvedObject/apiVersion"),
        Selectable::new("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
        Selectable::new("involvedObject.fieldPath", "/involvedObject/fieldPath"),
        Selectable::new("reason", "/reason"),
        Selectable::new("reportingComponent", "/reportingComponent"),
        // Events of the newer kind name their source elsewhere.
        Selectable {
            name: Cow::Borrowed("source"),
            pointer: Cow::Borrowed("/source/component"),
            otherwise: Some("/reportingComponent"),
            absent: "",
        },
        Selectable::new("type", "/type"),
    ],
    validate: |new, _| validate(new),
    creates_on_update: true,
    stored_group: Some(""),
    row: Some(row),
    after_write: |registry, event| registry.expiry.add(event),
    ..Strategy::PLAIN
};

/// Event of `events.k8s.io`.
pub(super) static MODERN_EVENT: Strategy = Strategy {
    selectable: EVENT.selectable,
    validate: |new, old| if old.is_none() { validate_modern(new) } else { Vec::new() },
    creates_on_update: true,
    conversion: Some(Conversion { show: to_modern, store: to_core, stored_field: core_field }),
    stored_group: Some(""),
    row: Some(row),
    after_write: EVENT.after_write,
    ..Strategy::PLAIN
};

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

/// A stored event as `events.k8s.io/v1` shows it.
fn to_modern(event: Value) -> Value {
    rename(event, "events.k8s.io/v1", |(core, modern)| (core, modern))
}

/// An event of `events.k8s.io/v1` as it is stored.
fn to_core(event: Value) -> Value {
    rename(event, "v1", |(core, modern)| (modern, core))
}

/// A field that `events.k8s.io/v1` names, as it is stored.
fn core_field(field: &str) -> Cow<'_, str> {
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

fn validate(new: &Value) -> Causes {
    let namespace = text(new, "/metadata/namespace");
    let about = text(new, "/involvedObject/namespace");
    let wrong = if about.is_empty() { namespace != "default" } else { about != namespace };
    if !wrong {
        return Vec::new();
    }
    vec![Cause::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace")]
}

fn validate_modern(event: &Value) -> Causes {
    let mut causes = Vec::new();
    if text(event, "/eventTime").is_empty() {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = text(event, "/type");
    if !matches!(kind, "Normal" | "Warning") {
        causes.push(Cause::invalid("type", &json!(""), format!("has invalid value: {kind}")));
    }
    causes
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, modern: &str| match text(object, core) {
        "" => text(object, modern).to_owned(),
        value => value.to_owned(),
    };
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp") {
        empty if empty.is_empty() => text(object, "/eventTime").to_owned(),
        first => first,
    };
    let last = [
        text(object, "/series/lastObservedTime").to_owned(),
        either("/lastTimestamp", "/deprecatedLastTimestamp"),
        first.clone(),
    ];
    let last = last.into_iter().find(|one| !one.is_empty()).unwrap_or_default();
    let count = ["/series/count", "/count", "/deprecatedCount"].map(|pointer| cells::number(object, pointer));
    let count = count.into_iter().find(|count| *count > 0).unwrap_or(1);
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let about = either("/involvedObject/name", "/regarding/name");
    let about = if about.is_empty() { kind } else { format!("{kind}/{about}") };
    vec![
        json!(format::age(&last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(about),
        json!(either("/involvedObject/fieldPath", "/regarding/fieldPath")),
        json!(source(object)),
        json!(either("/message", "/note").trim()),
        json!(format::age(&first, now)),
        json!(count),
        cells::name(object),
    ]
}

/// Who reports, and from where.
fn source(event: &Value) -> String {
    let first = |pointers: &[&str]| {
        pointers
            .iter()
            .map(|pointer| text(event, pointer))
            .find(|one| !one.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let who = first(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first(&["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    if host.is_empty() { who } else { format!("{who}, {host}") }
}
