//! Label selectors: a `LabelSelector` and an object's labels enter, whether they match leaves.

use std::collections::BTreeMap;

use windlass::{
    apimachinery::labels::{Operator, Selector},
    k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

type Labels = BTreeMap<String, String>;

/// Whether labels match a selector. An empty selector matches everything, as in Kubernetes.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    contains(selector.match_labels.as_ref(), labels)
        && selector.match_expressions.iter().flatten().all(|requirement| holds(requirement, labels))
}

/// Whether labels contain all of the wanted ones.
pub(crate) fn contains(wanted: Option<&Labels>, labels: Option<&Labels>) -> bool {
    wanted.into_iter().flatten().all(|(key, value)| label(labels, key) == Some(value))
}

/// Whether a selector has no requirement at all.
pub(crate) fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// Whether labels match a selector that is text: `app=web,tier in (a,b),!old`. Text that is no selector matches nothing.
pub(crate) fn matches_text(text: &str, labels: Option<&Labels>) -> bool {
    Selector::parse(text).is_ok_and(|selector| selector.matches_map(labels))
}

fn label<'a>(labels: Option<&'a Labels>, key: &str) -> Option<&'a String> {
    labels.and_then(|labels| labels.get(key))
}

fn holds(requirement: &LabelSelectorRequirement, labels: Option<&Labels>) -> bool {
    let value = label(labels, &requirement.key).map(String::as_str);
    let values = requirement.values.as_deref().unwrap_or_default();
    let operator = Operator::of_label_selector(&requirement.operator);
    operator.is_some_and(|operator| operator.matches(value, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: Some(values.iter().map(|value| (*value).to_owned()).collect()),
            }]),
            match_labels: None,
        }
    }

    #[test]
    fn every_operator_decides_as_kubernetes_does() {
        let present = labels(&[("app", "web")]);
        let cases = [
            (expression("app", "In", &["web", "db"]), true, false),
            (expression("app", "In", &["db"]), false, false),
            (expression("app", "NotIn", &["db"]), true, true),
            (expression("app", "NotIn", &["web"]), false, true),
            (expression("app", "Exists", &[]), true, false),
            (expression("app", "DoesNotExist", &[]), false, true),
        ];
        for (selector, with_label, without) in cases {
            assert_eq!(matches(&selector, Some(&present)), with_label, "{selector:?}");
            assert_eq!(matches(&selector, None), without, "{selector:?}");
        }
    }

    #[test]
    fn selectors_are_understood_as_text() {
        let present = labels(&[("app", "web"), ("tier", "b")]);
        for (text, expected) in [
            ("app=web", true),
            ("app==web,tier in (a, b)", true),
            ("app=web,tier notin (a,b)", false),
            ("app!=db,tier,!old", true),
            ("app=db", false),
            ("tier unlike (a)", false),
        ] {
            assert_eq!(matches_text(text, Some(&present)), expected, "{text}");
        }
    }

    #[test]
    fn all_match_labels_must_be_there() {
        let selector =
            LabelSelector { match_labels: Some(labels(&[("a", "1"), ("b", "2")])), match_expressions: None };
        assert!(matches(&selector, Some(&labels(&[("a", "1"), ("b", "2"), ("c", "3")]))));
        assert!(!matches(&selector, Some(&labels(&[("a", "1")]))));
        assert!(matches(&LabelSelector::default(), None));
        assert!(is_empty(&LabelSelector::default()) && !is_empty(&selector));
    }
}
