//! What an author learns of a bad day.

use std::fmt;

/// A day on which something was broken, made as short as it could be.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// The day, as `SIM_SEED` takes it.
    pub day: String,
    /// What was broken: `end`, `rest`, `writes-at-rest`, `orphan`, `finalizer`, `forbidden`, `observed-generation`,
    /// `hot-loop`, `invariant`, `panic`, `user` or `start`.
    pub oracle: &'static str,
    /// The same in a sentence.
    pub detail: String,
    /// What happened, in order of time, one line each.
    pub story: String,
    /// How many days were well before it.
    pub after: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  broken ({}): {}", self.story, self.oracle, self.detail)
    }
}
