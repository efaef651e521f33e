//! How two writers of one object get along: server-side apply, ownership of fields, strategic
//! merge patch.
//!
//! Objects and a [`TypeRef`](crate::schema::TypeRef) go in, merged objects come out; who owns
//! which field travels in `metadata.managedFields`, written as the real server writes it. Nothing
//! here knows the clock, the store or HTTP: times are parameters and errors carry only text.

mod apply;
mod combine;
mod compare;
mod conflict;
mod field_set;
mod fields_v1;
mod index;
mod last_applied;
mod managed;
mod path;
mod reconcile;
mod remove;
mod strategic;
mod typed;
mod update;
mod versions;

pub(crate) use apply::{ApplyError, ApplyOptions, apply};
pub(crate) use combine::combine;
pub(crate) use field_set::FieldSet;
pub(crate) use strategic::as_go;
pub(crate) use strategic::strategic;
#[cfg(test)]
pub(crate) use typed::fields_of;
pub(crate) use update::{UpdateOptions, keep_times, track_update};
pub(crate) use versions::{Seen, Versions};

#[cfg(test)]
mod tests;
