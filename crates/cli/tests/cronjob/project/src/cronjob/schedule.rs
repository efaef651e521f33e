//! When a CronJob is due. Pure: a schedule, the last run and the time come in, the run that is due and the next one leave.

use std::time::Duration;

use windlass::jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// More missed runs than this mean that the clock or the schedule is wrong.
const MOST_MISSED: usize = 100;

/// How far ahead the next run is looked for: a 29 February may be eight years away.
const HORIZON: i64 = 9 * 366 * DAY;
const DAY: i64 = 24 * 60 * 60;

/// A schedule that can be understood: for each field, a bit for each value that it allows.
#[derive(Debug)]
pub(super) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// With both days given, either is enough.
    either_day: bool,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// The latest run that should have started by now.
    pub(super) missed: Option<Timestamp>,
    /// When the next one starts.
    pub(super) next: Option<Timestamp>,
}

/// More runs were missed than can be counted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {MOST_MISSED} runs were missed; set or lower spec.startingDeadlineSeconds, or look at the clock"
)]
pub(super) struct TooManyMissed;

impl Schedule {
    /// Reads a schedule of five fields, in UTC.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!("must have five fields, has {}", fields.len()));
        };
        Ok(Self {
            minutes: field("minute", minutes, 0, 59)?,
            hours: field("hour", hours, 0, 23)?,
            days: field("day of the month", days, 1, 31)?,
            months: field("month", months, 1, 12)?,
            weekdays: field("day of the week", weekdays, 0, 6)?,
            either_day: days != "*" && weekdays != "*",
        })
    }

    /// The runs after a time, in order.
    fn after(&self, time: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next(time), |time| self.next(*time))
    }

    fn next(&self, time: Timestamp) -> Option<Timestamp> {
        let mut second = (time.as_second().div_euclid(60) + 1) * 60;
        let end = second + HORIZON;
        while second < end {
            let at = Timestamp::from_second(second).ok()?;
            let civil = at.to_zoned(TimeZone::UTC).datetime();
            if !self.has_day(civil) {
                second = (second.div_euclid(DAY) + 1) * DAY;
            } else if has(self.hours, civil.hour()) && has(self.minutes, civil.minute()) {
                return Some(at);
            } else {
                second += 60;
            }
        }
        None
    }

    fn has_day(&self, time: DateTime) -> bool {
        let day = has(self.days, time.day());
        let weekday = has(self.weekdays, time.weekday().to_sunday_zero_offset());
        has(self.months, time.month()) && if self.either_day { day || weekday } else { day && weekday }
    }

    /// What is due at `now`, if the last run was at `last` and a run may start late by `deadline` at most.
    pub(super) fn due(
        &self,
        last: Timestamp,
        deadline: Option<Duration>,
        now: Timestamp,
    ) -> Result<Due, TooManyMissed> {
        let earliest = deadline.and_then(|deadline| now.checked_sub(deadline).ok());
        let start = earliest.map_or(last, |earliest| last.max(earliest));
        let mut missed = None;
        for (count, time) in self.after(start).take_while(|time| *time <= now).enumerate() {
            if count >= MOST_MISSED {
                return Err(TooManyMissed);
            }
            missed = Some(time);
        }
        Ok(Due { missed, next: self.after(now).next() })
    }
}

fn has(set: u64, value: i8) -> bool {
    set & (1 << value) != 0
}

/// The values of one field: `*`, `*/5`, `1-5`, `1,15`, and these together.
fn field(name: &str, text: &str, least: u32, most: u32) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no {name}: it goes from {least} to {most}");
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, number(step)?),
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            None if part == range => (number(range)?, number(range)?),
            None => (number(range)?, most),
        };
        if from < least || to > most || from > to || step == 0 {
            return Err(wrong());
        }
        set |= (from..=to).step_by(step as usize).fold(0, |set, value| set | 1 << value);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-03-01T{text}Z").parse().unwrap()
    }

    fn every_five_minutes() -> Schedule {
        Schedule::parse("*/5 * * * *").unwrap()
    }

    #[test]
    fn of_several_missed_runs_the_latest_is_due() {
        let due = every_five_minutes().due(at("10:00:00"), None, at("10:17:30")).unwrap();
        assert_eq!(due, Due { missed: Some(at("10:15:00")), next: Some(at("10:20:00")) });
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let due = every_five_minutes().due(at("10:00:00"), None, at("10:04:59")).unwrap();
        assert_eq!(due, Due { missed: None, next: Some(at("10:05:00")) });
    }

    #[test]
    fn a_run_that_is_too_late_is_not_due() {
        let late = Some(Duration::from_mins(1));
        let due = every_five_minutes().due(at("10:00:00"), late, at("10:06:30")).unwrap();
        assert_eq!(due.missed, None);
        let due = every_five_minutes().due(at("10:00:00"), late, at("10:05:30")).unwrap();
        assert_eq!(due.missed, Some(at("10:05:00")));
    }

    #[test]
    fn a_day_of_missed_runs_is_an_error_unless_there_is_a_deadline() {
        let (last, now) = (at("00:00:00"), at("23:59:00"));
        assert_eq!(every_five_minutes().due(last, None, now), Err(TooManyMissed));
        assert!(every_five_minutes().due(last, Some(Duration::from_mins(10)), now).is_ok());
    }

    #[test]
    fn days_of_the_month_and_of_the_week_are_alternatives() {
        let next = |text: &str| Schedule::parse(text).unwrap().next(at("00:00:00")).unwrap().to_string();
        assert_eq!(next("30 4 * * 1-5"), "2026-03-02T04:30:00Z", "the first of March 2026 is a Sunday");
        assert_eq!(next("0 0 15 * 3"), "2026-03-04T00:00:00Z");
        assert_eq!(next("0 0 29 2 *"), "2028-02-29T00:00:00Z");
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in ["", "every minute", "* * * *", "61 * * * *", "*/0 * * * *", "5-1 * * * *"] {
            assert!(Schedule::parse(text).is_err(), "{text:?}");
        }
    }
}
