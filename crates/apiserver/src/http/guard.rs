//! What a request may cost, and what happens when answering it goes wrong.
//!
//! Bodies are limited in size and time, watches in number; a panic ends the request that caused it and nothing
//! else. Connections are limited where they are accepted, in `listener`.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::FutureExt;
use http::{header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::aside;
use crate::error::{Details, Error, Reason, Result};

/// The largest body that is read, as in the real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What one server takes upon itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many watches may be open at once.
    pub watches: usize,
    /// How many clients may be inside of containers at once.
    pub sessions: usize,
    /// How long the body of a request may take to arrive.
    pub body_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // A watch costs a few kilobytes; the time is that of the real server for a whole request.
        Self { watches: 20_000, sessions: 1000, body_time: Duration::from_mins(1) }
    }
}

/// The limits of a server and what is left of them.
#[derive(Debug)]
pub(super) struct Guard {
    limits: Limits,
    watches: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
}

impl Guard {
    pub(super) fn new(limits: Limits) -> Self {
        let room = |count| Arc::new(Semaphore::new(count));
        Self { limits, watches: room(limits.watches), sessions: room(limits.sessions), heavy: aside::room() }
    }

    /// Room for requests that take long.
    pub(super) fn heavy(&self) -> &Arc<Semaphore> {
        &self.heavy
    }

    /// Leave to open a watch, for as long as it is held.
    pub(super) fn watch(&self) -> Result<OwnedSemaphorePermit> {
        leave(&self.watches, "watches", self.limits.watches)
    }

    /// Leave to enter a container, for as long as it is held.
    pub(super) fn session(&self) -> Result<OwnedSemaphorePermit> {
        leave(&self.sessions, "exec and attach sessions", self.limits.sessions)
    }

    /// The whole body of a request.
    pub(super) async fn read_body<B>(&self, parts: &Parts, body: B) -> Result<Bytes>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let encoding = parts.headers.get(header::CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            // A small compressed body can be a huge one; no client of the API sends any.
            let message =
                format!("the request body has the content encoding {encoding:?}: send it without one");
            return Err(Error::unsupported_media_type(message));
        }
        let collect = Limited::new(body, BODY_LIMIT).collect();
        match tokio::time::timeout(self.limits.body_time, collect).await {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let message = format!("Request entity too large: limit is {BODY_LIMIT}");
                Err(Error::new(Reason::RequestEntityTooLarge, message))
            }
            Ok(Err(error)) => Err(Error::bad_request(format!("failed to read the request body: {error}"))),
            Err(_) => Err(Error::new(Reason::Timeout, "the request body did not arrive in time")),
        }
    }
}

fn leave(room: &Arc<Semaphore>, what: &str, limit: usize) -> Result<OwnedSemaphorePermit> {
    Arc::clone(room).try_acquire_owned().map_err(|_| {
        let message = format!("Too many {what}, please try again later: at most {limit}");
        let mut error = Error::new(Reason::TooManyRequests, message);
        error.details = Some(Box::new(Details { retry_after_seconds: 1, ..Details::default() }));
        error
    })
}

/// Answers with an internal error when answering panics. The panic hook has told where.
pub(super) async fn unwound<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    // Locks that a panic poisons are read all the same: every lock of this crate guards state that is whole
    // between two statements.
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(_) => {
            tracing::error!("a request panicked; it was answered with an internal error");
            Err(Error::internal("the server panicked while answering; this is a bug, please report it"))
        }
    }
}
