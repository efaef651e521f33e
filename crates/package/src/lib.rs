//! What ships an operator, made from the objects that run it.
//!
//! In go the objects that an operator's program prints ([`Objects`]) and what a person says about it ([`Facts`]); out
//! come the files of
//!
//! - a Helm chart: [`helm::chart`];
//! - a bundle for the Operator Lifecycle Manager: [`olm::bundle`];
//! - a file-based catalogue of such bundles: [`catalog::Catalog`].
//!
//! Whatever objects there are is what is packed: this crate knows the kinds that it treats in a special way, and packs
//! the others as they are. The same input gives the same files, in any order of days and machines. [`Files`] compares
//! them with a directory and leaves alone what a person has changed there.

#![deny(missing_docs)]

pub mod catalog;
mod error;
mod facts;
mod files;
pub mod helm;
mod icon;
mod objects;
pub mod olm;
#[cfg(test)]
mod shop;
mod version;
mod yaml;

pub use error::Error;
pub use facts::{Facts, Icon, Link, Maintainer};
pub use files::{Changes, Files, Plan};
pub use objects::{Objects, RELEASE_NAMESPACE, WATCHED_NAMESPACE};
pub use version::Version;
