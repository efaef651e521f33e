//! Selectors as objects write them: `matchLabels` and `matchExpressions`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Operator;

/// A selector of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be there with these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<Expression>,
}

/// A requirement of a [`LabelSelector`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; nothing matches another one.
    pub operator: String,
    /// The values of `In` and `NotIn`.
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether the labels of a JSON object match.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.matches_by(&|key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
    }

    /// Whether labels match that are known by a function.
    pub fn matches_by<'a>(&self, label: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|one| {
                let operator = Operator::of_label_selector(&one.operator);
                operator.is_some_and(|operator| operator.matches(label(&one.key), &one.values))
            })
    }
}
