//! Schedules of CronJobs: five fields or a name, and what is wrong with those that cannot be read.

use windlass_apimachinery::cron::Schedule;

/// Checks a schedule.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    Schedule::parse(schedule).map(drop).map_err(|error| error.to_string())
}
