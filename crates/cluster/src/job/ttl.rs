//! Jobs that are over and have outlived their `ttlSecondsAfterFinished`.

use std::{sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Reconciler,
    jiff::Timestamp,
    k8s_openapi::api::batch::v1::Job,
    kube::api::{DeleteParams, Preconditions, PropagationPolicy},
    rbac,
};

use crate::{pods, resources};

/// Why a Job that is over could not be cleaned up.
#[derive(Debug, thiserror::Error)]
#[error("failed to delete a finished Job")]
pub(crate) struct Error(#[source] windlass::kube::Error);

impl windlass::ReconcileError for Error {
    fn category(&self) -> &'static str {
        "FailedDelete"
    }
}

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<FinishedJobs> {
    Controller::new(FinishedJobs).name("ttl-after-finished-controller").permits([rbac::rule(
        "batch",
        ["jobs"],
        ["delete"],
    )])
}

/// Deletes Jobs some time after their end.
pub(crate) struct FinishedJobs;

impl Reconciler for FinishedJobs {
    type Resource = Job;
    type Error = Error;

    async fn reconcile(&self, job: Arc<Job>, ctx: &Context<Job>) -> Result<Action, Error> {
        let Some(left) = left(&job, ctx.now()).filter(|_| !pods::is_terminating(&job.metadata)) else {
            return Ok(Action::await_change());
        };
        if left > Duration::ZERO {
            return Ok(Action::requeue(left));
        }
        let api = resources::untyped::<Job>(ctx.client(), ctx.key().namespace().unwrap_or_default());
        // Whoever waits for the Job to be gone can rely on its Pods being gone too. If somebody changed the Job
        // in the meantime, its time may be another.
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions {
                uid: job.metadata.uid.clone(),
                resource_version: job.metadata.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        match api.delete(ctx.key().name(), &params).await {
            Ok(_) => Ok(Action::await_change()),
            Err(windlass::kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Ok(Action::await_change())
            }
            Err(source) => Err(Error(source)),
        }
    }
}

/// How long a Job still lives; `None` for ever.
fn left(job: &Job, now: Timestamp) -> Option<Duration> {
    let ttl = Duration::from_secs(u64::try_from(job.spec.as_ref()?.ttl_seconds_after_finished?).unwrap_or(0));
    let end = super::finished(job)?.last_transition_time.as_ref()?.0;
    Some(ttl.saturating_sub(Duration::try_from(now.duration_since(end)).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::at;

    #[test]
    fn the_time_runs_from_the_end() {
        let mut job: Job = from_value(json!({
            "spec": {"template": {}, "ttlSecondsAfterFinished": 30},
            "status": {"conditions": [{"type": "Failed", "status": "True",
                "lastTransitionTime": "1970-01-01T00:01:00Z"}]},
        }))
        .unwrap();
        assert_eq!(left(&job, at(70)), Some(Duration::from_secs(20)));
        assert_eq!(left(&job, at(100)), Some(Duration::ZERO));
        job.spec.as_mut().unwrap().ttl_seconds_after_finished = None;
        assert_eq!(left(&job, at(100)), None);
    }
}
