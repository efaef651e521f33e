//! Field selectors as they are matched: what is demanded of each field, however often a selector says it.
//!
//! In go requirements, out comes whether an object matches.

use std::collections::{BTreeMap, BTreeSet};

use super::{FieldPlace, FieldRequirement};
use crate::{
    registry::{decode, strategy::Selectable},
    store::Object,
};

/// What is demanded of one field. A field is always there, if only as an empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FieldDemand {
    equal: BTreeSet<String>,
    different: BTreeSet<String>,
}

/// What is demanded of the fields of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldDemands {
    demands: BTreeMap<FieldPlace, FieldDemand>,
    /// The fields that a custom kind lets be selected by.
    custom: Vec<Selectable>,
}

impl FieldDemands {
    pub(super) fn new(requirements: Vec<FieldRequirement>, custom: Vec<Selectable>) -> Self {
        let mut by_place: BTreeMap<FieldPlace, FieldDemand> = BTreeMap::new();
        for FieldRequirement { place, value, equal } in requirements {
            let demand = by_place.entry(place).or_default();
            if equal { &mut demand.equal } else { &mut demand.different }.insert(value);
        }
        Self { demands: by_place, custom }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.demands.is_empty()
    }

    /// The one name that can match.
    pub(super) fn name(&self) -> Option<&str> {
        self.demands.get(&FieldPlace::Name)?.equal.first().map(String::as_str)
    }

    pub(super) fn hold(&self, object: &Object) -> bool {
        let mut decoded = None;
        self.demands.iter().all(|(place, demand)| {
            let own;
            let value = match place {
                FieldPlace::Name => &*object.key.name,
                FieldPlace::Namespace => &*object.key.namespace,
                FieldPlace::Own(index) => object.fields.get(*index).map_or("", |value| value),
                FieldPlace::Custom(index) => {
                    let decoded = decoded.get_or_insert_with(|| decode::stored(object));
                    own = self.custom.get(*index).map(|field| field.value(decoded)).unwrap_or_default();
                    &own
                }
            };
            // Two different values at once are what no field has.
            demand.equal.len() < 2
                && demand.equal.first().is_none_or(|only| only == value)
                && !demand.different.contains(value)
        })
    }
}
