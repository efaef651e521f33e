//! Where timestamps come from.
//!
//! Delays use `tokio::time`; timestamps that reach the API (conditions, events, leases) come from a [`Clock`]
//! handed to the operator. With [`TokioClock`] both follow tokio's paused clock, so a test that sleeps for an
//! hour sees conditions an hour apart and finishes at once.

pub use windlass_apimachinery::clock::{Clock, SystemClock, TokioClock};
