//! How an object is kept: as a typed value, or as the text that it was read from.
//!
//! A typed Deployment takes six times the memory of its text: every map of labels is half a kilobyte, and every field
//! that is not set has its place. Children are many and read seldom, by the run of their owner; so a kind that is
//! owned and nothing else is kept as text, and read when somebody looks at one. That costs some microseconds where a
//! request costs a thousand. What is listed or indexed, or has many siblings under one owner, is kept typed: there, the
//! same objects are looked at again and again.

use std::sync::Arc;

use super::{read, store::Transform};
use crate::object::AnyObject;

/// An object in a store. Clones share it.
#[derive(Debug)]
pub(super) enum Kept<K> {
    Typed(Arc<K>),
    /// Without `managedFields`, and not transformed yet.
    Text(Arc<str>),
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Typed(object) => Self::Typed(object.clone()),
            Self::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl<K: AnyObject> Kept<K> {
    /// The typed value.
    pub(super) fn open(&self, transform: Option<&Transform<K>>) -> Arc<K> {
        match self {
            Self::Typed(object) => object.clone(),
            Self::Text(text) => {
                // Only what has been read before is kept.
                let mut object = read::<K>(text).expect("what was read once must be readable again");
                if let Some(transform) = transform {
                    transform(&mut object);
                }
                Arc::new(object)
            }
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Typed(object) => {
                size_of::<K>() + serde_json::to_vec(&**object).map_or(0, |json| json.len())
            }
            Self::Text(text) => text.len(),
        }
    }
}
