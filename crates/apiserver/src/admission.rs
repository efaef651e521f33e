//! Admission: who else has a say before an object is stored.
//!
//! A write enters as [`Attributes`] and an object; the object leaves changed, or the write is refused.
//! Mutating webhooks are asked one after the other, in the order of their configurations' names, before the
//! object is validated; validating webhooks are asked at the same time, after it.
//!
//! ```text
//! decode -> default -> own fields -> mutate -> prepare -> validate -> confirm -> commit
//! ```
//!
//! # Guarantees
//!
//! - No lock is held while somebody is asked: a webhook may itself write to this server.
//! - What a webhook saw is what is committed: when another write came between, it is asked again.
//! - The configurations of admission themselves are admitted without asking, so that a webhook which is gone
//!   can always be removed.

mod attributes;
mod dispatch;
mod labels;
mod patch;
mod plan;
mod plugins;
mod policy;
mod review;
mod rules;
mod warnings;

pub(crate) use self::labels::LabelSelector;
pub use self::{
    attributes::{Attributes, Operation},
    warnings::Warnings,
};
pub(crate) use self::{plan::Hooks, policy::Policies};
