//! The rules that many kinds share, in the words that all of them use.

use serde_json::{Value, json};

use crate::registry::resource::text;
use crate::{
    error::Cause,
    registry::metadata::{NameRule, label_value_errors, name_errors, qualified_name_errors},
};

/// What is wrong so far.
pub(in crate::registry) type Causes = Vec<Cause>;

/// `spec.replicas` from `spec` and `replicas`.
pub(in crate::registry) fn at(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// The elements of a list in an object.
pub(in crate::registry) fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of a map in an object.
pub(in crate::registry) fn entries<'a>(
    object: &'a Value,
    field: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    object.get(field).and_then(Value::as_object).into_iter().flatten()
}

/// Numbers that count something cannot be negative.
pub(in crate::registry) fn non_negative(causes: &mut Causes, object: &Value, path: &str, fields: &[&str]) {
    for field in fields {
        if let Some(number) = object.get(*field).and_then(Value::as_i64).filter(|number| *number < 0) {
            causes.push(Cause::invalid(
                at(path, field),
                &json!(number),
                "must be greater than or equal to 0",
            ));
        }
    }
}

/// A value that is there must be one of these.
pub(in crate::registry) fn one_of(
    causes: &mut Causes,
    object: &Value,
    path: &str,
    field: &str,
    allowed: &[&str],
) {
    if let Some(value) = object.get(field).and_then(Value::as_str)
        && !allowed.contains(&value)
    {
        causes.push(Cause::not_supported(at(path, field), value, allowed));
    }
}

/// A value that must be there and one of these.
pub(in crate::registry) fn required_one_of(
    causes: &mut Causes,
    object: &Value,
    path: &str,
    field: &str,
    allowed: &[&str],
) {
    if text(object, &format!("/{field}")).is_empty() {
        causes.push(Cause::required(at(path, field), ""));
    } else {
        one_of(causes, object, path, field, allowed);
    }
}

/// A string that must be there.
pub(in crate::registry) fn required(causes: &mut Causes, object: &Value, path: &str, field: &str) {
    if text(object, &format!("/{field}")).is_empty() {
        causes.push(Cause::required(at(path, field), ""));
    }
}

/// A field that stays as it was created.
pub(in crate::registry) fn immutable(causes: &mut Causes, new: &Value, old: &Value, path: &str, field: &str) {
    let (now, before) = (new.get(field), old.get(field));
    if now != before {
        let value = now.unwrap_or(&Value::Null);
        causes.push(Cause::invalid(at(path, field), value, "field is immutable"));
    }
}

/// The same where a type declares it of itself: the value is not told.
pub(in crate::registry) fn fixed(causes: &mut Causes, new: &Value, old: &Value, path: &str, field: &str) {
    if new.get(field) != old.get(field) {
        causes.push(Cause::invalid(at(path, field), &Value::Null, "field is immutable"));
    }
}

/// A name inside an object.
pub(in crate::registry) fn name(causes: &mut Causes, value: &str, path: impl Into<String>, rule: NameRule) {
    let path = path.into();
    let wrong = name_errors(value, rule).into_iter();
    causes.extend(wrong.map(|why| Cause::invalid(path.clone(), &json!(value), why)));
}

/// A number or a percentage.
pub(in crate::registry) fn int_or_percent(causes: &mut Causes, value: &Value, path: &str) {
    match value {
        Value::String(text) if percent(text).is_none() => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                       '93%', regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid(path, value, why));
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            causes.push(Cause::invalid(path, value, "must be greater than or equal to 0"));
        }
        _ => {}
    }
}

/// A percentage of a whole.
pub(in crate::registry) fn not_above_all(causes: &mut Causes, value: &Value, path: &str) {
    if value.as_str().and_then(percent).is_some_and(|percent| percent > 100) {
        causes.push(Cause::invalid(path, value, "must not be greater than 100%"));
    }
}

