//! What can go wrong with one request between the operator and the API server, and how that is written in one word.

use std::{fmt, str::FromStr, time::Duration};

use http::Method;

use crate::chance::Chance;

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The operator dies before the API server has seen the request.
    CrashBefore,
    /// The operator dies after it, and never hears the answer.
    CrashAfter,
    /// The request takes effect and the connection breaks before the answer.
    AnswerLost,
    /// The connection cannot be made.
    Refused,
    /// 409: somebody else was faster.
    Conflict,
    /// 429 with Retry-After, in seconds.
    TooManyRequests(u64),
    /// 500.
    InternalError,
    /// 503.
    Unavailable,
    /// Nothing is heard until the client gives up; the API server has never seen it.
    NoAnswer,
    /// The answer takes so many milliseconds.
    Slow(u64),
    /// The stream breaks after so many events.
    WatchCut(u64),
    /// The stream stays open and says no more after so many events.
    WatchStalls(u64),
    /// Every event comes so many milliseconds late.
    WatchLags(u64),
    /// 410: the version to go on from is forgotten.
    WatchGone,
}

/// The kinds of faults, without their numbers, for drawing one.
pub(crate) const WORDS: [&str; 14] = [
    "crash-before",
    "crash-after",
    "answer-lost",
    "refused",
    "conflict",
    "too-many-requests",
    "internal-error",
    "unavailable",
    "no-answer",
    "slow",
    "watch-cut",
    "watch-stalls",
    "watch-lags",
    "watch-gone",
];

impl Fault {
    /// A fault of a kind, with numbers by chance.
    pub(crate) fn draw(word: &str, chance: &mut Chance) -> Option<Self> {
        Some(match word {
            "crash-before" => Self::CrashBefore,
            "crash-after" => Self::CrashAfter,
            "answer-lost" => Self::AnswerLost,
            "refused" => Self::Refused,
            "conflict" => Self::Conflict,
            "too-many-requests" => Self::TooManyRequests(chance.between(1, 5)),
            "internal-error" => Self::InternalError,
            "unavailable" => Self::Unavailable,
            "no-answer" => Self::NoAnswer,
            "slow" => Self::Slow(chance.between(50, 8000)),
            "watch-cut" => Self::WatchCut(chance.below(4)),
            "watch-stalls" => Self::WatchStalls(chance.below(4)),
            "watch-lags" => Self::WatchLags(chance.between(50, 6000)),
            "watch-gone" => Self::WatchGone,
            _ => return None,
        })
    }

    /// Whether it can happen to such a request.
    pub(crate) fn fits(self, method: &Method, watch: bool) -> bool {
        match self {
            // Nobody else can be faster to create what has no version, or to read.
            Self::Conflict => [Method::PUT, Method::PATCH].contains(method),
            Self::WatchCut(_) | Self::WatchStalls(_) | Self::WatchLags(_) | Self::WatchGone => watch,
            // To be late with a watch is to lag.
            Self::Slow(_) => !watch,
            _ => true,
        }
    }

    /// What happens, as a sentence about `request`.
    pub(crate) fn told(self, request: &str) -> String {
        match self {
            Self::CrashBefore => format!("the operator dies before {request} is sent"),
            Self::CrashAfter => format!("the operator dies after {request}, without its answer"),
            Self::AnswerLost => format!("the answer to {request} is lost"),
            Self::Refused => format!("no connection for {request}"),
            Self::Conflict => format!("409 Conflict for {request}"),
            Self::TooManyRequests(seconds) => format!("429 Retry-After: {seconds} for {request}"),
            Self::InternalError => format!("500 for {request}"),
            Self::Unavailable => format!("503 for {request}"),
            Self::NoAnswer => format!("no answer to {request}"),
            Self::Slow(ms) => format!("{request} takes {:?}", Duration::from_millis(ms)),
            Self::WatchCut(events) => format!("{request} breaks after {events} events"),
            Self::WatchStalls(events) => format!("{request} falls silent after {events} events"),
            Self::WatchLags(ms) => format!("{request} is late by {:?}", Duration::from_millis(ms)),
            Self::WatchGone => format!("410 Gone for {request}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CrashBefore => f.write_str("crash-before"),
            Self::CrashAfter => f.write_str("crash-after"),
            Self::AnswerLost => f.write_str("answer-lost"),
            Self::Refused => f.write_str("refused"),
            Self::Conflict => f.write_str("conflict"),
            Self::TooManyRequests(n) => write!(f, "too-many-requests={n}"),
            Self::InternalError => f.write_str("internal-error"),
            Self::Unavailable => f.write_str("unavailable"),
            Self::NoAnswer => f.write_str("no-answer"),
            Self::Slow(n) => write!(f, "slow={n}"),
            Self::WatchCut(n) => write!(f, "watch-cut={n}"),
            Self::WatchStalls(n) => write!(f, "watch-stalls={n}"),
            Self::WatchLags(n) => write!(f, "watch-lags={n}"),
            Self::WatchGone => f.write_str("watch-gone"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, number) = text.split_once('=').unwrap_or((text, "0"));
        let bad = || format!("{text:?} is no fault: write one of {}", WORDS.join(", "));
        let n: u64 = number.parse().map_err(|_| bad())?;
        let fault = Self::draw(word, &mut Chance::of(0, 0)).ok_or_else(bad)?;
        Ok(match fault {
            Self::TooManyRequests(_) => Self::TooManyRequests(n),
            Self::Slow(_) => Self::Slow(n),
            Self::WatchCut(_) => Self::WatchCut(n),
            Self::WatchStalls(_) => Self::WatchStalls(n),
            Self::WatchLags(_) => Self::WatchLags(n),
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_written_and_read_again() {
        let mut chance = Chance::of(1, 1);
        for word in WORDS {
            let fault = Fault::draw(word, &mut chance).unwrap();
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert!("rain".parse::<Fault>().unwrap_err().contains("write one of crash-before"));
    }
}
