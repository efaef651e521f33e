//! Two schemas of the same version: what was valid and is so no longer, what is pruned, what is filled in.

use serde_json::Value;

use super::{Finding, Findings, bounds};
use crate::schema::{
    Schema, child, default, flag, is_int_or_string, items, normal, preserves, properties, strings, text,
};

const KEEP: &str = "keep the field, and stop using it; remove it with a new version and a conversion";
const MIGRATE: &str = "add another field, or a new version with a conversion";

/// Compares two `openAPIV3Schema`s.
pub fn schemas(old: &Schema, new: &Schema) -> Vec<Finding> {
    let mut findings = Findings::default();
    compare_roots(old, new, &mut findings);
    findings.found.sort_by_key(|finding| finding.severity);
    findings.found
}

pub(super) fn compare_roots(old: &Schema, new: &Schema, findings: &mut Findings) {
    let whole = |schema: &Schema| {
        let mut schema = normal(schema);
        // Every object has them, whether the schema says so or not.
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for name in ["apiVersion", "kind"] {
                properties.remove(name);
            }
            if properties
                .get("metadata")
                .is_some_and(|metadata| *metadata == serde_json::json!({"type": "object"}))
            {
                properties.remove("metadata");
            }
        }
        schema
    };
    compare(&whole(old), &whole(new), "", false, findings);
}

/// What an object may hold under one name.
enum Field<'s> {
    Typed(&'s Schema),
    /// Anything at all.
    Free,
    /// Nothing: it is pruned.
    Pruned,
}

fn field<'s>(schema: &'s Schema, name: &str) -> Field<'s> {
    if let Some(property) =
        child(schema, "properties").and_then(|properties| properties.get(name)?.as_object())
    {
        return Field::Typed(property);
    }
    rest(schema)
}

/// What an object may hold under names that the schema does not name.
fn rest(schema: &Schema) -> Field<'_> {
    match schema.get("additionalProperties") {
        Some(Value::Object(additional)) => Field::Typed(additional),
        Some(Value::Bool(true)) => Field::Free,
        _ if preserves(schema) => Field::Free,
        _ => Field::Pruned,
    }
}

/// Whether anything but null is allowed, and kept.
fn is_free(schema: &Schema) -> bool {
    let says =
        |keyword: &str| !matches!(keyword, "x-kubernetes-preserve-unknown-fields" | "nullable" | "default");
    preserves(schema) && !schema.keys().any(|keyword| says(keyword))
}

/// Compares two schemas in normal form. `judged` says whether something above looks at the value as a whole, so that a
/// default that appears or goes may matter.
fn compare(old: &Schema, new: &Schema, path: &str, judged: bool, findings: &mut Findings) {
    if old == new {
        return;
    }
    if !kinds(old, new, path, findings) {
        return;
    }
    bounds::compare(old, new, path, findings);
    combinations(old, new, path, findings);
    rules(old, new, path, findings);
    topology(old, new, path, findings);
    unknown(old, new, path, findings);
    let judged =
        judged || ["allOf", "anyOf", "oneOf", "not"].iter().any(|keyword| new.contains_key(*keyword));
    let counted = judged || new.contains_key("maxProperties") || new.contains_key("minProperties");
    fields(old, new, path, counted, judged, findings);
    additional(old, new, path, judged, findings);
    match (child(old, "items"), child(new, "items")) {
        (Some(before), Some(after)) => compare(before, after, &format!("{path}[]"), judged, findings),
        (None, Some(_)) => {
            let path = format!("{path}[]");
            findings.breaking(
                &path,
                "TypeChanged",
                "items had no type and have one: others are refused",
                MIGRATE,
            );
        }
        _ => {}
    }
}

/// Whether values of both are of the same kind, so that more can be said.
fn kinds(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) -> bool {
    let kind = |schema: &Schema| {
        if is_int_or_string(schema) { "int-or-string".to_owned() } else { text(schema, "type").to_owned() }
    };
    let (before, after) = (kind(old), kind(new));
    if before == after {
        return true;
    }
    let shown = |kind: &str| if kind.is_empty() { "of any type".to_owned() } else { kind.to_owned() };
    let what = format!("it was {} and is {}", shown(&before), shown(&after));
    let wider = match (before.as_str(), after.as_str()) {
        ("integer", "number") | ("integer" | "string", "int-or-string") => true,
        (_, "") => is_free(new),
        _ => false,
    };
    if !wider {
        findings.breaking(
            path,
            "TypeChanged",
            format!("{what}: objects that hold the old one are refused"),
            MIGRATE,
        );
        return false;
    }
    let message = format!("{what}: clients that know the old type may meet what they cannot read");
    findings.warning(path, "TypeWidened", message, MIGRATE);
    true
}

