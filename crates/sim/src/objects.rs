//! The objects of a day at one moment, as invariants see them.

use std::collections::BTreeMap;

use windlass::serde_json::Value;

/// The objects of an operator's kinds and all Pods, at one moment.
#[derive(Debug, Default)]
pub struct Objects(pub(crate) BTreeMap<Key, Value>);

/// Kind, namespace and name.
pub(crate) type Key = (String, String, String);

impl Objects {
    /// The objects of a kind, such as `Pod`, in the order of their namespaces and names.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> + 'a {
        self.0.iter().filter(move |((its, ..), _)| its == kind).map(|(_, object)| object)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.0.values()
    }
}
