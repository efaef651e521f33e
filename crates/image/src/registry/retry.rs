//! How often a registry is asked again, and how long is waited in between. Pure, but for the waiting.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};

use super::Error;

/// How patient a client is.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How often something is tried at most.
    pub attempts: u32,
    /// How long is waited after the first failure; twice as long after every other.
    pub pause: Duration,
    /// The longest pause, also if a registry asks for more.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 6, pause: Duration::from_millis(500), longest: Duration::from_mins(1) }
    }
}

/// How something failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// It fails however often it is tried.
    Final(Error),
    /// It may work another time, after a while if the registry says so.
    Passing { error: Error, after: Option<Duration> },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Retry {
    /// Tries until something works, fails for good, or has been tried often enough.
    pub(super) async fn run<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut count = 0;
        loop {
            count += 1;
            let (error, after) = match attempt().await {
                Ok(done) => return Ok(done),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing { error, after }) => (error, after),
            };
            match self.pause(count, after) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(counted(error, count, after)),
            }
        }
    }

    /// How long to wait after some attempts; nothing if there is no point in another.
    fn pause(&self, count: u32, after: Option<Duration>) -> Option<Duration> {
        let wanted =
            after.unwrap_or_else(|| self.pause.saturating_mul(1 << (count - 1).min(16)).min(self.longest));
        (count < self.attempts && wanted <= self.longest).then_some(wanted)
    }
}

fn counted(error: Error, count: u32, wanted: Option<Duration>) -> Error {
    match error {
        Error::Busy { host, status, .. } => {
            Error::Busy { host, status, attempts: count, after: wanted.map(|wanted| wanted.as_secs()) }
        }
        error => error,
    }
}

/// Whether an answer tells to come back later.
pub(super) fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// When a registry wants to be asked again: in seconds, or at a time.
pub(super) fn after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> Failure {
        let error =
            Error::Busy { host: "h".into(), status: StatusCode::TOO_MANY_REQUESTS, attempts: 0, after: None };
        Failure::Passing { error, after: None }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_end() {
        let (begin, mut times) = (tokio::time::Instant::now(), Vec::new());
        let retry = Retry { attempts: 4, ..Retry::default() };
        let result: Result<(), _> = retry
            .run(|| {
                times.push(begin.elapsed().as_millis());
                std::future::ready(Err(busy()))
            })
            .await;
        assert_eq!(times, [0, 500, 1500, 3500]);
        let line = result.unwrap_err().to_string();
        assert_eq!(line, "the registry h is busy (429 Too Many Requests), also after 4 attempts");
    }

    #[test]
    fn a_registry_that_asks_for_too_long_a_pause_is_not_waited_for() {
        let retry = Retry::default();
        assert_eq!(retry.pause(1, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(retry.pause(1, Some(Duration::from_hours(6))), None);
        assert_eq!(retry.pause(6, None), None);
    }

    #[test]
    fn a_time_to_come_back_is_read_in_both_ways() {
        let now = "2015-10-21T07:28:00Z".parse().unwrap();
        let headers = |value: &str| HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
        assert_eq!(after(&headers("30"), now), Some(Duration::from_secs(30)));
        assert_eq!(after(&headers("Wed, 21 Oct 2015 07:29:00 GMT"), now), Some(Duration::from_mins(1)));
        assert_eq!(after(&headers("Wed, 21 Oct 2015 07:00:00 GMT"), now), Some(Duration::ZERO));
        assert_eq!(after(&headers("soon"), now), None);
        assert_eq!(after(&HeaderMap::new(), now), None);
    }
}
