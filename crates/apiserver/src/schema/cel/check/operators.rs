//! Which operators are for which types, and what they make of them.

use super::Type;

pub(super) fn is_in(item: &Type<'_>, range: &Type<'_>) -> bool {
    match range {
        Type::Dyn | Type::Unknown => true,
        Type::List(of) => item.fits(of),
        Type::Map(key, _) => item.fits(key),
        _ => false,
    }
}

pub(super) fn are_ordered(one: &Type<'_>, other: &Type<'_>) -> bool {
    let ordered = matches!(one, Type::Bool | Type::Text | Type::Bytes | Type::Timestamp | Type::Duration);
    one.is_number() && other.is_number() || ordered && one == other
}

/// What an operator makes of two values of which one may be anything: what it makes of all that it could be, if that
/// is one type.
pub(super) fn guessed<'a>(operator: &str, one: &Type<'a>, other: &Type<'a>) -> Option<Type<'a>> {
    use Type::{Bytes, Double, Duration, Dyn, Int, List, Text, Timestamp, Uint};
    if let ("+", (List(_), Dyn) | (Dyn, List(_))) = (operator, (one, other)) {
        return Some(if *one == Dyn { other.clone() } else { one.clone() });
    }
    let all = [Int, Uint, Double, Text, Bytes, Timestamp, Duration, Type::list(Dyn)];
    let mut given: Option<Type<'a>> = None;
    for left in all.iter().filter(|left| left.fits(one)) {
        for right in all.iter().filter(|right| right.fits(other)) {
            match (computed(operator, left, right), &given) {
                (None, _) => {}
                (Some(new), None) => given = Some(new),
                (Some(new), Some(before)) if new != *before => return Some(Dyn),
                (Some(_), Some(_)) => {}
            }
        }
    }
    given
}

/// What an operator makes of two values; `None` if it is not for them.
pub(super) fn computed<'a>(operator: &str, one: &Type<'a>, other: &Type<'a>) -> Option<Type<'a>> {
    use Type::{Bytes, Double, Duration, Int, List, Text, Timestamp, Uint};
    match (operator, one, other) {
        ("+" | "-" | "*" | "/" | "%", Int, Int) | ("+" | "-" | "*" | "/" | "%", Uint, Uint) => {
            Some(one.clone())
        }
        ("+" | "-" | "*" | "/", Double, Double) | ("+", Text, Text) | ("+", Bytes, Bytes) => {
            Some(one.clone())
        }
        ("+", List(_), List(_)) if one.fits(other) => Some(one.clone().joined(other.clone())),
        ("+" | "-", Timestamp, Duration) | ("+", Duration, Timestamp) => Some(Timestamp),
        ("+" | "-", Duration, Duration) | ("-", Timestamp, Timestamp) => Some(Duration),
        _ => None,
    }
}
