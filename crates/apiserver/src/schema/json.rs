//! Equality, order and text of JSON values, where Go's ideas of them differ from serde's.
//!
//! `1` and `1.0` are the same number here, and any two values have an order, because list items
//! are told apart and sorted by their values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two values mean the same.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, l)| right.get(key).is_some_and(|r| equal(l, r)))
        }
        _ => left == right,
    }
}

/// What lies at a path such as `/metadata/name`. Unlike [`Value::pointer`], which makes two texts of each segment to
/// take back escapes, this makes none where there is no escape: paths are looked up many times a request.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.contains('~') {
        return value.pointer(path);
    }
    let mut segments = path.split('/');
    // What stands before the first slash.
    segments.next();
    segments.try_fold(value, |value, segment| match value {
        Value::Object(map) => map.get(segment),
        Value::Array(list) => list.get(segment.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A total order over values: numbers, then strings, booleans, lists, maps, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let items = left.iter().zip(right).map(|(l, r)| compare(l, r));
            first_difference(items).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let entries =
                left.iter().zip(right).map(|((lk, lv), (rk, rv))| lk.cmp(rk).then_with(|| compare(lv, rv)));
            first_difference(entries).then(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn first_difference(mut orderings: impl Iterator<Item = Ordering>) -> Ordering {
    orderings.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    if let (Some(left), Some(right)) = (left.as_u64(), right.as_u64()) {
        return left.cmp(&right);
    }
    let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
    float(left).total_cmp(&float(right))
}

/// JSON as Go writes it by default: safe inside HTML. These characters occur only inside strings.
pub(crate) fn escaped(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// A value as error messages quote it: strings plainly quoted, everything else as Go's JSON.
pub(crate) fn quoted(value: &Value) -> String {
    match value {
        Value::String(_) => value.to_string(),
        other => escaped(other),
    }
}

/// About how long the value is when it is encoded.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>() + 2,
        Value::Array(list) => list.iter().map(|value| size(value) + 1).sum::<usize>() + 2,
        Value::String(text) => text.len() + 2,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_float_equals_its_integer() {
        assert!(equal(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert!(!equal(&json!(1), &json!("1")));
    }

    #[test]
    fn numbers_sort_by_value_and_before_strings() {
        assert_eq!(compare(&json!(80), &json!(443)), Ordering::Less);
        assert_eq!(compare(&json!(443), &json!("a")), Ordering::Less);
        assert_eq!(compare(&json!([1, 2]), &json!([1])), Ordering::Greater);
    }
}
