//! Waiting for caches: for the first lists at the start, and for watches to be in touch again before work begins.

use std::time::Duration;

use tokio::time::Instant;

use super::{NotSynced, RunError};
use crate::{
    cache::{Health, WatchEntry},
    queue::later::later,
};

/// How long work waits for watches that fail when the lease was acquired. They may fail for longer than that, and
/// that is no reason to do nothing.
const CATCH_UP: Duration = Duration::from_secs(30);

/// How the first lists are waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// How long; `None` for as long as it takes.
    pub(super) limit: Option<Duration>,
    /// A program of its own: it ends when it may not list a kind, and begins without one that is not served, since
    /// that costs only the controllers that need it.
    pub(super) alone: bool,
}

impl Waiting {
    /// Waits until every watch has received its first list, or can do without.
    pub(super) async fn synced(&self, watches: &[WatchEntry]) -> Result<(), RunError> {
        let started = Instant::now();
        for WatchEntry { watch, optional } in watches {
            let mut health = watch.health();
            let may_lack = *optional || self.alone;
            let synced = |health: &Health| health.is_synced() || (may_lack && health.is_absent());
            let settled = health.wait_for(|health| synced(health) || (self.alone && health.is_refused()));
            let settled = match self.limit {
                Some(limit) => tokio::time::timeout_at(later(started, limit), settled).await.ok(),
                None => Some(settled.await),
            };
            let is_synced = matches!(&settled, Some(Ok(health)) if synced(health));
            drop(settled);
            if !is_synced {
                let (kind, waited) = (watch.kind().to_string(), started.elapsed());
                let health = health.borrow();
                let reason = health.failure().map(|failure| failure.text.clone());
                let reason = reason.unwrap_or_else(|| "the API server has not answered".into());
                let cause = cause(&health);
                return Err(RunError::NotSynced { kind, waited, reason, cause });
            }
        }
        Ok(())
    }
}

fn cause(health: &Health) -> NotSynced {
    if health.is_absent() {
        NotSynced::NotServed
    } else if health.is_refused() {
        NotSynced::Forbidden
    } else {
        NotSynced::Unanswered
    }
}

/// Waits until a controller has what it needs: every kind that it cannot do without is served and listed.
pub(super) async fn has_needs(controller: &str, needs: &[WatchEntry]) {
    for WatchEntry { watch, optional } in needs {
        let mut health = watch.health();
        let synced = |health: &Health| health.is_synced() || (*optional && health.is_absent());
        let missing = !synced(&health.borrow());
        if missing {
            tracing::warn!(controller, kind = %watch.kind(), "not started: a kind that it needs is not there yet");
            // The sender lives as long as the store, which the controller holds.
            let _ = health.wait_for(synced).await;
        }
    }
}

/// Waits, but not for long, until no watch fails: what was decided on a copy from before an outage would be wrong.
pub(super) async fn caught_up(watches: &[WatchEntry]) {
    let in_touch = async {
        for WatchEntry { watch, .. } in watches {
            let mut health = watch.health();
            let _ = health.wait_for(|health| health.failure().is_none() || health.is_absent()).await;
        }
    };
    if tokio::time::timeout(CATCH_UP, in_touch).await.is_err() {
        tracing::warn!("some watches still fail; working with what is known");
    }
}
