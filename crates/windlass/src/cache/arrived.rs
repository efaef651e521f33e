//! An object that arrives at a store, of whichever kind.

use super::kept::Held;
use crate::{
    object::AnyObject,
    wire::{FieldManager, Fields, Fresh, managed_by},
};

/// A [`Fresh`] object of whichever kind.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) object: Box<dyn Held>,
    managed: Option<Box<str>>,
    pub(super) text: Option<String>,
}

impl Arrived {
    /// What `manager` and its controllers applied, and whether there are fields to take over.
    pub(super) fn fields(&self, manager: &FieldManager) -> Fields {
        managed_by(self.managed.as_deref(), manager)
    }
}

impl<K: AnyObject> From<Fresh<K>> for Arrived {
    fn from(fresh: Fresh<K>) -> Self {
        Self { object: Box::new(fresh.object), managed: fresh.managed, text: fresh.text }
    }
}
