//! What becomes of the objects of one cluster in another: which of them go, in what order, and how they have to change.
//! Pure: objects enter, objects and reasons leave.

mod left_out;
mod object;
mod order;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use self::{
    left_out::{Selection, is_definition, name},
    object::{Owners, prepared, status_of},
    order::{Entry, ordered},
};

/// What was left out, and why: a count for each kind and reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut(BTreeMap<(String, &'static str), usize>);

impl LeftOut {
    pub(crate) fn add(&mut self, kind: &str, why: &'static str) {
        *self.0.entry((kind.to_owned(), why)).or_default() += 1;
    }

    /// Nothing of a kind was even asked for.
    pub(crate) fn add_kind(&mut self, kind: &str, why: &'static str) {
        self.0.entry((kind.to_owned(), why)).or_default();
    }

    /// Kind, reason and how many; 0 if nobody has counted.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &'static str, usize)> {
        self.0.iter().map(|((kind, why), count)| (kind.as_str(), *why, *count))
    }
}

/// A text of an object.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
fn kind(group: &str, kind: &str, plural: &str, namespaced: bool) -> windlass_ui::Kind {
    let (group, version) = (group.to_owned(), "v1".to_owned());
    let (kind, plural) = (kind.into(), plural.into());
    windlass_ui::Kind { group, version, kind, plural, namespaced, custom: false, workload: false }
}
