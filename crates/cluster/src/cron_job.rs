//! The CronJob controller: starts a Job whenever its time has come, and forgets the oldest ones.
//!
//! Enters: a CronJob and its Jobs. Leaves: Jobs created and deleted, and the status. What is due ([`due`]) is a pure
//! function of the schedule and the clock.

use std::sync::{Arc, LazyLock};

use windlass::{
    Action, Context, Controller, Event, Reconciler,
    apimachinery::cron::Schedule,
    jiff::{
        Timestamp,
        tz::{TimeZone, TimeZoneDatabase},
    },
    k8s_openapi::{
        api::{
            batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
            core::v1::ObjectReference,
        },
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    },
    owner, rbac,
};

use crate::{job, pod_control, pods};

mod due;

const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The time zones that come with the program: those of the machine may differ from one machine to the next, or be missing.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<CronJobs> {
    Controller::new(CronJobs)
        .name("cronjob-controller")
        .core_events("cronjob-controller")
        .owns::<Job>()
        .concurrency(4)
        .permits([rbac::rule("batch", ["jobs"], ["create", "delete"])])
}

/// Reconciles CronJobs.
pub(crate) struct CronJobs;

impl Reconciler for CronJobs {
    type Resource = CronJob;
    type Error = windlass::Error;

    async fn reconcile(&self, cron: Arc<CronJob>, ctx: &Context<CronJob>) -> Result<Action, windlass::Error> {
        let spec = cron.spec.clone();
        let status = cron.status.clone().unwrap_or_default();
        let mut run = Run { ctx, cron, spec, status };
        let jobs = ctx.owned::<Job>()?;
        // First: of a Job that is not remembered nobody is told that it has ended.
        let cleaned = run.clean_up(&jobs).await;
        let synced = run.sync(&jobs).await;
        // What was started must be known, whatever else went wrong: a run that is forbidden to overlap depends on it.
        ctx.patch_status(&*run.cron, &run.status).await?;
        crate::retry_conflicts(synced.and_then(|action| cleaned.map(|()| action)))
    }
}

/// One run: the CronJob, and its status as it grows in the course of the run.
struct Run<'a> {
    ctx: &'a Context<CronJob>,
    cron: Arc<CronJob>,
    spec: CronJobSpec,
    status: CronJobStatus,
}

