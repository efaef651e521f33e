//! Cron expressions of five fields: whether one is right, and when it is due next in a time zone. Pure.

use std::collections::BTreeSet;

use windlass::jiff::{Timestamp, ToSpan, tz::TimeZone};

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    days: BTreeSet<i8>,
    months: BTreeSet<i8>,
    weekdays: BTreeSet<i8>,
    /// Whether the days are any: then only the weekdays decide, and the other way round.
    any_day: bool,
    any_weekday: bool,
}

impl Schedule {
    /// Reads an expression; the error says which field is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!("{text:?} has {} fields, and a schedule has 5", fields.len()));
        };
        let mut weekdays = field("day of the week", weekday, 0, 7)?;
        if weekdays.remove(&7) {
            weekdays.insert(0);
        }
        Ok(Self {
            minutes: field("minute", minute, 0, 59)?,
            hours: field("hour", hour, 0, 23)?,
            days: field("day of the month", day, 1, 31)?,
            months: field("month", month, 1, 12)?,
            weekdays,
            any_day: day.starts_with('*'),
            any_weekday: weekday.starts_with('*'),
        })
    }

    /// The first time after `now` at which the schedule is due; none within eight years is never.
    pub(super) fn next(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = now.to_zoned(zone.clone()).datetime();
        let mut date = start.date();
        for _ in 0..(8 * 366) {
            if self.months.contains(&date.month()) && self.is_day(date) {
                let times =
                    self.hours.iter().flat_map(|hour| self.minutes.iter().map(|minute| (*hour, *minute)));
                let mut due = times.map(|(hour, minute)| date.at(hour, minute, 0, 0));
                if let Some(due) = due.find(|due| *due > start) {
                    return due.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn is_day(&self, date: windlass::jiff::civil::Date) -> bool {
        let day = self.days.contains(&date.day());
        let weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
        match (self.any_day, self.any_weekday) {
            (false, false) => day || weekday,
            _ => day && weekday,
        }
    }
}

/// The time zone of this name, such as `Europe/Rome`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

fn field(name: &str, text: &str, least: i8, most: i8) -> Result<BTreeSet<i8>, String> {
    let mut set = BTreeSet::new();
    for part in text.split(',') {
        set.extend(range(part, least, most).ok_or_else(|| {
            format!(
                "the {name} is {part:?}: write numbers from {least} to {most}, ranges a-b, steps */n, or *"
            )
        })?);
    }
    Ok(set)
}

fn range(part: &str, least: i8, most: i8) -> Option<impl Iterator<Item = i8>> {
    let (span, step) = match part.split_once('/') {
        Some((span, step)) => (span, step.parse::<usize>().ok().filter(|step| *step > 0)?),
        None => (part, 1),
    };
    let (from, to) = match span.split_once('-') {
        _ if span == "*" => (least, most),
        Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
        None if part.contains('/') => (span.parse().ok()?, most),
        None => (span.parse().ok()?, span.parse().ok()?),
    };
    (least <= from && from <= to && to <= most).then(|| (from..=to).step_by(step))
}
