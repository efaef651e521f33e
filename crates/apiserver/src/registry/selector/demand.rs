//! Selectors as they are matched: what is demanded of each label and of each field, however often a selector says it.
//!
//! In go requirements, out comes whether an object matches. An object is asked about its own labels, so matching costs
//! what the object has and not what the selector says: thousands of terms over a hundred thousand objects are nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{FieldPlace, FieldRequirement, Requirement};
use crate::store::Object;

/// What is demanded of the value of one label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Demand {
    present: bool,
    absent: bool,
    allowed: Option<BTreeSet<String>>,
    denied: BTreeSet<String>,
    above: Option<i64>,
    below: Option<i64>,
}

impl Demand {
    fn add(&mut self, requirement: Requirement) {
        self.present |= !matches!(requirement, Requirement::NotIn(..) | Requirement::Absent(_));
        match requirement {
            Requirement::In(_, values) => {
                let values: BTreeSet<String> = values.into_iter().collect();
                self.allowed = Some(match self.allowed.take() {
                    Some(known) => known.intersection(&values).cloned().collect(),
                    None => values,
                });
            }
            Requirement::NotIn(_, values) => self.denied.extend(values),
            Requirement::Exists(_) => {}
            Requirement::Absent(_) => self.absent = true,
            Requirement::Greater(_, limit) => self.above = self.above.max(Some(limit)),
            Requirement::Less(_, limit) => {
                self.below = Some(self.below.map_or(limit, |known| known.min(limit)));
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LabelDemands {
    by_key: BTreeMap<String, Demand>,
    /// How many labels must be there.
    present: usize,
}

impl LabelDemands {
    pub(super) fn new(requirements: Vec<Requirement>) -> Self {
        let mut by_key: BTreeMap<String, Demand> = BTreeMap::new();
        for requirement in requirements {
            by_key.entry(requirement.key().to_owned()).or_default().add(requirement);
        }
        let present = by_key.values().filter(|demand| demand.present).count();
        Self { by_key, present }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub(super) fn hold<'a>(&self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
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

/// What is demanded of one field. A field is always there, if only as an empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FieldDemand {
    equal: BTreeSet<String>,
    different: BTreeSet<String>,
}

/// What is demanded of the fields of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldDemands(BTreeMap<FieldPlace, FieldDemand>);

impl FieldDemands {
    pub(super) fn new(requirements: Vec<FieldRequirement>) -> Self {
        let mut by_place: BTreeMap<FieldPlace, FieldDemand> = BTreeMap::new();
        for FieldRequirement { place, value, equal } in requirements {
            let demand = by_place.entry(place).or_default();
            if equal { &mut demand.equal } else { &mut demand.different }.insert(value);
        }
        Self(by_place)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one name that can match.
    pub(super) fn name(&self) -> Option<&str> {
        self.0.get(&FieldPlace::Name)?.equal.first().map(String::as_str)
    }

    pub(super) fn hold(&self, object: &Object) -> bool {
        self.0.iter().all(|(place, demand)| {
            let value = match place {
                FieldPlace::Name => &*object.key.name,
                FieldPlace::Namespace => &*object.key.namespace,
                FieldPlace::Own(index) => object.fields.get(*index).map_or("", |value| value),
            };
            // Two different values at once are what no field has.
            demand.equal.len() < 2
                && demand.equal.first().is_none_or(|only| only == value)
                && !demand.different.contains(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a requirement means, one label and one requirement at a time.
    fn means(requirement: &Requirement, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(requirement.key());
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match requirement {
            Requirement::In(_, values) => value.is_some_and(|value| values.contains(value)),
            Requirement::NotIn(_, values) => value.is_none_or(|value| !values.contains(value)),
            Requirement::Exists(_) => value.is_some(),
            Requirement::Absent(_) => value.is_none(),
            Requirement::Greater(_, limit) => number().is_some_and(|number| number > *limit),
            Requirement::Less(_, limit) => number().is_some_and(|number| number < *limit),
        }
    }

    fn requirement() -> impl Strategy<Value = Requirement> {
        let value = prop::sample::select(vec!["", "1", "2", "x"]).prop_map(str::to_owned);
        let values = prop::collection::vec(value, 0..3);
        ("[ab]", 0..6, values, 0_i64..3).prop_map(|(key, what, values, limit)| match what {
            0 => Requirement::In(key, values),
            1 => Requirement::NotIn(key, values),
            2 => Requirement::Exists(key),
            3 => Requirement::Absent(key),
            4 => Requirement::Greater(key, limit),
            _ => Requirement::Less(key, limit),
        })
    }

    proptest! {
        #[test]
        fn demands_mean_what_the_requirements_mean_one_by_one(
            requirements in prop::collection::vec(requirement(), 0..5),
            labels in prop::collection::btree_map("[abc]", "[12x]?", 0..3),
        ) {
            let expected = requirements.iter().all(|one| means(one, &labels));
            let pairs = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            prop_assert_eq!(LabelDemands::new(requirements).hold(pairs), expected);
        }
    }
}
