//! Under which names we write, and what of a live object is ours by them.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{FieldSet, digest};

pub(crate) use super::digest::Digest;

/// The field manager of an operator, and those whose fields it takes over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldManager {
    name: String,
    former: Vec<String>,
    annotation: String,
}

impl FieldManager {
    pub(crate) fn new(name: impl Into<String>, former: Vec<String>) -> Self {
        let name = name.into();
        Self { annotation: digest::annotation(&name), former, name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the fields of this manager are to become ours.
    pub(crate) fn succeeds(&self, manager: &str) -> bool {
        manager != self.name && self.former.iter().any(|former| former == manager)
    }

    /// The annotation that holds the mark of an apply.
    pub(super) fn annotation(&self) -> &str {
        &self.annotation
    }

    /// The mark that an apply of ours left on an object.
    pub(super) fn mark_of<'a>(&self, meta: &'a ObjectMeta) -> Option<&'a str> {
        meta.annotations.as_ref()?.get(&self.annotation).map(String::as_str)
    }

    /// The digest of the intent that was applied last.
    pub(crate) fn digest_of(&self, meta: &ObjectMeta) -> Option<Digest> {
        Digest::read(self.mark_of(meta)?)
    }
}

/// What of a live object is ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ownership {
    /// The fields that we applied; `None` if there are none.
    pub(crate) fields: Option<Arc<FieldSet>>,
    /// The digest of the intent that was applied last.
    pub(crate) digest: Option<Digest>,
    /// Whether a manager that we succeed owns fields.
    pub(crate) inherits: bool,
}
