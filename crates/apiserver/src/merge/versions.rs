//! Managers own fields in the version in which they wrote them: what a write changes is looked at in each of these versions.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use super::{compare::Comparison, field_set::FieldSet, managed::Managed, reconcile::reconcile};
use crate::schema::TypeRef;

/// An object in the version of a manager.
pub(crate) enum Seen {
    /// It has this type and this form there.
    As(TypeRef, Value),
    /// It is looked at as it is.
    Same,
    /// The version is not served any more.
    Missing,
}

/// Tells how an object is seen in a version.
type See<'a> = dyn Fn(&str, &Value) -> Seen + 'a;

/// How objects are seen in other versions; as they are where nobody can tell.
#[derive(Clone, Copy, Default)]
pub(crate) struct Versions<'a>(Option<&'a See<'a>>);

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Versions").field(&self.0.is_some()).finish()
    }
}

/// What a write changes, in the version of each manager.
#[derive(Debug)]
pub(crate) struct Changes {
    /// In the version of the write.
    pub(crate) own: Comparison,
    others: BTreeMap<String, Comparison>,
}

impl Changes {
    /// What changes for a manager of this version.
    pub(crate) fn of(&self, version: &str) -> &Comparison {
        self.others.get(version).unwrap_or(&self.own)
    }
}

impl<'a> Versions<'a> {
    pub(crate) fn new(see: &'a See<'a>) -> Self {
        Self(Some(see))
    }

    /// Completes what a write changes; brings the sets of all managers up to the schemas of today, and forgets managers of
    /// versions that are gone.
    pub(crate) fn changes(
        self,
        (ty, version): (&TypeRef, &str),
        (before, after): (&Value, &Value),
        managed: &mut Managed,
        reset: &FieldSet,
        own: Comparison,
    ) -> Changes {
        let mut others = BTreeMap::new();
        let foreign = |other: &str| other != version;
        let known: Vec<String> = managed.entries.values().map(|owned| owned.api_version.clone()).collect();
        for other in known.into_iter().filter(|other| foreign(other)) {
            if others.contains_key(&other) {
                continue;
            }
            let Some(see) = self.0 else { continue };
            match (see(&other, before), see(&other, after)) {
                (Seen::As(ty, before), Seen::As(_, after)) => {
                    for owned in managed.entries.values_mut().filter(|owned| owned.api_version == other) {
                        reconcile(&ty, &mut owned.fields);
                    }
                    others.insert(other, Comparison::of(&ty, &before, &after).without(reset));
                }
                (Seen::Missing, _) | (_, Seen::Missing) => {
                    managed.entries.retain(|_, owned| owned.api_version != other);
                }
                _ => {}
            }
        }
        for owned in managed.entries.values_mut().filter(|owned| !others.contains_key(&owned.api_version)) {
            reconcile(ty, &mut owned.fields);
        }
        Changes { own, others }
    }
}
