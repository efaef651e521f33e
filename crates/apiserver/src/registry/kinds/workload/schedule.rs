//! Schedules of CronJobs: five fields or a name, and what is wrong with those that cannot be read.

/// A field of a schedule: its bounds and the names of its values.
struct Bounds {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds { least: 1, most: 12, names: &MONTHS },
    Bounds { least: 0, most: 6, names: &DAYS },
];

/// Checks a schedule.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    let schedule = match schedule.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => rest.trim(),
        _ => schedule,
    };
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    FIELDS
        .iter()
        .zip(fields)
        .try_for_each(|(bounds, field)| field.split(',').try_for_each(|part| range(bounds, part)))
}

fn descriptor(name: &str) -> Result<(), String> {
    match name {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => Ok(()),
        _ if name.starts_with("@every ") => Ok(()),
        _ => Err(format!("unrecognized descriptor: {name}")),
    }
}

/// `*`, `7`, `1-5`, each with `/step`.
fn range(bounds: &Bounds, text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end, single) = match ends.as_slice() {
        ["*" | "?"] => (bounds.least, bounds.most, false),
        [one] => {
            let value = value(bounds, one)?;
            (value, value, true)
        }
        [start, end] => (value(bounds, start)?, value(bounds, end)?, false),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    match parts.as_slice() {
        [_] => {}
        [_, step] => {
            if single {
                end = bounds.most;
            }
            if number(step)? == 0 {
                return Err(format!("step of range should be a positive number: {text}"));
            }
        }
        _ => return Err(format!("too many slashes: {text}")),
    }
    if start < bounds.least {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.least));
    }
    if end > bounds.most {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.most));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    Ok(())
}

fn value(bounds: &Bounds, text: &str) -> Result<u32, String> {
    match bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(index) => Ok(bounds.least + index as u32),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let value: i64 = text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": invalid syntax")
    })?;
    u32::try_from(value).map_err(|_| format!("negative number ({value}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_people_write_are_read() {
        for schedule in
            ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@daily", "@every 5m", "0 0 * * 0", "5/10 * * * ?"]
        {
            assert_eq!(parse(schedule), Ok(()), "{schedule}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        for (schedule, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("@never", "unrecognized descriptor: @never"),
            ("* 24 * * *", "end of range (24) above maximum (23): 24"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ] {
            assert_eq!(parse(schedule), Err(why.to_owned()), "{schedule}");
        }
    }
}
