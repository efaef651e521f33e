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

/// By value, exactly: as floats, numbers that differ could be alike, and then there would be no order among three.
fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_with_float(left, float(right)),
        (None, Some(right)) => compare_with_float(right, float(left)).reverse(),
        (None, None) => {
            let (left, right) = (float(left), float(right));
            left.partial_cmp(&right).unwrap_or_else(|| left.total_cmp(&right))
        }
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

#[expect(clippy::cast_possible_truncation, reason = "a float without its fraction, far within the range")]
fn compare_with_float(whole: i128, float: f64) -> Ordering {
    // Beyond every whole number that JSON has here.
    if float.abs() >= 1e30 {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let fraction = float - float.trunc();
    whole
        .cmp(&(float.trunc() as i128))
        .then_with(|| 0.0_f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal))
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
    use proptest::prelude::*;
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

    /// Numbers at the places where whole numbers and floats part, and other values.
    fn some_value() -> impl Strategy<Value = Value> {
        let near = prop::sample::select(vec![0_i128, 1 << 53, 1 << 62, 1 << 63, -(1 << 53), -(1 << 63)]);
        let number = (near, -3..=3_i128, prop::sample::select(vec![0.0, -0.0, 0.5, 1.0, 1024.0]))
            .prop_flat_map(|(near, by, more)| {
                let whole = near + by;
                let as_whole =
                    i64::try_from(whole).map(Value::from).or_else(|_| u64::try_from(whole).map(Value::from));
                let as_float = json!(near as f64 + more);
                prop::sample::select(vec![as_whole.unwrap_or_else(|_| as_float.clone()), as_float])
            });
        let other = prop::sample::select(vec![
            json!(null),
            json!("a"),
            json!("b"),
            json!(true),
            json!([]),
            json!({}),
        ]);
        let one = prop_oneof![6 => number, 1 => other];
        one.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| map.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_order_of_values_is_total(a in some_value(), b in some_value(), c in some_value()) {
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            let (ab, bc, ac) = (compare(&a, &b), compare(&b, &c), compare(&a, &c));
            if ab.is_le() && bc.is_le() {
                prop_assert!(ac.is_le(), "{} <= {} <= {}", a, b, c);
                prop_assert_eq!(ac.is_eq(), ab.is_eq() && bc.is_eq(), "{} <= {} <= {}", a, b, c);
            }
        }
    }
}
