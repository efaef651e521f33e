//! The flow of a CronJob: look at its Jobs, report them, forget the oldest, start what is due.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Event, ReconcileError, Reconciler, k8s_openapi::api::batch::v1::Job,
    kube::ResourceExt,
};

use super::{
    api::{ConcurrencyPolicy, CronJob},
    build::{self, Jobs},
    schedule::{Schedule, TooManyMissed},
    status,
};

/// The controller of CronJobs.
pub(super) fn controller() -> Controller<CronJobs> {
    Controller::new(CronJobs).owns::<Job>()
}

/// The reconciler.
#[derive(Clone, Copy, Debug)]
pub(super) struct CronJobs;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A request failed, or the cache could not answer.
    #[error(transparent)]
    Windlass(#[from] windlass::Error),
    /// The schedule is no schedule.
    #[error("failed to read spec.schedule {schedule:?}: {reason}")]
    Schedule {
        /// What stands there.
        schedule: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Too many runs were missed.
    #[error(transparent)]
    TooManyMissed(#[from] TooManyMissed),
}

impl ReconcileError for Error {
    fn retryable(&self) -> bool {
        match self {
            Self::Windlass(error) => error.retryable(),
            Self::Schedule { .. } | Self::TooManyMissed(_) => false,
        }
    }

    fn category(&self) -> &'static str {
        match self {
            Self::Windlass(error) => error.category(),
            Self::Schedule { .. } => "InvalidSchedule",
            Self::TooManyMissed(_) => "TooManyMissedTimes",
        }
    }
}

impl Reconciler for CronJobs {
    type Resource = CronJob;
    type Error = Error;

    async fn reconcile(&self, cron: Arc<CronJob>, ctx: &Context<CronJob>) -> Result<Action, Error> {
        let jobs = Jobs::of(ctx.owned::<Job>()?);
        ctx.update_status(status::observed(&cron, &jobs, ctx.now())).await?;
        for job in jobs.beyond_history(&cron) {
            ctx.delete(&**job).await?;
        }
        if cron.spec.suspend == Some(true) || cron.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let schedule = Schedule::parse(&cron.spec.schedule)
            .map_err(|reason| Error::Schedule { schedule: cron.spec.schedule.clone(), reason })?;
        let seconds = cron.spec.starting_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let created = cron.creation_timestamp().map_or_else(|| ctx.now(), |time| time.0);
        let seen = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
        let last = jobs.last_scheduled().or(seen.map(|time| time.0)).unwrap_or(created);
        let due = schedule.due(last, seconds.map(Duration::from_secs), ctx.now())?;
        if let Some(time) = due.missed {
            start(&cron, &jobs, time, ctx).await?;
        }
        let wait = due.next.and_then(|next| Duration::try_from(next - ctx.now()).ok());
        Ok(wait.map_or_else(Action::await_change, Action::requeue))
    }
}

/// Starts a run, if those that are still active allow it.
async fn start(
    cron: &CronJob,
    jobs: &Jobs,
    time: windlass::jiff::Timestamp,
    ctx: &Context<CronJob>,
) -> Result<(), Error> {
    match cron.spec.concurrency_policy {
        ConcurrencyPolicy::Forbid if !jobs.active.is_empty() => return Ok(()),
        ConcurrencyPolicy::Replace => {
            for job in &jobs.active {
                ctx.delete(&**job).await?;
            }
        }
        _ => {}
    }
    let job = ctx.create_child(build::job(cron, time)).await?;
    ctx.event(Event::normal("Created", format!("Created Job {}", job.name_any())));
    Ok(())
}
