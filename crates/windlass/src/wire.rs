//! Objects as they travel: read from JSON with their `managedFields` set aside, and what of them is ours.
//!
//! Enters: the text of an object. Leaves: the object, the set of fields that our field manager owns on it, and the
//! digest of the intent that was applied last.

pub(crate) mod digest;
mod fields;
mod fresh;
mod ownership;
mod read;

pub(crate) use fields::{FieldSet, ItemKey, same_scalar};
pub(crate) use fresh::{Fresh, Head, managed_by};
pub(crate) use ownership::{FieldManager, Fields, Ownership};
pub(crate) use read::from_str as read;
pub use read::from_value;
