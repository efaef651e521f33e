//! How long a request may take until its answer begins.
//!
//! A minute, as in the real server, or less if the client says so with `timeout=`. What comes after the beginning (a
//! watch, a log that is followed, a session in a container) has an end of its own. An answer that is late is dropped
//! with all that waits for it; what was committed by then stays committed, so a late answer tells nothing about that.

use std::{future::Future, time::Duration};

use super::query::Query;
use crate::error::{Error, Reason, Result};

/// The longest time that a request may take, as in the real server.
const LONGEST: Duration = Duration::from_mins(1);

/// Answers in time, or says that there was not enough of it.
pub(super) async fn within<T>(query: &str, answer: impl Future<Output = Result<T>>) -> Result<T> {
    let time = asked(query)?;
    match tokio::time::timeout(time, answer).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let why = "Timeout: request did not complete within the allotted timeout";
            Err(Error::new(Reason::Timeout, why))
        }
    }
}

/// The time that a client asks for. None, and more than there is, mean as much as there is.
fn asked(query: &str) -> Result<Duration> {
    // Almost nobody asks for anything.
    if !query.contains("timeout=") {
        return Ok(LONGEST);
    }
    let query = Query::parse(query);
    let text = query.get("timeout");
    if text.is_empty() {
        return Ok(LONGEST);
    }
    let seconds = go_duration(text).ok_or_else(|| {
        Error::bad_request(format!(
            "invalid timeout specified in the request URL: time: invalid duration {text:?}"
        ))
    })?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time > Duration::ZERO && time < LONGEST => Ok(time),
        _ => Ok(LONGEST),
    }
}

/// The seconds of a duration as Go writes it: `1h30m`, `1.5s`, `-2ms`, `0`.
fn go_duration(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit() && one != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|one: char| one.is_ascii_digit() || one == '.').unwrap_or(rest.len());
        seconds += amount
            * match &rest[..unit] {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    (!text.is_empty() && text != "-" && text != "+").then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, seconds) in
            [("1h30m", 5400.0), ("1.5s", 1.5), ("-2ms", -0.002), ("0", 0.0), ("+3m", 180.0)]
        {
            let read = go_duration(text).unwrap();
            assert!((read - seconds).abs() < 1e-9, "{text}: {read}");
        }
        for text in ["", "-", "5", "s", "1x", "1.2.3s", "1s2", "١s"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }

    #[test]
    fn nobody_gets_more_than_a_minute() {
        for query in ["", "timeout=", "timeout=0s", "timeout=2h", "timeout=-1s", "timeout=9999999999999h"] {
            assert_eq!(asked(query).unwrap(), LONGEST, "{query}");
        }
        assert_eq!(asked("watch=1&timeout=1500ms").unwrap(), Duration::from_millis(1500));
        assert_eq!(asked("timeout=soon").unwrap_err().code, 400);
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_ends_is_ended() {
        let error = within("timeout=2s", std::future::pending::<Result<()>>()).await.unwrap_err();
        assert_eq!((error.code, error.reason), (504, Some(Reason::Timeout)));
    }
}
