//! What is reported about a CronJob. Pure: its Jobs come in, a status leaves.

use windlass::{
    conditions::{self, READY, is_false, is_true},
    jiff::Timestamp,
    k8s_openapi::{
        api::batch::v1::Job, api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::Time,
    },
    kube::ResourceExt,
};

use super::{
    api::{CronJob, CronJobStatus},
    build::Jobs,
};

/// The status of a CronJob with these Jobs.
pub(super) fn observed(cron: &CronJob, jobs: &Jobs, now: Timestamp) -> CronJobStatus {
    let mut status = cron.status.clone().unwrap_or_default();
    status.observed_generation = cron.metadata.generation;
    status.active = jobs.active.iter().map(|job| reference(job)).collect();
    // It stays when the last Job goes with the history.
    status.last_schedule_time = jobs.last_scheduled().map(Time).or(status.last_schedule_time);
    let ready = if cron.spec.suspend == Some(true) {
        is_false(READY, "Suspended", "spec.suspend is true")
    } else {
        is_true(READY, "Scheduled", "Jobs start when the schedule says so")
    };
    conditions::set(&mut status.conditions, ready, cron, now);
    status
}

fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".into()),
        kind: Some("Job".into()),
        name: Some(job.name_any()),
        namespace: job.namespace(),
        uid: job.uid(),
        ..ObjectReference::default()
    }
}
