//! Conflicts between appliers: fields that somebody else owns with another value.

use std::{collections::BTreeMap, fmt};

use super::{
    field_set::FieldSet,
    managed::{Manager, Operation},
    path::{Path, shown},
};

/// One field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) manager: Manager,
    pub(crate) path: Path,
}

/// A cause in the `Status` of a conflict; its reason is always `FieldManagerConflict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConflictCause {
    /// Who owns the field.
    pub(crate) message: String,
    /// The field.
    pub(crate) field: String,
}

/// All conflicts of one apply; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflicts(pub(crate) Vec<Conflict>);

impl Conflicts {
    /// The conflicts that `sets` amount to, managers in the order in which they are printed.
    pub(crate) fn from_sets(sets: &BTreeMap<Manager, FieldSet>) -> Option<Self> {
        let mut sets: Vec<(&Manager, &FieldSet)> = sets.iter().collect();
        sets.sort_by_key(|(manager, _)| manager.identifier());
        let conflicts: Vec<Conflict> = sets
            .into_iter()
            .flat_map(|(manager, set)| {
                set.paths().into_iter().map(|path| Conflict { manager: manager.clone(), path })
            })
            .collect();
        (!conflicts.is_empty()).then_some(Self(conflicts))
    }

    /// The conflicts on fields outside `allowed`.
    pub(crate) fn outside(&self, allowed: &FieldSet) -> Option<Self> {
        let rest: Vec<Conflict> =
            self.0.iter().filter(|conflict| !allowed.contains(&conflict.path)).cloned().collect();
        (!rest.is_empty()).then_some(Self(rest))
    }

    /// The message of the `Status`.
    pub(crate) fn message(&self) -> String {
        if let [conflict] = self.0.as_slice() {
            return format!(
                "Apply failed with 1 conflict: conflict with {}: {}",
                printed(&conflict.manager),
                shown(&conflict.path)
            );
        }
        let mut lines = Vec::new();
        let mut last = None;
        for conflict in &self.0 {
            if last != Some(&conflict.manager) {
                lines.push(format!("conflicts with {}:", printed(&conflict.manager)));
                last = Some(&conflict.manager);
            }
            lines.push(format!("- {}", shown(&conflict.path)));
        }
        format!("Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }

    /// The causes of the `Status`.
    pub(crate) fn causes(&self) -> Vec<ConflictCause> {
        self.0
            .iter()
            .map(|conflict| ConflictCause {
                message: format!("conflict with {}", printed(&conflict.manager)),
                field: shown(&conflict.path),
            })
            .collect()
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

fn printed(manager: &Manager) -> String {
    let subresource = match manager.subresource.as_str() {
        "" => String::new(),
        name => format!(" with subresource {name:?}"),
    };
    let version = match manager.operation {
        Operation::Apply => String::new(),
        Operation::Update => format!(" using {}", manager.api_version),
    };
    format!("{:?}{subresource}{version}", manager.name)
}
