//! The order of versions, and whether a definition may have the names that it asks for.

use std::cmp::Ordering;

use serde_json::Value;

use super::super::resource::text;

/// `v2` before `v1` before `v1beta2` before `v1beta1` before `v1alpha1` before everything else by name.
pub(super) fn by_priority(one: &str, other: &str) -> Ordering {
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => other.cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Maturity (alpha, beta, stable), major and minor.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let major = rest[..digits].parse().ok()?;
    let rest = &rest[digits..];
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (maturity, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (_, Some(minor)) => (0, minor),
        _ => return None,
    };
    Some((maturity, major, minor.parse().ok()?))
}

/// Why the definition may not have its names, given those of the same group that were there before it.
pub(super) fn conflict(definition: &Value, others: &[&Value]) -> Option<(&'static str, String)> {
    let names = &definition["spec"]["names"];
    let taken = |pointer: &str, value: &str| {
        others.iter().any(|other| text(other, &format!("/status/acceptedNames{pointer}")) == value)
    };
    let fields = [("/plural", "PluralConflict"), ("/singular", "SingularConflict")];
    for (pointer, reason) in fields {
        let value = text(names, pointer);
        if taken("/plural", value) || taken("/singular", value) {
            return Some((reason, format!("\"{value}\" is already in use")));
        }
    }
    for (pointer, reason) in [("/kind", "KindConflict"), ("/listKind", "ListKindConflict")] {
        let value = text(names, pointer);
        if taken("/kind", value) || taken("/listKind", value) {
            return Some((reason, format!("\"{value}\" is already in use")));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_of_versions_is_total(all in prop::collection::vec("(v[0-9]{1,20}((alpha|beta)[0-9]{0,2})?|[a-z0-9]{0,4})", 3)) {
            let order = |one: usize, other: usize| by_priority(&all[one], &all[other]);
            prop_assert_eq!(order(0, 1), order(1, 0).reverse());
            prop_assert_eq!(order(0, 1).is_eq(), all[0] == all[1] || parse(&all[0]).is_some() && parse(&all[0]) == parse(&all[1]));
            if order(0, 1).is_le() && order(1, 2).is_le() {
                prop_assert!(order(0, 2).is_le());
            }
        }
    }

    #[test]
    fn stable_versions_come_first() {
        let mut versions =
            vec!["foo1", "v1alpha1", "v10", "v1beta2", "v2", "v1beta10", "v1", "v11alpha2", "foo10"];
        versions.sort_by(|one, other| by_priority(one, other));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v1beta10", "v1beta2", "v11alpha2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