impl Run<'_> {
    async fn sync(&mut self, jobs: &[Arc<Job>]) -> windlass::Result<Action> {
        self.follow(jobs);
        self.forget_missing(jobs).await?;
        if pods::is_terminating(&self.cron.metadata) {
            return Ok(Action::await_change());
        }
        let Some(plan) = self.plan() else { return Ok(Action::await_change()) };
        if self.spec.suspend == Some(true) {
            return Ok(Action::await_change());
        }
        let now = self.ctx.now();
        let due = match plan.due(&self.cron, &self.spec, now) {
            Ok(due) => due,
            Err(why) => {
                self.warn("InvalidSchedule", format!("invalid schedule: {} : {why}", self.spec.schedule));
                return Ok(Action::await_change());
            }
        };
        if let Some(time) = due.time {
            if due.missed_many() {
                let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check \
                            clock skew";
                self.warn("TooManyMissedTimes", note.to_owned());
            }
            self.start(time, &plan).await?;
        }
        // The status of this run says from when on the next one counts.
        let mut cron = CronJob::clone(&self.cron);
        cron.status = Some(self.status.clone());
        Ok(plan.wait(&cron, now).map_or_else(Action::await_change, Action::requeue))
    }

    fn warn(&self, reason: &'static str, note: String) {
        self.ctx.event(Event::warning(reason, note).action("Schedule"));
    }

    fn tell(&self, reason: &'static str, note: String) {
        self.ctx.event(Event::normal(reason, note).action("Schedule"));
    }

    /// The schedule, if it and its time zone can be read.
    fn plan(&self) -> Option<due::Plan> {
        let zone = match self.spec.time_zone.as_deref() {
            None => TimeZone::UTC,
            Some(name) => match ZONES.get(name) {
                Ok(zone) => zone,
                Err(_) => {
                    let note = format!("invalid timeZone: {name:?}: unknown time zone {name}");
                    self.warn("UnknownTimeZone", note);
                    return None;
                }
            },
        };
        match Schedule::parse(&self.spec.schedule) {
            Ok(schedule) => Some(due::Plan { schedule, zone }),
            Err(why) => {
                let note = format!("unparseable schedule: {:?} : {why}", self.spec.schedule);
                self.warn("UnparseableSchedule", note);
                None
            }
        }
    }

    fn active(&mut self) -> &mut Vec<ObjectReference> {
        self.status.active.get_or_insert_default()
    }

    fn remove_active(&mut self, uid: Option<&String>) -> bool {
        let active = self.active();
        let before = active.len();
        active.retain(|reference| reference.uid.as_ref() != uid);
        let removed = active.len() < before;
        self.status.active = self.status.active.take().filter(|active| !active.is_empty());
        removed
    }

    /// Takes note of Jobs that have ended.
    fn follow(&mut self, jobs: &[Arc<Job>]) {
        for job in jobs {
            let (uid, name) = (job.metadata.uid.as_ref(), job.metadata.name.as_deref().unwrap_or_default());
            let Some(end) = job::finished(job) else {
                if !self.active().iter().any(|reference| reference.uid.as_ref() == uid) {
                    let note = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.warn("UnexpectedJob", note);
                }
                continue;
            };
            if self.remove_active(uid) {
                let note = format!("Saw completed job: {name}, condition: {}", end.type_);
                self.tell("SawCompletedJob", note);
            }
            let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
            let last = self.status.last_successful_time.as_ref().map(|time| time.0);
            if let Some(completed) = completed.filter(|time| last.is_none_or(|last| time.0 > last)) {
                self.status.last_successful_time = Some(completed);
            }
        }
        self.status.active = self.status.active.take().filter(|active| !active.is_empty());
    }

    /// Forgets Jobs that somebody has deleted.
    async fn forget_missing(&mut self, jobs: &[Arc<Job>]) -> windlass::Result<()> {
        for reference in self.status.active.clone().unwrap_or_default() {
            if jobs.iter().any(|job| job.metadata.uid == reference.uid) {
                continue;
            }
            let name = reference.name.as_deref().unwrap_or_default();
            // The cache may not know it yet.
            if self.ctx.fetch::<Job>(reference.namespace.as_deref(), name).await?.is_none() {
                self.tell("MissingJob", format!("Active job went missing: {name}"));
                self.remove_active(reference.uid.as_ref());
            }
        }
        Ok(())
    }

    /// Starts the Job of a time, unless it was started or something forbids it.
    async fn start(&mut self, time: Timestamp, plan: &due::Plan) -> windlass::Result<()> {
        let cron = self.cron.metadata.name.as_deref().unwrap_or_default();
        // The name tells the time, so the same Job is never made twice.
        let name = format!("{cron}-{}", time.as_second().div_euclid(60));
        let known = self.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == time)
            || self.active().iter().any(|reference| reference.name.as_deref() == Some(&name));
        if known {
            return Ok(());
        }
        let running = !self.active().is_empty();
        match self.spec.concurrency_policy.as_deref() {
            Some("Forbid") if running => {
                let note =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.tell("JobAlreadyActive", note.to_owned());
                return Ok(());
            }
            Some("Replace") => self.replace().await?,
            _ => {}
        }
        let job = self.job(&name, time, plan);
        let created = match self.ctx.create_child(job).await {
            Ok(job) => {
                self.tell("SuccessfulCreate", format!("Created job {name}"));
                job
            }
            Err(error) if error.is_already_exists() => {
                let there = self.ctx.fetch::<Job>(self.cron.metadata.namespace.as_deref(), &name).await?;
                let uid = self.cron.metadata.uid.as_deref().unwrap_or_default();
                match there.filter(|job| owner::is_controlled_by(&job.metadata, uid)) {
                    Some(job) => Arc::new(job),
                    None => return Ok(()),
                }
            }
            Err(error) => {
                if !pod_control::namespace_is_terminating(&error) {
                    self.warn("FailedCreate", format!("Error creating job: {}", pod_control::reason(&error)));
                }
                return Err(error);
            }
        };
        self.active().push(reference(&created));
        self.status.last_schedule_time = Some(Time(time));
        Ok(())
    }

    /// Deletes the Jobs that still run.
    async fn replace(&mut self) -> windlass::Result<()> {
        for reference in self.status.active.clone().unwrap_or_default() {
            let name = reference.name.as_deref().unwrap_or_default();
            if let Some(job) = self.ctx.get::<Job>(reference.namespace.as_deref(), name)? {
                self.delete(&job).await?;
            }
        }
        Ok(())
    }

    async fn delete(&mut self, job: &Arc<Job>) -> windlass::Result<()> {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        if let Err(error) = self.ctx.delete(&**job).await {
            self.warn("FailedDelete", format!("Deleted job: {}", pod_control::reason(&error)));
            return Err(error);
        }
        self.remove_active(job.metadata.uid.as_ref());
        self.tell("SuccessfulDelete", format!("Deleted job {name}"));
        Ok(())
    }

    fn job(&self, name: &str, time: Timestamp, plan: &due::Plan) -> Job {
        let meta = self.spec.job_template.metadata.clone().unwrap_or_default();
        let mut annotations = meta.annotations.unwrap_or_default();
        annotations.insert(SCHEDULED_AT.into(), local(time, plan));
        Job {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: meta.labels,
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: self.spec.job_template.spec.clone(),
            status: None,
        }
    }

    /// Deletes the oldest Jobs beyond what is to be remembered.
    async fn clean_up(&mut self, jobs: &[Arc<Job>]) -> windlass::Result<()> {
        let limits = [
            ("Complete", self.spec.successful_jobs_history_limit),
            ("Failed", self.spec.failed_jobs_history_limit),
        ];
        for (type_, limit) in limits {
            let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
            let ended = |job: &&Arc<Job>| {
                !pods::is_terminating(&job.metadata)
                    && job::finished(job).is_some_and(|end| end.type_ == type_)
            };
            let mut ended: Vec<Arc<Job>> = jobs.iter().filter(ended).cloned().collect();
            let started =
                |job: &Job| job.status.as_ref().and_then(|status| status.start_time.as_ref().map(|t| t.0));
            ended.sort_by_key(|job| (started(job), job.metadata.name.clone()));
            for job in ended.iter().take(ended.len().saturating_sub(limit)) {
                self.delete(job).await?;
            }
        }
        Ok(())
    }
}

/// A time as RFC 3339 in its zone.
fn local(time: Timestamp, plan: &due::Plan) -> String {
    let zoned = time.to_zoned(plan.zone.clone());
    let form = if zoned.offset().is_zero() { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    zoned.strftime(form).to_string()
}

fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".into()),
        kind: Some("Job".into()),
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}
