//! Cron schedules: five fields, or a word such as `@hourly`, as CronJobs take them. Pure.
//!
//! A day must fit both of its fields where one of them is `*`, and either of them otherwise. In the hour that a
//! clock change skips nothing runs, and what falls into the hour that comes twice runs twice.

use std::time::Duration;

use windlass::jiff::{SignedDuration, Span, Timestamp, Zoned, tz::TimeZone};

/// How far ahead a time is looked for.
const YEARS: i16 = 5;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// At certain times.
    At(Box<Fields>),
    /// Again and again after this time.
    Every(Duration),
}

/// The times that fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

/// Which values of one field fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    values: u64,
    /// Whether the field was left open.
    open: bool,
}

impl Field {
    fn fits(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.values & (1 << value) != 0)
    }
}

/// Reads a schedule; the error says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Schedule, String> {
    let text = text.trim();
    if let Some(word) = text.strip_prefix('@') {
        return named(word);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    };
    Ok(Schedule::At(Box::new(Fields {
        minute: field(minute, 0, 59, &[])?,
        hour: field(hour, 0, 23, &[])?,
        day: field(day, 1, 31, &[])?,
        month: field(month, 1, 12, &MONTHS)?,
        weekday: field(weekday, 0, 6, &DAYS)?,
    })))
}

fn named(word: &str) -> Result<Schedule, String> {
    let fields = match word {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        _ => {
            let every =
                word.strip_prefix("every ").ok_or_else(|| format!("unrecognized descriptor: @{word}"))?;
            let every: SignedDuration =
                every.parse().map_err(|_| format!("failed to parse duration @{word}"))?;
            let every = Duration::try_from(every).map_err(|_| format!("failed to parse duration @{word}"))?;
            return Ok(Schedule::Every(Duration::from_secs(every.as_secs().max(1))));
        }
    };
    parse(fields)
}

fn field(text: &str, least: u32, most: u32, names: &[&str]) -> Result<Field, String> {
    let mut all = Field::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let one = range(part, least, most, names)?;
        all.values |= one.values;
        all.open |= one.open;
    }
    Ok(all)
}

fn range(part: &str, least: u32, most: u32, names: &[&str]) -> Result<Field, String> {
    let number = |text: &str| -> Result<u32, String> {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        match named.and_then(|position| u32::try_from(position).ok()) {
            Some(position) => Ok(position + least),
            None => text.parse().map_err(|_| format!("failed to parse int from {text}")),
        }
    };
    let (bounds, step) = match part.split('/').collect::<Vec<_>>()[..] {
        [bounds] => (bounds, None),
        [bounds, step] => (bounds, Some(number(step)?)),
        _ => return Err(format!("too many slashes: {part}")),
    };
    let open = matches!(bounds, "*" | "?");
    let (first, last) = match bounds.split('-').collect::<Vec<_>>()[..] {
        _ if open => (least, most),
        // With a step a single number is a beginning.
        [one] if step.is_some() => (number(one)?, most),
        [one] => (number(one)?, number(one)?),
        [first, last] => (number(first)?, number(last)?),
        _ => return Err(format!("too many hyphens: {part}")),
    };
    if first < least {
        return Err(format!("beginning of range ({first}) below minimum ({least}): {part}"));
    }
    if last > most {
        return Err(format!("end of range ({last}) above maximum ({most}): {part}"));
    }
    if first > last {
        return Err(format!("beginning of range ({first}) beyond end of range ({last}): {part}"));
    }
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    let values = (first..=last).step_by(step as usize).fold(0, |values, value| values | 1_u64 << value);
    Ok(Field { values, open: open && step == 1 })
}

impl Schedule {
    /// The first time after `after`; `None` if there is none in the next years.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Every(period) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*period).ok()
            }
            Self::At(fields) => fields.next(after, zone),
        }
    }
}

impl Fields {
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60) + 1;
        let mut time = Timestamp::from_second(minute * 60).ok()?.to_zoned(zone.clone());
        let last = time.year() + YEARS;
        while time.year() <= last {
            time = if !self.month.fits(time.month()) {
                time.first_of_month().ok()?.checked_add(Span::new().months(1)).ok()?.start_of_day().ok()?
            } else if !self.day_fits(&time) {
                time.tomorrow().ok()?.start_of_day().ok()?
            } else if !self.hour.fits(time.hour()) {
                let passed = Span::new().minutes(i64::from(time.minute()));
                time.checked_sub(passed).ok()?.checked_add(Span::new().hours(1)).ok()?
            } else if !self.minute.fits(time.minute()) {
                time.checked_add(Span::new().minutes(1)).ok()?
            } else {
                return Some(time.timestamp());
            };
        }
        None
    }

    fn day_fits(&self, time: &Zoned) -> bool {
        let day = self.day.fits(time.day());
        let weekday = self.weekday.fits(time.weekday().to_sunday_zero_offset());
        if self.day.open || self.weekday.open { day && weekday } else { day || weekday }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn following(schedule: &str, after: &str, zone: &str, count: usize) -> Vec<String> {
        let schedule = parse(schedule).unwrap();
        let zone = TimeZone::get(zone).unwrap();
        let mut time: Timestamp = after.parse().unwrap();
        let mut times = Vec::new();
        for _ in 0..count {
            time = schedule.next(time, &zone).unwrap();
            times.push(time.to_string());
        }
        times
    }

    #[test]
    fn fields_steps_ranges_and_names_are_understood() {
        let utc = |schedule: &str, after: &str| following(schedule, after, "UTC", 1).remove(0);
        assert_eq!(utc("*/15 * * * *", "2026-03-01T10:07:30Z"), "2026-03-01T10:15:00Z");
        assert_eq!(utc("0 0 * * *", "2026-12-31T00:00:00Z"), "2027-01-01T00:00:00Z");
        assert_eq!(utc("5 4 * JAN-MAR mon", "2026-03-31T00:00:00Z"), "2027-01-04T04:05:00Z");
        assert_eq!(utc("0 10/6 * * *", "2026-03-01T11:00:00Z"), "2026-03-01T16:00:00Z");
        assert_eq!(utc("0 0 29 2 *", "2026-03-01T00:00:00Z"), "2028-02-29T00:00:00Z");
        assert_eq!(utc("@hourly", "2026-03-01T11:00:00Z"), "2026-03-01T12:00:00Z");
        assert_eq!(utc("@every 90s", "2026-03-01T11:00:00.5Z"), "2026-03-01T11:01:30Z");
    }

    #[test]
    fn a_day_of_month_or_of_week_is_enough_when_both_are_given() {
        // The 13th, and every Friday.
        assert_eq!(
            following("0 0 13 * 5", "2026-03-01T00:00:00Z", "UTC", 3),
            ["2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z", "2026-03-20T00:00:00Z"]
        );
    }

    #[test]
    fn clock_changes_skip_and_repeat() {
        // 02:30 does not exist on 8 March 2026 in New York.
        assert_eq!(
            following("30 2 * * *", "2026-03-07T08:00:00Z", "America/New_York", 1),
            ["2026-03-09T06:30:00Z"]
        );
        assert_eq!(
            following("30 1 * * *", "2026-11-01T04:00:00Z", "America/New_York", 2),
            ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]
        );
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        for (text, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(parse(text).unwrap_err(), why);
        }
        assert_eq!(parse("0 0 31 2 *").unwrap().next(Timestamp::UNIX_EPOCH, &TimeZone::UTC), None);
    }
}
