//! A schedule's text becomes sets of values; what is wrong with it is said in the words of the library that Kubernetes
//! uses, and what to write instead in ours.

use std::{fmt, time::Duration};

use jiff::tz::TimeZone;

use super::{Fields, Schedule, Set, Times};
use crate::duration;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or `jan` to `dec`.
    Month,
    /// 0 to 6, or `sun` to `sat`.
    DayOfWeek,
}

impl Field {
    fn bounds(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 6),
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            Self::Minute | Self::Hour | Self::DayOfMonth => &[],
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of the month",
            Self::Month => "month",
            Self::DayOfWeek => "day of the week",
        })
    }
}

/// A text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is nothing.
    #[error("empty spec string")]
    Empty,
    /// There are not five fields.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    Count(Vec<String>),
    /// There is no such word.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// What follows `@every` is no duration.
    #[error("failed to parse duration {descriptor}: {problem}")]
    Duration {
        /// The whole word, with `@every`.
        descriptor: String,
        /// What is wrong with it.
        problem: duration::ParseError,
    },
    /// There is no such time zone.
    #[error("provided bad location {0}: unknown time zone {0}")]
    TimeZone(String),
    /// A part of a field is wrong.
    #[error("{problem}")]
    Part {
        /// The field.
        field: Field,
        /// The part of it.
        part: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl ParseError {
    /// What is wrong and what to write instead, in a sentence that names the field.
    pub fn hint(&self) -> String {
        match self {
            Self::Empty => "the schedule is empty: write five fields such as 0 2 * * *, or @daily".to_owned(),
            Self::Count(fields) => {
                format!("{:?} has {} fields, and a schedule has 5", fields.join(" "), fields.len())
            }
            Self::Descriptor(word) | Self::Duration { descriptor: word, .. } => format!(
                "{word} is no schedule; write @hourly, @daily, @weekly, @monthly, @yearly, or @every with a time such \
                 as @every 6h"
            ),
            Self::TimeZone(name) => {
                format!("there is no time zone {name:?}; write one such as Europe/Rome, or Etc/UTC")
            }
            Self::Part { field, part, .. } => {
                let (least, most) = field.bounds();
                let words = match field.names() {
                    [first, .., last] => format!(", names from {first} to {last}"),
                    _ => String::new(),
                };
                format!(
                    "the {field} is {part:?}: write numbers from {least} to {most}{words}, ranges a-b, steps */n, or *"
                )
            }
        }
    }
}

pub(super) fn schedule(text: &str) -> Result<Schedule, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let (zone, text) = match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
        Some(rest) => {
            let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let zone = TimeZone::get(name).map_err(|_| ParseError::TimeZone(name.to_owned()))?;
            (Some(zone), rest.trim())
        }
        None => (None, text),
    };
    let times = if text.starts_with('@') { descriptor(text)? } else { Times::At(Box::new(fields(text)?)) };
    Ok(Schedule { times, zone })
}

fn descriptor(word: &str) -> Result<Times, ParseError> {
    let text = match word {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return every(word).map(Times::Every),
    };
    Ok(Times::At(Box::new(fields(text)?)))
}

/// Whole seconds, and at least one.
fn every(word: &str) -> Result<Duration, ParseError> {
    let period = word.strip_prefix("@every ").ok_or_else(|| ParseError::Descriptor(word.to_owned()))?;
    let period = duration::parse(period)
        .map_err(|problem| ParseError::Duration { descriptor: word.to_owned(), problem })?;
    Ok(Duration::from_secs(u64::try_from(period.as_secs()).unwrap_or(0).max(1)))
}

fn fields(text: &str) -> Result<Fields, ParseError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = parts[..] else {
        return Err(ParseError::Count(parts.into_iter().map(str::to_owned).collect()));
    };
    Ok(Fields {
        minute: set(Field::Minute, minute)?,
        hour: set(Field::Hour, hour)?,
        day: set(Field::DayOfMonth, day)?,
        month: set(Field::Month, month)?,
        weekday: set(Field::DayOfWeek, weekday)?,
    })
}

fn set(field: Field, text: &str) -> Result<Set, ParseError> {
    let mut all = Set::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let one = range(field, part).map_err(|problem| ParseError::Part {
            field,
            part: part.to_owned(),
            problem,
        })?;
        all = Set { values: all.values | one.values, open: all.open || one.open };
    }
    Ok(all)
}

/// `*`, `7`, `1-5`, each perhaps with `/step`.
fn range(field: Field, part: &str) -> Result<Set, String> {
    let (least, most) = field.bounds();
    let pieces: Vec<&str> = part.split('/').collect();
    let ends: Vec<&str> = pieces[0].split('-').collect();
    let open = matches!(ends[0], "*" | "?");
    let (first, mut last) = match ends[..] {
        _ if open => (least, most),
        [one] => {
            let one = value(field, one)?;
            (one, one)
        }
        [first, last] => (value(field, first)?, value(field, last)?),
        _ => return Err(format!("too many hyphens: {part}")),
    };
    let step = match pieces[..] {
        [_] => 1,
        [_, step] => {
            // With a step a single number is a beginning.
            if ends.len() == 1 {
                last = most;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {part}")),
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
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    let values = (first..=last).step_by(step as usize).fold(0, |values, value| values | 1_u64 << value);
    Ok(Set { values, open: open && step == 1 })
}

fn value(field: Field, text: &str) -> Result<u32, String> {
    match field.names().iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(index) => Ok(field.bounds().0 + index as u32),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = |why: &str| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}");
    let value: i64 = match text.parse() {
        Ok(value) => value,
        Err(_) if is_number => return Err(wrong("value out of range")),
        Err(_) => return Err(wrong("invalid syntax")),
    };
    if value < 0 {
        return Err(format!("negative number ({value}) not allowed: {text}"));
    }
    // What does not fit is beyond every bound.
    Ok(u32::try_from(value).unwrap_or(u32::MAX))
}
