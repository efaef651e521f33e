//! What every request of an operator has: a deadline, and another try where the server asks for one.
//!
//! Enters: the client that the operator was given. Leaves: a client around it, for all that the operator and its
//! reconcilers do.
//!
//! # Guarantees
//!
//! - A request that is not answered in time fails with [`NoAnswer`]; also when the answer stops half way. Watches
//!   end a little after the time that they asked for.
//! - A request that an overloaded server turned away is made again for a limited time, and only if making it twice
//!   is the same as making it once. Every try goes through the inner client, so that its metrics count each.
//! - What the API server warns of is logged, each text once.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::RETRY_AFTER, request::Parts};
use http_body::{Frame, SizeHint};
use kube::{Client, client::Body};
use tokio::time::{Instant, Sleep, timeout_at};
use tower::{BoxError, service_fn};

use super::{repeat, warnings::Warnings};
use crate::{error::NoAnswer, metrics::Metrics, request::ENDLESS};

/// How much longer than it asked for a watch may last.
const GRACE: Duration = Duration::from_mins(1);
/// What lies before the first repetition, unless the server says more. It doubles.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long requests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// One request, all its tries together.
    pub(crate) request: Duration,
    /// A list, or the deletion of a collection, where that is longer: more than the minute after which Kubernetes
    /// itself gives up.
    pub(crate) list: Duration,
    /// How long after its first try a request may be made again.
    pub(crate) retries: Duration,
    /// No request runs out of time: whoever stops the process to look at it stops its requests too.
    pub(crate) endless: bool,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            list: Duration::from_mins(2),
            retries: Duration::from_secs(10),
            endless: false,
        }
    }
}

/// How long an answer may take to begin and to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    begin: Duration,
    /// `None` for what lasts as long as it lasts.
    end: Option<Duration>,
}

impl Timeouts {
    /// The same client with deadlines and repetitions.
    pub(crate) fn around(self, client: Client, metrics: Metrics, warnings: Warnings) -> Client {
        let namespace = client.default_namespace().to_owned();
        let valid_until = *client.valid_until();
        let service =
            service_fn(move |request| send(client.clone(), self, metrics.clone(), warnings.clone(), request));
        Client::new(service, namespace).with_valid_until(valid_until)
    }

    fn limits(&self, parts: &Parts) -> Limits {
        if self.endless {
            return Limits { begin: ENDLESS, end: None };
        }
        let query = parts.uri.query().unwrap_or_default();
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let asked = value("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        if matches!(value("watch"), Some("true" | "1")) {
            return Limits { begin: self.request, end: asked.map(|asked| asked + GRACE) };
        }
        if is_stream(parts) {
            return Limits { begin: self.request, end: None };
        }
        let limit = if is_collection(parts.uri.path()) && parts.method != Method::POST {
            self.request.max(self.list)
        } else {
            self.request
        };
        Limits { begin: limit, end: Some(limit) }
    }
}

/// Connections to a container, and the logs of one: they last as long as somebody listens.
fn is_stream(parts: &Parts) -> bool {
    const STREAMS: [&str; 5] = ["log", "exec", "attach", "portforward", "proxy"];
    parts.headers.contains_key(http::header::UPGRADE)
        || parts.uri.path().split('/').any(|part| STREAMS.contains(&part))
}

/// Whether a path names all objects of a kind rather than one.
fn is_collection(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    let behind = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return false,
    };
    let rest: Vec<&str> = parts.skip(behind).collect();
    matches!(rest[..], [_] | ["namespaces", _, _])
}

async fn send(
    client: Client,
    patience: Timeouts,
    metrics: Metrics,
    warnings: Warnings,
    request: Request<Body>,
) -> Result<Response<Timed>, BoxError> {
    let (parts, mut body) = request.into_parts();
    let limits = patience.limits(&parts);
    let started = Instant::now();
    let mut waits = Waits { next: FIRST_WAIT, until: started + patience.retries };
    loop {
        let copy = body.try_clone();
        let sent = client.send(Request::from_parts(parts.clone(), body));
        let answer = timeout_at(started + limits.begin, sent).await;
        let answer = answer.map_err(|_| NoAnswer { limit: limits.begin })??;
        warnings.log(&parts, answer.headers());
        let copy = copy.filter(|_| turned_away(&answer));
        let Some(again) = copy else { return Ok(timed(answer, limits, started)) };
        if !repeat::is_safe(&parts, again.try_clone()).await {
            return Ok(timed(answer, limits, started));
        }
        let Some(wait) = waits.next(&answer) else { return Ok(timed(answer, limits, started)) };
        tracing::debug!(status = %answer.status(), path = parts.uri.path(), ?wait, "turned away, trying again");
        metrics.request_repeated(answer.status(), &parts.method);
        tokio::time::sleep(wait).await;
        body = again;
    }
}

/// Whether the server, or what stands before it, had no time for the request.
fn turned_away<B>(answer: &Response<B>) -> bool {
    matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// The waits between the tries of one request. No jitter, so that runs can be repeated.
struct Waits {
    next: Duration,
    until: Instant,
}

impl Waits {
    /// How long to wait; `None` if the server asks for more than there is. Then the answer goes to whoever asked,
    /// and a worker is free for other objects.
    fn next<B>(&mut self, answer: &Response<B>) -> Option<Duration> {
        let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let wait = self.next.max(asked.map_or(Duration::ZERO, Duration::from_secs));
        self.next = (self.next * 2).min(LONGEST_WAIT);
        (Instant::now().checked_add(wait)? <= self.until).then_some(wait)
    }
}

fn timed(answer: Response<Body>, limits: Limits, started: Instant) -> Response<Timed> {
    answer.map(|body| Timed {
        body,
        limit: limits.end.map(|limit| (limit, Box::pin(tokio::time::sleep_until(started + limit)))),
    })
}

/// A body that must have ended in time.
struct Timed {
    body: Body,
    limit: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed").finish_non_exhaustive()
    }
}

impl http_body::Body for Timed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match &mut self.limit {
            Some((limit, sleep)) => {
                let limit = *limit;
                sleep.as_mut().poll(cx).map(|()| Some(Err(NoAnswer { limit }.into())))
            }
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests;
