//! Cron schedules as CronJobs take them: five fields, or a word such as `@daily`, and when they are due next.
//!
//! Kubernetes leaves schedules to a Go library, and its rules are not those of every cron:
//!
//! - The fields are minute, hour, day of the month, month and day of the week. Sunday is 0 and never 7; months and days
//!   of the week have names of three letters. A field is `*` (or `?`), numbers, ranges `a-b`, each with a step `/n`, and
//!   lists of these. `5/10` is `5-59/10`.
//! - A day must fit both of its fields where one of them is `*`, and either of them otherwise. `*/2` is not `*`.
//! - The words are `@yearly` (`@annually`), `@monthly`, `@weekly`, `@daily` (`@midnight`), `@hourly`, and `@every` with a
//!   [duration](crate::duration) such as `@every 1h30m`.
//! - A schedule may begin with its own time zone, `TZ=Europe/Rome 0 4 * * *`. The API takes such a one no longer, and
//!   has a field for it.
//! - In the hour that a clock change skips nothing is due, and what falls into the hour that comes twice is due twice.
//!
//! ```
//! use jiff::{Timestamp, tz::TimeZone};
//! use windlass_apimachinery::cron::Schedule;
//!
//! let nightly = Schedule::parse("30 4 * * MON-FRI")?;
//! let friday: Timestamp = "2026-02-27T12:00:00Z".parse()?;
//! let monday: Timestamp = "2026-03-02T04:30:00Z".parse()?;
//! assert_eq!(nightly.next_after(friday, &TimeZone::UTC), Some(monday));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod parse;
#[cfg(test)]
mod tests;

use std::{str::FromStr, time::Duration};

use jiff::{Span, Timestamp, Zoned, tz::TimeZone};

pub use self::parse::{Field, ParseError};

/// How far ahead a time is looked for: what is not due in so many years never is.
const YEARS: i16 = 5;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    times: Times,
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Times {
    At(Box<Fields>),
    Every(Duration),
}

/// The times that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    minute: Set,
    hour: Set,
    day: Set,
    month: Set,
    weekday: Set,
}

/// Which values of one field fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Set {
    /// A bit for each value.
    values: u64,
    /// Whether the field was left open: then the other one of the two fields of days decides.
    open: bool,
}

impl Set {
    fn contains(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.values & (1 << value) != 0)
    }
}

impl Schedule {
    /// Reads a schedule. The error is worded as Kubernetes words it; [`ParseError::hint`] says what to write instead.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::schedule(text)
    }

    /// The first time after `after` at which it is due; `None` if there is none in the next years, as for 31 February.
    ///
    /// The fields are meant in `zone`, unless the schedule [names a zone](Self::time_zone) itself.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.times {
            Times::Every(period) => Timestamp::from_second(after.as_second()).ok()?.checked_add(*period).ok(),
            Times::At(fields) => fields.next_after(after, self.zone.as_ref().unwrap_or(zone)),
        }
    }

    /// The time between two runs of an `@every` schedule, which is counted from the last run and not by the clock.
    pub fn period(&self) -> Option<Duration> {
        match self.times {
            Times::Every(period) => Some(period),
            Times::At(_) => None,
        }
    }

    /// The time zone that the schedule itself names (`TZ=`, `CRON_TZ=`).
    pub fn time_zone(&self) -> Option<&TimeZone> {
        self.zone.as_ref()
    }
}

impl FromStr for Schedule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Fields {
    fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60) + 1;
        let mut time = Timestamp::from_second(minute * 60).ok()?.to_zoned(zone.clone());
        let last = time.year().checked_add(YEARS)?;
        while time.year() <= last {
            time = if !self.month.contains(time.month()) {
                time.first_of_month().ok()?.checked_add(Span::new().months(1)).ok()?.start_of_day().ok()?
            } else if !self.has_day(&time) {
                time.tomorrow().ok()?.start_of_day().ok()?
            } else if !self.hour.contains(time.hour()) {
                let passed = Span::new().minutes(i64::from(time.minute()));
                time.checked_sub(passed).ok()?.checked_add(Span::new().hours(1)).ok()?
            } else if !self.minute.contains(time.minute()) {
                time.checked_add(Span::new().minutes(1)).ok()?
            } else {
                return Some(time.timestamp());
            };
        }
        None
    }

    fn has_day(&self, time: &Zoned) -> bool {
        let day = self.day.contains(time.day());
        let weekday = self.weekday.contains(time.weekday().to_sunday_zero_offset());
        if self.day.open || self.weekday.open { day && weekday } else { day || weekday }
    }
}
