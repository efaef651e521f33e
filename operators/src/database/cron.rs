//! Schedules of backups: those of a CronJob, in the time zone of the spec, and not more often than each minute. Pure.

use std::time::Duration;

use windlass::{apimachinery::cron::Schedule, jiff::tz::TimeZone};

/// Reads a schedule; the error says which field is wrong and what to write instead.
pub(super) fn parse(text: &str) -> Result<Schedule, String> {
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        return Err(format!("{text:?} names a time zone; write it into spec.backup.timeZone"));
    }
    let schedule = Schedule::parse(text).map_err(|error| error.hint())?;
    if schedule.period().is_some_and(|period| period < Duration::from_mins(1)) {
        return Err(format!(
            "{text} is too often; write @every with a time of a minute or more such as @every 6h"
        ));
    }
    Ok(schedule)
}

/// The time zone of this name, such as `Europe/Rome`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}
