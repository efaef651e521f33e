//! Bounds, lengths, patterns and enumerations.

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::{Number, Value};

use crate::schema::{
    FieldError,
    json::equal,
    node::{Kind, Limits, Node},
};

pub(super) fn string(limits: &Limits, text: &str, path: &str) -> Option<FieldError> {
    let length = text.chars().count() as u64;
    if let Some(limit) = limits.max_length
        && length > limit
    {
        return Some(FieldError::too_long(path, limit));
    }
    let value = || Value::String(text.to_owned());
    if let Some(limit) = limits.min_length
        && length < limit
    {
        let why = format!("{path} in body should be at least {limit} chars long");
        return Some(FieldError::invalid(path, &value(), &why));
    }
    let pattern = limits.pattern.as_ref()?;
    let why = match &pattern.compiled {
        Ok(regex) if regex.is_match(text) => return None,
        Ok(_) => format!("{path} in body should match '{}'", pattern.text),
        Err(problem) => {
            format!("{path} in body should match '{}, but pattern is invalid: {problem}'", pattern.text)
        }
    };
    Some(FieldError::invalid(path, &value(), &why))
}

pub(super) fn number(node: &Node, number: &Number, path: &str) -> Vec<FieldError> {
    let limits = &node.limits;
    let mut errors = Vec::new();
    errors.extend(range(node, number, path));
    if let Some(factor) = &limits.multiple_of {
        errors.extend(multiple(number, &bound(factor, number), path));
    }
    let value = Value::Number(number.clone());
    let mut fail = |words: &str, limit: &Number| {
        let why = format!("{path} in body should be {words} {}", shown(limit));
        errors.push(FieldError::invalid(path, &value, &why));
    };
    if let Some(limit) = limits.minimum.as_ref().map(|limit| bound(limit, number)) {
        match (compare(number, &limit), limits.exclusive_minimum) {
            (Ordering::Less, false) => fail("greater than or equal to", &limit),
            (Ordering::Less | Ordering::Equal, true) => fail("greater than", &limit),
            _ => {}
        }
    }
    if let Some(limit) = limits.maximum.as_ref().map(|limit| bound(limit, number)) {
        match (compare(number, &limit), limits.exclusive_maximum) {
            (Ordering::Greater, false) => fail("less than or equal to", &limit),
            (Ordering::Greater | Ordering::Equal, true) => fail("less than", &limit),
            _ => {}
        }
    }
    errors
}

/// Whether the number fits into what the format names.
fn range(node: &Node, number: &Number, path: &str) -> Option<FieldError> {
    if node.kind != Some(Kind::Integer) {
        return None;
    }
    let format = super::types::format_of(node);
    let whole = number.as_i64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        // Beyond this a float stands for no particular integer.
        (float.abs() < 9.2e18).then_some(float as i64)
    });
    let fits = match format {
        Some("int32") => whole.is_some_and(|value| i32::try_from(value).is_ok()),
        _ => whole.is_some(),
    };
    if fits {
        return None;
    }
    let why = match format {
        Some(format) => {
            format!("Checked value must be of type integer with format {format} in {path}")
        }
        None => format!("Checked value must be of type integer (default format) in {path}"),
    };
    Some(FieldError::invalid("", &Value::String(String::new()), &why))
}

/// A bound as the real server uses it beside this value: cut to an integer beside an integer.
fn bound(limit: &Number, value: &Number) -> Number {
    match limit.as_f64() {
        Some(float) if !value.is_f64() && !limit.is_i64() => Number::from(float as i64),
        _ => limit.clone(),
    }
}

fn shown(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

fn compare(number: &Number, limit: &Number) -> Ordering {
    if let (Some(number), Some(limit)) = (number.as_i64(), limit.as_i64()) {
        return number.cmp(&limit);
    }
    float(number).total_cmp(&float(limit))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn multiple(number: &Number, factor: &Number, path: &str) -> Option<FieldError> {
    if float(factor) <= 0.0 {
        let why = format!("factor MultipleOf declared for {path} must be positive: {}", shown(factor));
        return Some(FieldError::invalid(path, &Value::Number(factor.clone()), &why));
    }
    let holds = match (number.as_i64(), factor.as_i64()) {
        (Some(number), Some(factor)) => number % factor == 0,
        _ => {
            let (number, factor) = (float(number), float(factor));
            let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
            (times - times.round()).abs() < 1e-9
        }
    };
    if holds {
        return None;
    }
    let why = format!("{path} in body should be a multiple of {}", shown(factor));
    Some(FieldError::invalid(path, &Value::Number(number.clone()), &why))
}

pub(super) fn list(limits: &Limits, items: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let size = items.len() as u64;
    if let Some(limit) = limits.min_items
        && size < limit
    {
        let why = format!("{path} in body should have at least {limit} items");
        errors.push(FieldError::invalid(path, &size.into(), &why));
    }
    if let Some(limit) = limits.max_items
        && size > limit
    {
        errors.push(FieldError::too_many(path, items.len(), limit));
    }
    let mut seen = BTreeSet::new();
    if limits.unique_items && items.iter().any(|item| !seen.insert(item.to_string())) {
        let why = format!("{path} in body shouldn't contain duplicates");
        errors.push(FieldError::invalid(path, &Value::String(String::new()), &why));
    }
    errors
}

pub(super) fn object(limits: &Limits, size: usize, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(limit) = limits.min_properties
        && (size as u64) < limit
    {
        let why = format!("{path} in body should have at least {limit} properties");
        errors.push(FieldError::invalid(path, &size.into(), &why));
    }
    if let Some(limit) = limits.max_properties
        && size as u64 > limit
    {
        errors.push(FieldError::too_many(path, size, limit));
    }
    errors
}

pub(super) fn enumeration(node: &Node, value: &Value, path: &str) -> Option<FieldError> {
    let values = &node.limits.enumeration;
    // Null is in no enumeration, even one that lists it: the real server compares Go types.
    let listed = !value.is_null() && values.iter().any(|known| equal(known, value));
    if values.is_empty() || listed {
        return None;
    }
    let supported: Vec<String> =
        values.iter().map(|known| known.as_str().map_or_else(|| known.to_string(), str::to_owned)).collect();
    Some(FieldError::not_supported(path, value, &supported))
}
