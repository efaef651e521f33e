//! Label selectors: as text (`app=web,tier in (a,b),!canary`), and as objects write them (`matchLabels`,
//! `matchExpressions`).
//!
//! ```
//! use windlass_apimachinery::labels::Selector;
//!
//! let selector = Selector::parse("app=web, tier notin (cache,db), !canary")?;
//! assert!(selector.matches([("app", "web")]));
//! assert!(!selector.matches([("app", "web"), ("canary", "yes")]));
//! assert_eq!(selector.to_string(), "app=web,!canary,tier notin (cache,db)");
//! # Ok::<(), windlass_apimachinery::labels::ParseError>(())
//! ```

mod demand;
mod expression;
mod parse;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, str::FromStr};

use self::demand::Demands;
pub use self::{
    expression::{Expression, LabelSelector},
    parse::ParseError,
};
use crate::names;

/// What a requirement asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`
    NotEquals,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>5`
    GreaterThan,
    /// `key<5`
    LessThan,
}

impl Operator {
    /// The operator of an expression of a `LabelSelector`.
    pub fn of_label_selector(text: &str) -> Option<Self> {
        match text {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }

    /// The operator of an expression of a `NodeSelector`, which also compares numbers.
    pub fn of_node_selector(text: &str) -> Option<Self> {
        match text {
            "Gt" => Some(Self::GreaterThan),
            "Lt" => Some(Self::LessThan),
            _ => Self::of_label_selector(text),
        }
    }

    /// Whether a label is as asked; `None` is a label that is not there.
    pub fn matches(self, label: Option<&str>, values: &[String]) -> bool {
        let listed = || label.is_some_and(|label| values.iter().any(|value| value == label));
        let numbers = || {
            let [value] = values else { return None };
            Some((label?.parse::<i64>().ok()?, value.parse::<i64>().ok()?))
        };
        match self {
            Self::In | Self::Equals | Self::DoubleEquals => listed(),
            Self::NotIn | Self::NotEquals => !listed(),
            Self::Exists => label.is_some(),
            Self::DoesNotExist => label.is_none(),
            Self::GreaterThan => numbers().is_some_and(|(label, value)| label > value),
            Self::LessThan => numbers().is_some_and(|(label, value)| label < value),
        }
    }
}

/// One requirement of a [`Selector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    /// A requirement, if its key and values are valid and there are as many values as the operator takes.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: impl IntoIterator<Item = String>,
    ) -> Result<Self, ParseError> {
        let key = key.into();
        let mut values: Vec<String> = values.into_iter().collect();
        values.sort();
        values.dedup();
        parse::check(&key, operator, &values)?;
        Ok(Self { key, operator, values })
    }

    /// The label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is asked of it.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// With which values, in order.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether the label is as asked; `None` is a label that is not there.
    pub fn matches(&self, label: Option<&str>) -> bool {
        self.operator.matches(label, &self.values)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Equals => write!(formatter, "{key}={values}"),
            Operator::DoubleEquals => write!(formatter, "{key}=={values}"),
            Operator::NotEquals => write!(formatter, "{key}!={values}"),
            Operator::Exists => formatter.write_str(key),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::GreaterThan => write!(formatter, "{key}>{values}"),
            Operator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

/// Requirements that labels must meet, all of them. Without any, everything matches.
///
/// Matching costs what the object has, and not what the selector says: thousands of requirements over a hundred thousand
/// objects are little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
    demands: Demands,
}

impl Selector {
    /// A selector of these requirements.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<Requirement> = requirements.into_iter().collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        let demands = Demands::new(&requirements);
        Self { requirements, demands }
    }

    /// Reads a selector. The error is one line, as Kubernetes words it.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self::new(parse::requirements(text)?))
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, ordered by their keys.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether labels match.
    pub fn matches<'a>(&self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        self.demands.hold(labels)
    }

    /// Whether the labels of an object's metadata match.
    pub fn matches_map(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.matches(labels.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())))
    }
}

impl FromStr for Selector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{requirement}")?;
        }
        Ok(())
    }
}
