//! An operator under a debugger: whoever stops the process stops its clock as well, as far as that is possible.

use std::time::Duration;

use super::Operator;
use crate::{leader::LeaderElection, request::ENDLESS};

/// How long a lease lasts whose holder may be stopped, and how long it may be so.
const LEASE: Duration = Duration::from_hours(1);
const RENEW: Duration = Duration::from_mins(55);

impl Operator {
    /// Sets the limits that are the operator's; those of requests, watches and runs are taken out where they are.
    pub(super) fn take_time(&mut self) {
        self.drain = ENDLESS;
        if let Some(LeaderElection { duration, renew_deadline, .. }) = &mut self.leader {
            (*duration, *renew_deadline) = ((*duration).max(LEASE), (*renew_deadline).max(RENEW));
        }
        let lease =
            if self.leader.is_some() { "a lease lasts an hour" } else { "there is no leader election" };
        tracing::warn!("debugging: no reconcile, request, watch or shutdown runs out of time, and {lease}");
    }
}