fn combinations(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    for keyword in ["allOf", "anyOf", "oneOf", "not"] {
        match (old.get(keyword), new.get(keyword)) {
            (before, after) if before == after => {}
            (Some(_), None) => findings.info(path, "CombinationRemoved", format!("{keyword} is gone")),
            _ => {
                let message = format!("{keyword} is new or changed: objects that were valid may be refused");
                findings.breaking(
                    path,
                    "CombinationChanged",
                    message,
                    "check the stored objects against it first",
                );
            }
        }
    }
}

fn rules(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    let rule = |rule: &Value| rule["rule"].as_str().unwrap_or_default().trim().to_owned();
    let keyword = "x-kubernetes-validations";
    for after in items(new, keyword) {
        match items(old, keyword).iter().find(|before| rule(before) == rule(after)) {
            None => findings.breaking(
                path,
                "RuleAdded",
                format!("the rule {:?} is new: objects that break it are refused", rule(after)),
                "check the stored objects against it first; what is not touched by an update is let through",
            ),
            Some(before) if before.get("optionalOldSelf") != after.get("optionalOldSelf") => {
                let message = format!("the rule {:?} is applied at other times", rule(after));
                findings.breaking(path, "RuleChanged", message, "check what clients create and update");
            }
            Some(before) if before != after => {
                findings.info(
                    path,
                    "RuleMessageChanged",
                    format!("the rule {:?} speaks in other words", rule(after)),
                );
            }
            Some(_) => {}
        }
    }
    for before in items(old, keyword) {
        if items(new, keyword).iter().all(|after| rule(after) != rule(before)) {
            findings.info(path, "RuleRemoved", format!("the rule {:?} is gone", rule(before)));
        }
    }
}

/// How writers of a list or a map meet.
fn topology(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    let list = |schema: &Schema| match text(schema, "x-kubernetes-list-type") {
        "" => "atomic".to_owned(),
        "map" => format!("map by {}", strings(schema, "x-kubernetes-list-map-keys").join(", ")),
        other => other.to_owned(),
    };
    let (before, after) = (list(old), list(new));
    if before != after {
        let what = format!("the list was {before} and is {after}");
        if after == "atomic" {
            let message = format!("{what}: whoever applies it takes the whole list");
            findings.warning(path, "ListTypeChanged", message, "see who else applies items of it");
        } else {
            let message = format!("{what}: lists with items that are now the same are refused");
            findings.breaking(
                path,
                "ListTypeChanged",
                message,
                "check the stored objects for such items first",
            );
        }
    }
    let map = |schema: &Schema| text(schema, "x-kubernetes-map-type").to_owned();
    if map(old) != map(new) {
        let message = "whoever applies it takes all of it, or only the fields that they name, unlike before";
        findings.warning(path, "MapTypeChanged", message, "see who else applies fields of it");
    }
}

/// Whether what the schema does not name is kept.
fn unknown(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    let embedded = "x-kubernetes-embedded-resource";
    if flag(old, embedded) != flag(new, embedded) {
        let message =
            "it was a whole object or is one now: apiVersion, kind and metadata are wanted, or pruned";
        findings.breaking(path, "EmbeddedResourceChanged", message, MIGRATE);
    }
    if preserves(old) && !preserves(new) {
        findings.breaking(
            path,
            "PreserveUnknownFieldsRemoved",
            "unknown fields were kept and are pruned: what the schema does not name is lost at the next write",
            "name every field that objects hold",
        );
    }
    if !preserves(old) && preserves(new) {
        findings.warning(path, "PreserveUnknownFieldsAdded", "unknown fields are kept and not checked", "");
    }
}

