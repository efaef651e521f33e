//! Which run of a CronJob is due, and when the next one will be. Pure.

use std::time::Duration;

use windlass::{
    apimachinery::cron::Schedule,
    jiff::{Timestamp, tz::TimeZone},
    k8s_openapi::api::batch::v1::{CronJob, CronJobSpec},
};

/// So long after its time a run is looked for, so that it is certainly due.
const AFTERWARDS: Duration = Duration::from_millis(100);

/// More missed runs than this are worth a warning.
const MANY: i64 = 100;

/// What a schedule says about now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// From when on runs count.
    earliest: Timestamp,
    /// The last run that should have started by now.
    pub(super) time: Option<Timestamp>,
    missed: i64,
}

impl Due {
    /// Whether so many runs were missed that something may be wrong.
    pub(super) fn missed_many(&self) -> bool {
        self.missed > MANY
    }
}

/// A schedule in its time zone.
pub(super) struct Plan {
    pub(super) schedule: Schedule,
    pub(super) zone: TimeZone,
}

impl Plan {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next_after(after, &self.zone)
    }

    /// The run that is due. The error says why the schedule cannot be kept.
    pub(super) fn due(&self, job: &CronJob, spec: &CronJobSpec, now: Timestamp) -> Result<Due, String> {
        self.last(job, spec.starting_deadline_seconds, now)
    }

    fn last(&self, job: &CronJob, deadline: Option<i64>, now: Timestamp) -> Result<Due, String> {
        let created = job.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let last = job.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
        let mut earliest = last.map_or(created, |time| time.0);
        if let Some(seconds) = deadline.and_then(|seconds| u64::try_from(seconds).ok()) {
            let limit = now.checked_sub(Duration::from_secs(seconds)).unwrap_or(earliest);
            earliest = earliest.max(limit);
        }
        let nothing = Due { earliest, time: None, missed: 0 };
        let never = || "time difference between two schedules is less than 1 second".to_owned();
        let first = self.next(earliest).ok_or_else(never)?;
        if now < first {
            return Ok(nothing);
        }
        let second = self.next(first).ok_or_else(never)?;
        if now < second {
            return Ok(Due { time: Some(first), ..nothing });
        }
        let period = (second.as_second() - first.as_second()).max(1);
        let missed = (now.as_second() - first.as_second()) / period + 1;
        // Not every period is as long as the first: the last stretch is walked.
        let near = first.as_second() + (missed - 2) * period;
        let mut time = None;
        let mut candidate = Timestamp::from_second(near).ok().and_then(|near| self.next(near));
        while let Some(run) = candidate.filter(|run| *run <= now) {
            time = Some(run);
            candidate = self.next(run);
        }
        Ok(Due { time, missed, ..nothing })
    }

    /// How long until the next run.
    pub(super) fn wait(&self, job: &CronJob, now: Timestamp) -> Option<Duration> {
        let from = match self.last(job, None, now) {
            Ok(due) => due.time.unwrap_or(if due.missed == 0 { due.earliest } else { now }),
            Err(_) => now,
        };
        let next = self.next(from)?;
        Some(Duration::try_from(next.duration_since(now)).unwrap_or_default() + AFTERWARDS)
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;

    fn plan(text: &str) -> Plan {
        Plan { schedule: Schedule::parse(text).unwrap(), zone: TimeZone::UTC }
    }

    fn job(created: &str, last: Option<&str>, deadline: Option<i64>) -> CronJob {
        from_value(json!({
            "metadata": {"creationTimestamp": created},
            "spec": {"schedule": "", "jobTemplate": {}, "startingDeadlineSeconds": deadline},
            "status": {"lastScheduleTime": last},
        }))
        .unwrap()
    }

    fn due(plan: &Plan, job: &CronJob, now: &str) -> (Option<String>, bool) {
        let due = plan.due(job, &job.spec.clone(), now.parse().unwrap()).unwrap();
        (due.time.map(|time| time.to_string()), due.missed_many())
    }

    #[test]
    fn the_last_run_that_was_missed_is_due() {
        let every_five = plan("*/5 * * * *");
        let new = job("2026-01-01T10:02:00Z", None, None);
        assert_eq!(due(&every_five, &new, "2026-01-01T10:04:59Z"), (None, false));
        assert_eq!(
            due(&every_five, &new, "2026-01-01T10:05:00Z"),
            (Some("2026-01-01T10:05:00Z".into()), false)
        );
        assert_eq!(
            due(&every_five, &new, "2026-01-01T10:17:00Z"),
            (Some("2026-01-01T10:15:00Z".into()), false)
        );
        assert_eq!(
            due(&every_five, &new, "2026-01-02T10:17:00Z"),
            (Some("2026-01-02T10:15:00Z".into()), true)
        );
        let ran = job("2026-01-01T10:02:00Z", Some("2026-01-01T10:15:00Z"), None);
        assert_eq!(due(&every_five, &ran, "2026-01-01T10:17:00Z"), (None, false));
    }

    #[test]
    fn a_deadline_limits_how_late_a_run_may_start() {
        let hourly = plan("0 * * * *");
        let late = job("2026-01-01T00:30:00Z", None, Some(60));
        assert_eq!(due(&hourly, &late, "2026-01-01T03:00:59Z").0.as_deref(), Some("2026-01-01T03:00:00Z"));
        assert_eq!(due(&hourly, &late, "2026-01-01T03:01:01Z").0, None);
    }

    #[test]
    fn the_wait_ends_just_after_the_next_run() {
        let hourly = plan("0 * * * *");
        let new = job("2026-01-01T00:30:00Z", None, None);
        let wait = hourly.wait(&new, "2026-01-01T00:59:00Z".parse().unwrap()).unwrap();
        assert_eq!(wait, Duration::from_mins(1) + AFTERWARDS);
    }

    #[test]
    fn irregular_schedules_are_walked() {
        let workdays = plan("30 6-16/4 * * 1-5");
        // Friday evening to Monday noon.
        let ran = job("2026-01-01T00:00:00Z", Some("2026-01-02T14:30:00Z"), None);
        assert_eq!(due(&workdays, &ran, "2026-01-05T12:00:00Z").0.as_deref(), Some("2026-01-05T10:30:00Z"));
    }
}
