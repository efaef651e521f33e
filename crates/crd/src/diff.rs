//! What breaks between two versions of the same CustomResourceDefinitions.
//!
//! The old ones and the new ones go in, [`Finding`]s leave, the worst first in each definition. A finding is *breaking*
//! when objects that were valid are so no longer, when what they hold is dropped, or when a request that worked fails.
//!
//! # Guarantees
//!
//! Equal definitions give no findings. Where no finding of a schema is breaking, every object that was valid under the old
//! schema is valid under the new one, after the defaults of each, and nothing of it is pruned. CEL rules are read, not
//! run: a rule that was there and is not changed is taken to hold as it did.

mod bounds;
mod definition;
mod schema;

use std::fmt;

use serde::Serialize;

use crate::Definition;

pub use self::{definition::definition, schema::schemas};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Stored objects or clients break.
    Breaking,
    /// Something behaves differently, and somebody may notice.
    Warning,
    /// Nobody breaks.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Breaking => "breaking",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The definition's name.
    pub definition: String,
    /// The version of the kind; none where it concerns all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where in an object: `.spec.ports[].name`, `.spec.labels.*`. Empty where it concerns the definition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What changed, in one word: `FieldRemoved`.
    pub reason: &'static str,
    /// What changed, and what it means for stored objects or for clients.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub hint: &'static str,
}

/// Collects what is found at one place.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    definition: String,
    version: Option<String>,
    found: Vec<Finding>,
}

impl Findings {
    fn add(
        &mut self,
        severity: Severity,
        path: &str,
        reason: &'static str,
        message: String,
        hint: &'static str,
    ) {
        self.found.push(Finding {
            severity,
            definition: self.definition.clone(),
            version: self.version.clone(),
            path: path.to_owned(),
            reason,
            message,
            hint,
        });
    }

    fn breaking(&mut self, path: &str, reason: &'static str, message: impl Into<String>, hint: &'static str) {
        self.add(Severity::Breaking, path, reason, message.into(), hint);
    }

    fn warning(&mut self, path: &str, reason: &'static str, message: impl Into<String>, hint: &'static str) {
        self.add(Severity::Warning, path, reason, message.into(), hint);
    }

    fn info(&mut self, path: &str, reason: &'static str, message: impl Into<String>) {
        self.add(Severity::Info, path, reason, message.into(), "");
    }
}

/// Compares definitions, which are matched by their names, or by their kinds where a name is gone.
pub fn definitions(old: &[Definition], new: &[Definition]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut rest: Vec<&Definition> =
        new.iter().filter(|new| old.iter().all(|old| old.name != new.name)).collect();
    for before in old {
        if let Some(after) = new.iter().find(|new| new.name == before.name) {
            found.extend(definition(before, after));
            continue;
        }
        let renamed = rest.iter().position(|new| {
            new.names.kind == before.names.kind
                || (new.group == before.group && new.names.plural == before.names.plural)
        });
        if let Some(index) = renamed {
            found.extend(definition(before, rest.remove(index)));
            continue;
        }
        let mut gone = Findings { definition: before.name.clone(), ..Findings::default() };
        gone.breaking(
            "",
            "KindRemoved",
            format!(
                "the kind {} is gone: deleting its definition deletes every object of it",
                before.names.kind
            ),
            "keep the definition until no objects and no clients of it are left",
        );
        found.extend(gone.found);
    }
    for after in rest {
        let mut added = Findings { definition: after.name.clone(), ..Findings::default() };
        added.info("", "KindAdded", format!("the kind {} is new", after.names.kind));
        found.extend(added.found);
    }
    found
}
