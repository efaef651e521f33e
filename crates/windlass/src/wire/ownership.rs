//! Under which names we write, and what of a live object is ours by them.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{FieldSet, Fresh, digest};
use crate::object::AnyObject;

pub(crate) use super::digest::Digest;

/// The field manager of an operator, and those whose fields it takes over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldManager {
    name: String,
    former: Vec<String>,
    annotation: String,
    /// What the names begin with under which the controllers apply their parts of a status.
    status: String,
}

impl FieldManager {
    pub(crate) fn new(name: impl Into<String>, former: Vec<String>) -> Self {
        let name = name.into();
        Self { annotation: digest::annotation(&name), former, status: format!("{name}/"), name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name under which a controller applies its part of a status: controllers that share one object must not share
    /// a name, or each would take away what the other one has set.
    pub(crate) fn of_status(&self, controller: &str) -> String {
        format!("{}{controller}", self.status)
    }

    /// The controller of ours that applies its part of a status under this name.
    pub(crate) fn status_controller<'a>(&self, manager: &'a str) -> Option<&'a str> {
        manager.strip_prefix(self.status.as_str())
    }

    /// Whether the fields of this manager are to become ours.
    pub(crate) fn succeeds(&self, manager: &str) -> bool {
        manager != self.name && self.former.iter().any(|former| former == manager)
    }

    /// The annotation that holds the mark of an apply.
    pub(crate) fn annotation(&self) -> &str {
        &self.annotation
    }

    /// The mark that an apply of ours left on an object.
    pub(crate) fn mark_of<'a>(&self, meta: &'a ObjectMeta) -> Option<&'a str> {
        meta.annotations.as_ref()?.get(&self.annotation).map(String::as_str)
    }

    /// The digest of the intent that was applied last.
    pub(crate) fn digest_of(&self, meta: &ObjectMeta) -> Option<Digest> {
        Digest::read(self.mark_of(meta)?)
    }
}

/// The sets of fields that are ours, as they are read from `managedFields`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) main: Option<FieldSet>,
    pub(crate) status: Option<FieldSet>,
    pub(crate) inherits: bool,
}

/// What of a live object is ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ownership {
    /// The fields that we applied; `None` if there are none.
    pub(crate) fields: Option<Arc<FieldSet>>,
    /// The fields of the status that our controllers applied, below the name of each; `None` if there are none.
    pub(crate) status: Option<Arc<FieldSet>>,
    /// The digest of the intent that was applied last.
    pub(crate) digest: Option<Digest>,
    /// Whether a manager that we succeed owns fields.
    pub(crate) inherits: bool,
}

impl Ownership {
    /// What of an object is ours that is not kept anywhere.
    pub(crate) fn of<K: AnyObject>(fresh: &Fresh<K>, manager: &FieldManager) -> Self {
        let Fields { main, status, inherits } = fresh.fields(manager);
        let digest = manager.digest_of(fresh.object.meta());
        Self { fields: main.map(Arc::new), status: status.map(Arc::new), digest, inherits }
    }
}
