//! What a schema says about one value: bounds, patterns, formats, words.

use serde_json::Value;

use super::Findings;
use crate::schema::{Schema, default, flag, is_int_or_string, items, text};

const CHECK: &str = "check the stored objects first, or loosen it again";

/// Compares two schemas of the same type, both in normal form.
pub(super) fn compare(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    enumeration(old, new, path, findings);
    numbers(old, new, path, findings);
    for (minimum, maximum, what) in [
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
        ("minProperties", "maxProperties", "properties"),
    ] {
        let least = |schema: &Schema| schema.get(minimum).and_then(Value::as_u64).unwrap_or(0);
        let most = |schema: &Schema| schema.get(maximum).and_then(Value::as_u64).unwrap_or(u64::MAX);
        if least(new) > least(old) {
            let message = format!(
                "at least {} {what} are wanted, where {} were: shorter values are refused",
                least(new),
                least(old)
            );
            findings.breaking(path, "BoundTightened", message, CHECK);
        }
        if most(new) < most(old) {
            let message = format!("at most {} {what} are allowed: longer values are refused", most(new));
            findings.breaking(path, "BoundTightened", message, CHECK);
        }
        if least(new) < least(old) || most(new) > most(old) {
            findings.info(path, "BoundLoosened", format!("more or fewer {what} are allowed than before"));
        }
    }
    if flag(new, "uniqueItems") && !flag(old, "uniqueItems") {
        findings.breaking(
            path,
            "BoundTightened",
            "items must differ: lists that repeat one are refused",
            CHECK,
        );
    }
    match (text(old, "pattern"), text(new, "pattern")) {
        (before, after) if before == after => {}
        (_, "") => findings.info(path, "PatternRemoved", "any text is allowed"),
        ("", after) => {
            findings.breaking(
                path,
                "PatternAdded",
                format!("values that do not match {after} are refused"),
                CHECK,
            );
        }
        (before, after) => {
            let message = format!(
                "the pattern was {before} and is {after}: values that match the first only are refused"
            );
            findings.breaking(path, "PatternChanged", message, CHECK);
        }
    }
    format(old, new, path, findings);
    nullable(old, new, path, findings);
}

fn enumeration(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    let (before, after) = (items(old, "enum"), items(new, "enum"));
    let list = |values: &[&Value]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if after.is_empty() {
        if !before.is_empty() {
            findings.warning(
                path,
                "EnumRemoved",
                "any value is allowed: clients may meet values they do not know",
                "",
            );
        }
        return;
    }
    if before.is_empty() {
        let message = format!("values other than {} are refused", list(&after.iter().collect::<Vec<_>>()));
        findings.breaking(path, "EnumAdded", message, CHECK);
        return;
    }
    let gone: Vec<&Value> = before.iter().filter(|value| !after.contains(value)).collect();
    let added: Vec<&Value> = after.iter().filter(|value| !before.contains(value)).collect();
    if !gone.is_empty() {
        let message = format!("{} is no longer allowed: objects that hold it are refused", list(&gone));
        findings.breaking(
            path,
            "EnumValueRemoved",
            message,
            "keep it, and treat it like the value that takes its place",
        );
    }
    if !added.is_empty() {
        let message = format!("{} is new: clients that know the old values only may meet it", list(&added));
        findings.warning(path, "EnumValueAdded", message, "let readers take a value that they do not know");
    }
}

fn numbers(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    let bound = |schema: &Schema, keyword: &str, exclusive: &str| {
        let value = schema.get(keyword).and_then(Value::as_f64)?;
        Some((value, flag(schema, exclusive)))
    };
    for (keyword, exclusive, sign) in
        [("minimum", "exclusiveMinimum", 1.0), ("maximum", "exclusiveMaximum", -1.0)]
    {
        let (before, after) = (bound(old, keyword, exclusive), bound(new, keyword, exclusive));
        let tighter = match (before, after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some((before, open)), Some((after, closed))) => {
                let order = (after * sign).total_cmp(&(before * sign));
                order.is_gt() || (order.is_eq() && closed && !open)
            }
        };
        if tighter {
            let limit = &new[keyword];
            let message = format!("the {keyword} is {limit}: values beyond it are refused");
            findings.breaking(path, "BoundTightened", message, CHECK);
        } else if before != after {
            findings.info(path, "BoundLoosened", format!("the {keyword} is looser or gone"));
        }
    }
    if let Some(after) = new.get("multipleOf").and_then(Value::as_f64) {
        let before = old.get("multipleOf").and_then(Value::as_f64);
        let divides = before.is_some_and(|before| after != 0.0 && (before / after).fract() == 0.0);
        if !divides {
            findings.breaking(path, "BoundTightened", format!("values must be multiples of {after}"), CHECK);
        }
    }
}

fn format(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    let (before, after) = (text(old, "format"), text(new, "format"));
    // In normal form the widest number has no format.
    if before == after || is_int_or_string(new) {
        return;
    }
    if after.is_empty() {
        let what = if text(new, "type") == "string" { "any text" } else { "a wider number" };
        findings.warning(
            path,
            "FormatRemoved",
            format!("{what} is allowed: clients may not be able to hold it"),
            "",
        );
        return;
    }
    let was = if before.is_empty() { "there was none".to_owned() } else { format!("it was {before}") };
    let message = format!("the format is {after} ({was}): values of another form are refused, or do not fit");
    findings.breaking(path, "FormatChanged", message, CHECK);
}

fn nullable(old: &Schema, new: &Schema, path: &str, findings: &mut Findings) {
    match (flag(old, "nullable"), flag(new, "nullable")) {
        (true, false) => {
            let instead = if default(new).is_some() { "null becomes the default" } else { "null is refused" };
            findings.breaking(path, "NullableRemoved", format!("{instead}: objects may hold it"), CHECK);
        }
        (false, true) => {
            let message = "null is allowed: clients that expect a value may meet it";
            findings.warning(path, "NullableAdded", message, "");
        }
        _ => {}
    }
}
