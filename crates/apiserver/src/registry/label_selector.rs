//! Label selectors as objects write them: `matchLabels` and `matchExpressions`.

use serde::Deserialize;
use serde_json::Value;

/// A selector.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LabelSelector {
    match_labels: std::collections::BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl LabelSelector {
    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether the labels of an object match.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.matches_by(&|key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
    }

    /// Whether labels match that are known by this function.
    pub(crate) fn matches_by<'a>(&self, value: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels.iter().all(|(key, wanted)| value(key) == Some(wanted))
            && self.match_expressions.iter().all(|one| {
                let found = value(&one.key);
                let listed = found.is_some_and(|found| one.values.iter().any(|value| value == found));
                match one.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    _ => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_match_as_in_the_api() {
        let object = json!({"metadata": {"labels": {"app": "web"}}});
        let matches =
            |selector: Value| serde_json::from_value::<LabelSelector>(selector).unwrap().matches(&object);
        let one = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        assert!(matches(json!({})));
        assert!(matches(json!({"matchLabels": {"app": "web"}})));
        assert!(!matches(json!({"matchLabels": {"app": "db"}})));
        assert!(matches(one("In", "app", &["web", "db"])));
        assert!(!matches(one("In", "tier", &["web"])));
        assert!(matches(one("NotIn", "tier", &["web"])), "a label that is missing is not in any list");
        assert!(!matches(one("NotIn", "app", &["web"])));
        assert!(matches(one("Exists", "app", &[])) && !matches(one("Exists", "tier", &[])));
        assert!(matches(one("DoesNotExist", "tier", &[])) && !matches(one("DoesNotExist", "app", &[])));
    }
}
