//! An operator's manifests in a cluster: put there, upgraded, undone, taken out again.
//!
//! In go objects, as an operator's `manifests` prints them, and a client; out come lines about what happens, and in the
//! end everything is ready, or an error says why not, in the cluster's own words.
//!
//! # Guarantees
//!
//! - **Nothing is half done that a second run does not finish.** What can be known to fail is looked at before anything is
//!   changed: permissions, names that others have taken, a namespace that is going, definitions that would break stored
//!   objects. What is about to be applied is recorded in the cluster first.
//! - **No object of a custom kind is lost silently.** A definition is deleted once no object of it is left, and objects are
//!   deleted when their number was said. An upgrade that would drop what objects hold is refused.
//! - **What was deployed before is kept**, in a Secret, and can be had again: [`Deployer::undo`].

#![deny(missing_docs)]

mod access;
mod apply;
mod count;
mod definitions;
mod deployer;
mod diff;
mod error;
mod history;
mod migration;
mod objects;
mod owners;
mod reasons;
mod release;
mod remains;
mod target;
mod wait;

pub use deployer::{Deployer, Options};
pub use error::{Error, Refused};
pub use objects::Loss;
pub use release::Release;

/// Where lines about what happens go.
pub type Tell<'a> = &'a (dyn Fn(&str) + Send + Sync);
