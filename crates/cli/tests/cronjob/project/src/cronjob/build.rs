//! The Job of one run, and what became of the Jobs of earlier ones. Pure.

use std::sync::Arc;

use windlass::{
    jiff::Timestamp,
    k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    kube::ResourceExt,
};

use super::api::CronJob;

/// When a Job should have started.
pub(super) const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// The Job of the run at a time. Its name follows from that time, so that one run is never made twice.
pub(super) fn job(cron: &CronJob, time: Timestamp) -> Job {
    let template = &cron.spec.job_template;
    let given = template.metadata.clone().unwrap_or_default();
    let mut annotations = given.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.into(), time.to_string());
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron.name_any(), time.as_second())),
            labels: given.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// The Jobs of a CronJob by what became of them, each from old to new.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) active: Vec<Arc<Job>>,
    pub(super) successful: Vec<Arc<Job>>,
    pub(super) failed: Vec<Arc<Job>>,
}

impl Jobs {
    pub(super) fn of(mut all: Vec<Arc<Job>>) -> Self {
        all.sort_by_key(|job| (scheduled_at(job), job.name_any()));
        let mut jobs = Self::default();
        for job in all {
            match finished(&job) {
                Some("Complete") => jobs.successful.push(job),
                Some(_) => jobs.failed.push(job),
                None => jobs.active.push(job),
            }
        }
        jobs
    }

    /// When the latest of them should have started.
    pub(super) fn last_scheduled(&self) -> Option<Timestamp> {
        let all = self.active.iter().chain(&self.successful).chain(&self.failed);
        all.filter_map(|job| scheduled_at(job)).max()
    }

    /// The oldest finished ones, beyond what the history keeps.
    pub(super) fn beyond_history(&self, cron: &CronJob) -> impl Iterator<Item = &Arc<Job>> {
        let beyond = |jobs: &Vec<Arc<Job>>, limit: Option<i32>| {
            let kept = limit.map_or(jobs.len(), |limit| usize::try_from(limit).unwrap_or(0));
            jobs.len().saturating_sub(kept)
        };
        let successful = beyond(&self.successful, cron.spec.successful_jobs_history_limit);
        let failed = beyond(&self.failed, cron.spec.failed_jobs_history_limit);
        self.successful.iter().take(successful).chain(self.failed.iter().take(failed))
    }
}

fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

/// How a Job has ended, if it has.
fn finished(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = conditions.iter().find(|condition| {
        condition.status == "True" && ["Complete", "Failed"].contains(&condition.type_.as_str())
    });
    ended.map(|condition| condition.type_.as_str())
}
