//! How a run ended, and what follows from it.

use std::time::Duration;

use crate::{error::Error, queue::Outcome, reconciler::Action, runs::RunResult};

/// How one run ended.
pub(super) enum Ended {
    Finished(Action),
    Failed {
        text: String,
        category: &'static str,
        retryable: bool,
        /// Whether it is an error of this crate, to which the reconciler has given no reason of its own.
        unnamed: bool,
    },
    /// The run has succeeded, but the detached children could not be deleted.
    NotReleased(Error),
    Panicked(String),
    TimedOut(Duration),
}

/// What follows from the end of a run.
pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) verdict: RunResult,
    /// A reason and a message, if it failed.
    pub(super) failure: Option<(&'static str, String)>,
    /// Whether the reason is the reconciler's own.
    pub(super) named: bool,
}

impl Judged {
    pub(super) fn fine(outcome: Outcome, verdict: RunResult) -> Self {
        Self { outcome, verdict, failure: None, named: true }
    }

    /// The failure, for a record.
    pub(super) fn told(&self) -> Option<(String, String)> {
        self.failure.as_ref().map(|(reason, message)| ((*reason).to_owned(), message.clone()))
    }

    pub(super) fn failed(
        outcome: Outcome,
        verdict: RunResult,
        reason: &'static str,
        message: String,
    ) -> Self {
        Self { outcome, verdict, failure: Some((reason, message)), named: true }
    }
}
