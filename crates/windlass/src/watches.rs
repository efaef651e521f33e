//! From watches to the queue of a controller: what a controller watches, and how a change becomes a key.
//!
//! Enters: declarations of the builder, and those that a reconciler adds while it runs. Leaves: subscriptions to the
//! shared caches, which put keys into the controller's queue.

mod added;
mod watch;
mod wiring;

pub use added::Watches;
pub use watch::Watch;
pub(crate) use wiring::{Setup, Source, Wiring};
