//! A selector as it is matched: what is demanded of each label, however often the selector says it.
//!
//! An object is asked about its own labels, so matching costs what the object has and not what the selector says.

use std::collections::{BTreeMap, BTreeSet};

use super::{Operator, Requirement};

/// What is demanded of the value of one label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Demand {
    present: bool,
    absent: bool,
    allowed: Option<BTreeSet<String>>,
    denied: BTreeSet<String>,
    above: Option<i64>,
    below: Option<i64>,
}

impl Demand {
    fn add(&mut self, requirement: &Requirement) {
        let values = || requirement.values.iter().cloned();
        let number = || requirement.values.first().and_then(|value| value.parse::<i64>().ok());
        match requirement.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                self.present = true;
                self.allowed = Some(match self.allowed.take() {
                    Some(known) => values().filter(|value| known.contains(value)).collect(),
                    None => values().collect(),
                });
            }
            Operator::NotIn | Operator::NotEquals => self.denied.extend(values()),
            Operator::Exists => self.present = true,
            Operator::DoesNotExist => self.absent = true,
            Operator::GreaterThan => {
                self.present = true;
                self.above = self.above.max(number());
            }
            Operator::LessThan => {
                self.present = true;
                self.below = [self.below, number()].into_iter().flatten().min();
            }
        }
    }

    /// Whether a label that is there may have this value.
    fn holds(&self, value: &str) -> bool {
        let between = || {
            let Ok(number) = value.parse::<i64>() else { return false };
            self.above.is_none_or(|limit| number > limit) && self.below.is_none_or(|limit| number < limit)
        };
        !self.absent
            && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(value))
            && !self.denied.contains(value)
            && ((self.above.is_none() && self.below.is_none()) || between())
    }
}

/// What is demanded of the labels of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demands {
    by_key: BTreeMap<String, Demand>,
    /// How many labels must be there.
    present: usize,
}

impl Demands {
    pub(super) fn new(requirements: &[Requirement]) -> Self {
        let mut by_key: BTreeMap<String, Demand> = BTreeMap::new();
        for requirement in requirements {
            by_key.entry(requirement.key.clone()).or_default().add(requirement);
        }
        let present = by_key.values().filter(|demand| demand.present).count();
        Self { by_key, present }
    }

    pub(super) fn hold<'a>(&self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        if self.by_key.is_empty() {
            return true;
        }
        let mut found = 0;
        for (key, value) in labels {
            let Some(demand) = self.by_key.get(key) else { continue };
            if !demand.holds(value) {
                return false;
            }
            found += usize::from(demand.present);
        }
        found == self.present
    }
}