/// The named properties of both. `counted` says whether one more or less of them matters to the object.
fn fields(old: &Schema, new: &Schema, path: &str, counted: bool, judged: bool, findings: &mut Findings) {
    for (name, before) in properties(old) {
        let path = format!("{path}.{name}");
        match field(new, name) {
            Field::Typed(after) => {
                defaults(before, after, &path, counted, findings);
                compare(before, after, &path, judged, findings);
            }
            Field::Free => {
                findings.warning(&path, "FieldRemoved", "it is no longer checked, and still kept", "");
            }
            Field::Pruned => {
                let message = "it is gone: what objects hold there is pruned at the next write";
                findings.breaking(&path, "FieldRemoved", message, KEEP);
            }
        }
    }
    let known = child(old, "properties");
    for (name, after) in properties(new) {
        if known.is_some_and(|known| known.contains_key(name)) {
            continue;
        }
        let path = format!("{path}.{name}");
        match rest(old) {
            Field::Typed(before) => {
                defaults(before, after, &path, counted, findings);
                compare(before, after, &path, judged, findings);
            }
            Field::Free if !is_free(after) || !flag(after, "nullable") => {
                let message = "it was kept as it was and has a schema now: objects that hold something else are refused";
                findings.breaking(&path, "FieldAdded", message, "check the stored objects first");
            }
            Field::Free | Field::Pruned => {
                defaults(&Schema::new(), after, &path, counted, findings);
                findings.info(&path, "FieldAdded", "it is new");
            }
        }
    }
    let required =
        |schema: &Schema| strings(schema, "required").into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (required(old), required(new));
    for name in after.iter().filter(|name| !before.contains(name)) {
        findings.breaking(
            &format!("{path}.{name}"),
            "RequiredAdded",
            "it is required and has no default: objects without it are refused",
            "give it a default, or leave it optional",
        );
    }
    for name in before.iter().filter(|name| !after.contains(name)) {
        let message =
            "it may be missing, or is filled in: clients that expect it from others may not find it";
        findings.info(&format!("{path}.{name}"), "RequiredRemoved", message);
    }
}

fn defaults(old: &Schema, new: &Schema, path: &str, counted: bool, findings: &mut Findings) {
    let (reason, message) = match (default(old), default(new)) {
        (None, None) => return,
        (Some(before), Some(after)) if before == after => return,
        (None, Some(after)) => ("DefaultAdded", format!("objects without it get {after}")),
        (Some(before), None) => ("DefaultRemoved", format!("objects without it no longer get {before}")),
        (Some(before), Some(after)) => {
            ("DefaultChanged", format!("objects without it get {after}, where they got {before}"))
        }
    };
    if counted {
        let message =
            format!("{message}, and something above counts or weighs its fields: objects may be refused");
        findings.breaking(path, reason, message, "check objects without the field against the new schema");
    } else {
        findings.warning(path, reason, message, "set it in objects that must stay as they are");
    }
}

fn additional(old: &Schema, new: &Schema, path: &str, judged: bool, findings: &mut Findings) {
    // That unknown fields are kept or pruned has been told.
    let told = match (preserves(old), preserves(new)) {
        (true, false) => true,
        (false, true) => matches!(rest(old), Field::Pruned),
        _ => false,
    };
    if told {
        return;
    }
    let path = format!("{path}.*");
    match (rest(old), rest(new)) {
        (Field::Typed(before), Field::Typed(after)) => compare(before, after, &path, judged, findings),
        (Field::Typed(_) | Field::Free, Field::Pruned) => {
            let message = "other names were allowed and are not: what objects hold under them is pruned";
            findings.breaking(&path, "AdditionalPropertiesClosed", message, KEEP);
        }
        (Field::Free, Field::Typed(_)) => {
            let message =
                "anything was allowed under other names and has a schema now: what does not fit is refused";
            findings.breaking(&path, "AdditionalPropertiesTyped", message, "check the stored objects first");
        }
        (Field::Pruned, Field::Typed(_) | Field::Free) => {
            findings.info(&path, "AdditionalPropertiesOpened", "other names are allowed");
        }
        (Field::Typed(_), Field::Free) => {
            findings.warning(
                &path,
                "AdditionalPropertiesFreed",
                "values under other names are no longer checked",
                "",
            );
        }
        _ => {}
    }
}