pub(in crate::registry) fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The number in a number or percentage.
pub(in crate::registry) fn amount(value: &Value) -> i64 {
    match value {
        Value::String(text) => percent(text).map_or(0, |percent| percent as i64),
        other => other.as_i64().unwrap_or(0),
    }
}

/// A map of labels.
pub(in crate::registry) fn labels(causes: &mut Causes, object: &Value, path: &str, field: &str) {
    for (key, value) in entries(object, field) {
        qualified(causes, key, at(path, field));
        label_value(causes, value.as_str().unwrap_or_default(), at(path, field));
    }
}

/// A qualified name, such as the key of a label.
pub(in crate::registry) fn qualified(causes: &mut Causes, name: &str, path: impl Into<String>) {
    let path = path.into();
    let wrong = qualified_name_errors(name).into_iter();
    causes.extend(wrong.map(|why| Cause::invalid(path.clone(), &json!(name), why)));
}

/// The value of a label.
pub(in crate::registry) fn label_value(causes: &mut Causes, value: &str, path: impl Into<String>) {
    let path = path.into();
    let wrong = label_value_errors(value).into_iter();
    causes.extend(wrong.map(|why| Cause::invalid(path.clone(), &json!(value), why)));
}

/// A structured selector.
pub(in crate::registry) fn selector(causes: &mut Causes, selector: &Value, path: &str) {
    labels(causes, selector, path, "matchLabels");
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let place = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, "values");
        match text(expression, "/operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(at(&place, "values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(at(&place, "values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => causes.push(Cause::invalid(
                at(&place, "operator"),
                expression.get("operator").unwrap_or(&json!("")),
                "not a valid selector operator",
            )),
        }
        qualified(causes, text(expression, "/key"), at(&place, "key"));
        for (index, value) in values.iter().enumerate() {
            label_value(causes, value.as_str().unwrap_or_default(), format!("{place}.values[{index}]"));
        }
    }
}

/// Whether a structured selector can be read at all.
pub(in crate::registry) fn is_selector(selector: &Value) -> bool {
    let mut causes = Vec::new();
    self::selector(&mut causes, selector, "");
    causes.is_empty()
}

/// Whether a structured selector matches labels. One that is not there matches nothing.
pub(in crate::registry) fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let holds = |expression: &Value| {
        let value = label(text(expression, "/key"));
        let listed = value.is_some_and(|value| list(expression, "values").iter().any(|one| one == value));
        match text(expression, "/operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    entries(selector, "matchLabels").all(|(key, value)| label(key).is_some() && label(key) == value.as_str())
        && list(selector, "matchExpressions").iter().all(holds)
}

/// Whether the selector says nothing.
pub(in crate::registry) fn is_empty(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none() && list(selector, "matchExpressions").is_empty()
}

/// A value that is there twice.
pub(in crate::registry) fn duplicate(field: impl Into<String>, value: &str) -> Cause {
    Cause {
        reason: "FieldValueDuplicate".into(),
        message: format!("Duplicate value: {}", json!(value)),
        field: field.into(),
    }
}

/// A range of addresses.
pub(in crate::registry) fn cidr(causes: &mut Causes, text: &str, path: impl Into<String>) {
    let parsed = text.split_once('/').and_then(|(address, bits)| {
        let address: std::net::IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let plain = !bits.is_empty() && bits.len() < 4 && bits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| bits.parse::<u32>().ok()).flatten().filter(|bits| *bits <= most)
    });
    if parsed.is_none() {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        causes.push(Cause::invalid(path, &json!(text), why));
    }
}

/// The number of a port.
pub(in crate::registry) fn port(causes: &mut Causes, port: i64, path: impl Into<String>) {
    if !(1..=65_535).contains(&port) {
        causes.push(Cause::invalid(path, &json!(port), "must be between 1 and 65535, inclusive"));
    }
}

/// An address of either version.
pub(in crate::registry) fn address(causes: &mut Causes, text: &str, path: impl Into<String>) {
    if text.parse::<std::net::IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(Cause::invalid(path, &json!(text), why));
    }
}
