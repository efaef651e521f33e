//! What the API server asks before it stores a CronJob: what was left out is filled in, what cannot work is refused.

use windlass::{
    kube::ResourceExt,
    webhook::{Defaulter, Request, Validator, Verdict},
};

use super::{api::CronJob, schedule::Schedule};

/// A Job's name ends with `-` and the time of its run, and has 63 characters at most.
const LONGEST_NAME: usize = 52;

/// Fills in what was left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults;

impl Defaulter for Defaults {
    type Resource = CronJob;

    async fn default(&self, cron: &mut CronJob, _: &Request) -> Verdict {
        cron.spec.suspend.get_or_insert(false);
        cron.spec.successful_jobs_history_limit.get_or_insert(3);
        cron.spec.failed_jobs_history_limit.get_or_insert(1);
        Verdict::allow()
    }
}

/// Refuses what cannot work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules;

impl Validator for Rules {
    type Resource = CronJob;

    async fn validate_create(&self, cron: &CronJob, _: &Request) -> Verdict {
        judge(cron)
    }

    async fn validate_update(&self, _: &CronJob, cron: &CronJob, _: &Request) -> Verdict {
        judge(cron)
    }
}

fn judge(cron: &CronJob) -> Verdict {
    let mut verdict = Verdict::allow();
    let name = cron.name_any();
    if name.len() > LONGEST_NAME {
        verdict.invalid("metadata.name", &name, format!("must be no more than {LONGEST_NAME} characters"));
    }
    if let Err(reason) = Schedule::parse(&cron.spec.schedule) {
        verdict.invalid("spec.schedule", &cron.spec.schedule, reason);
    }
    verdict
}
