//! Durations as Go writes them: `300ms`, `-1.5h`, `2h45m`.

use jiff::SignedDuration;

/// A text that is no duration. The message is that of Go's `time.ParseDuration`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It has no number where one must be, or is too long to count.
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    /// A number stands without a unit.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A number has a unit that there is not.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration: an optional sign and numbers with units, each perhaps with a fraction.
///
/// ```
/// use windlass_apimachinery::duration;
///
/// assert_eq!(duration::parse("1h30m")?.as_secs(), 5400);
/// assert!(duration::parse("6 hours").is_err());
/// # Ok::<(), duration::ParseError>(())
/// ```
pub fn parse(text: &str) -> Result<SignedDuration, ParseError> {
    let invalid = || ParseError::Invalid(text.to_owned());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(SignedDuration::ZERO);
    }
    let mut rest = unsigned;
    let mut total: i128 = 0;
    loop {
        let (nanoseconds, after) = one(rest, text)?;
        total = total.checked_add(nanoseconds).ok_or_else(invalid)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    // As much as Go can count.
    let most = i128::from(i64::MAX);
    let total = if text.starts_with('-') { -total } else { total };
    if total > most || total < -most - 1 {
        return Err(invalid());
    }
    Ok(SignedDuration::from_nanos(total as i64))
}

/// One number with its unit, in nanoseconds, and what follows it.
fn one<'a>(rest: &'a str, text: &str) -> Result<(i128, &'a str), ParseError> {
    let invalid = || ParseError::Invalid(text.to_owned());
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(invalid());
    }
    let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
    let (unit, after) = after.split_at(end);
    if unit.is_empty() {
        return Err(ParseError::MissingUnit(text.to_owned()));
    }
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor =
        factor.ok_or_else(|| ParseError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() })?;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    // What is finer than a nanosecond is cut off.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts: i128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| invalid())? };
    let parts = parts * factor / 10_i128.pow(fraction.len() as u32);
    let nanoseconds =
        whole.checked_mul(factor).and_then(|whole| whole.checked_add(parts)).ok_or_else(invalid)?;
    Ok((nanoseconds, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("-5.6s", -5_600_000_000),
            ("+5s", 5_000_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("1µs", 1_000),
            ("1μs", 1_000),
            ("0.3333333333333333333h", 1_200_000_000_000 - 1),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse(text), Ok(SignedDuration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        for (text, why) in [
            ("", "time: invalid duration \"\""),
            ("3", "time: missing unit in duration \"3\""),
            ("-", "time: invalid duration \"-\""),
            ("s", "time: invalid duration \"s\""),
            (".s", "time: invalid duration \".s\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("1h ", "time: unknown unit \"h \" in duration \"1h \""),
            ("6 hours", "time: unknown unit \" hours\" in duration \"6 hours\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("10000000000000h", "time: invalid duration \"10000000000000h\""),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), why);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[-+0-9.hmsnu µ]{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn the_parts_add_up(hours in 0..1000_i64, minutes in 0..1000_i64, millis in 0..100_000_i64) {
            let expected = SignedDuration::from_millis(hours * 3_600_000 + minutes * 60_000 + millis);
            prop_assert_eq!(parse(&format!("{hours}h{minutes}m{millis}ms")).unwrap(), expected);
        }
    }
}
