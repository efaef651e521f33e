//! Cron schedules as a CronJob takes them: five fields, or a word such as `@daily`. Whether one is right, and when it is
//! due next in a time zone. Pure.
//!
//! The webhook, `status.nextBackup` and the CronJob must mean the same, and the CronJob is Kubernetes'. So Sunday is 0 and
//! never 7, `MON` and `JAN` are numbers, `?` is `*`, a day must fit both of its fields where one of them is `*` and either
//! of them otherwise, and `*/2` is not `*`.

use windlass::jiff::{SignedDuration, Timestamp, ToSpan, civil::Date, tz::TimeZone};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// At certain times.
    At(Box<Fields>),
    /// Again and again after this time.
    Every(SignedDuration),
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

/// Which values of one field fit, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    values: u64,
    /// Whether it was left open: then the other one of the two fields of days decides.
    open: bool,
}

impl Field {
    fn fits(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.values & (1 << value) != 0)
    }

    fn values(self) -> impl Iterator<Item = i8> {
        (0..60_i8).filter(move |value| self.fits(*value))
    }
}

impl Schedule {
    /// Reads an expression; the error says which field is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
            return Err(format!("{text:?} names a time zone; write it into spec.backup.timeZone"));
        }
        if let Some(word) = text.strip_prefix('@') {
            return named(word);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!("{text:?} has {} fields, and a schedule has 5", fields.len()));
        };
        Ok(Self::At(Box::new(Fields {
            minute: field("minute", minute, 0, 59, &[])?,
            hour: field("hour", hour, 0, 23, &[])?,
            day: field("day of the month", day, 1, 31, &[])?,
            month: field("month", month, 1, 12, &MONTHS)?,
            weekday: field("day of the week", weekday, 0, 6, &WEEKDAYS)?,
        })))
    }

    /// The first time after `after` at which the schedule is due; none within eight years is never.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Every(period) => Timestamp::from_second(after.as_second()).ok()?.checked_add(*period).ok(),
            Self::At(fields) => fields.next(after, zone),
        }
    }
}

impl Fields {
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = after.to_zoned(zone.clone()).date();
        for _ in 0..(8 * 366) {
            if self.month.fits(date.month()) && self.is_day(date) {
                let times = self
                    .hour
                    .values()
                    .flat_map(|hour| self.minute.values().map(move |minute| (hour, minute)));
                let mut due = times.filter_map(|(hour, minute)| {
                    let time = date.at(hour, minute, 0, 0);
                    let zoned = time.to_zoned(zone.clone()).ok()?;
                    // A clock change may leave an hour out; nothing is due in it.
                    (zoned.datetime() == time).then(|| zoned.timestamp())
                });
                if let Some(due) = due.find(|due| *due > after) {
                    return Some(due);
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn is_day(&self, date: Date) -> bool {
        let day = self.day.fits(date.day());
        let weekday = self.weekday.fits(date.weekday().to_sunday_zero_offset());
        if self.day.open || self.weekday.open { day && weekday } else { day || weekday }
    }
}

/// The time zone of this name, such as `Europe/Rome`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

fn named(word: &str) -> Result<Schedule, String> {
    let fields = match word {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        _ => {
            // As Go writes times: 1h30m, and no words.
            let go = |text: &&str| text.bytes().all(|byte| b"0123456789.hms".contains(&byte));
            let every = word.strip_prefix("every ").filter(go);
            let every = every.and_then(|every| every.parse::<SignedDuration>().ok());
            let every = every.filter(|every| *every >= SignedDuration::from_secs(60));
            return every.map(Schedule::Every).ok_or_else(|| {
                format!(
                    "@{word} is no schedule; write @hourly, @daily, @weekly, @monthly, @yearly, or @every with a time \
                     of a minute or more such as @every 6h"
                )
            });
        }
    };
    Schedule::parse(fields)
}

fn field(name: &str, text: &str, least: u32, most: u32, names: &[&str]) -> Result<Field, String> {
    let mut all = Field::default();
    for part in text.split(',') {
        let one = range(part, least, most, names).ok_or_else(|| {
            let words = match (names.first(), names.last()) {
                (Some(first), Some(last)) => format!(", names from {first} to {last}"),
                _ => String::new(),
            };
            format!(
                "the {name} is {part:?}: write numbers from {least} to {most}{words}, ranges a-b, steps */n, or *"
            )
        })?;
        all = Field { values: all.values | one.values, open: all.open || one.open };
    }
    Ok(all)
}

fn range(part: &str, least: u32, most: u32, names: &[&str]) -> Option<Field> {
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|position| u32::try_from(position).ok()).map(|position| position + least);
        let digits = || text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        named.or_else(digits)
    };
    let (span, step) = match part.split_once('/') {
        Some((span, step)) => (span, Some(number(step).filter(|step| *step > 0)?)),
        None => (part, None),
    };
    let open = matches!(span, "*" | "?");
    let (first, last) = match span.split_once('-') {
        _ if open => (least, most),
        Some((first, last)) => (number(first)?, number(last)?),
        // With a step a single number is a beginning.
        None if step.is_some() => (number(span)?, most),
        None => (number(span)?, number(span)?),
    };
    let step = step.unwrap_or(1);
    let right = least <= first && first <= last && last <= most;
    let values = || (first..=last).step_by(step as usize).fold(0, |values, value| values | 1_u64 << value);
    right.then(|| Field { values: values(), open: open && step == 1 })
}
