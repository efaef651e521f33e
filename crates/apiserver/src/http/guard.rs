//! What a server takes upon itself, and how it keeps going when a request goes wrong.
//!
//! Bodies are limited in size and time, and all of them together in memory; requests and watches in number, for all
//! users and for each; a panic ends the request that caused it and nothing else. Connections are limited where they
//! are accepted, in `listener`.

use std::{future::Future, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use http::{Version, header, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{
    aside,
    budget::{Budget, Charge},
    flow::{Flow, Width},
};
use crate::{
    auth::{Identity, MASTERS},
    error::{Details, Error, Reason, Result},
};

/// The largest body that is read, as in the real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// How long a body may take before anything of it counts, and how much of it must have come in each second after that.
const HEAD_START: Duration = Duration::from_secs(10);
const RATE: usize = 32 * 1024;

/// How much memory an object takes while it is worked on, at most, for each byte of its body.
const WEIGHT: usize = 32;

/// How much of a body that nobody wants is read, and for how long, so that its sender reads the answer.
const UNWANTED: usize = 256 * 1024;
const UNWANTED_TIME: Duration = Duration::from_secs(1);

/// How long a request waits for its turn: a quarter of the time that the real server has for all of it.
const TURN: Duration = Duration::from_secs(15);

/// The body of a request, whatever it comes from.
pub(super) type Incoming<'a> =
    Pin<Box<dyn http_body::Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>> + Send + 'a>>;

/// What one server takes upon itself. Members of `system:masters` and clients in the same process are held to none of
/// what is said of a user.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many watches may be open at once; one user may have a tenth of them.
    pub watches: usize,
    /// How many clients may be inside of containers at once.
    pub sessions: usize,
    /// How long the body of a request may take to arrive.
    pub body_time: Duration,
    /// How many requests that change nothing are answered at once; one user has a quarter of them, and as many wait as
    /// there are.
    pub requests_in_flight: usize,
    /// The same for requests that change something.
    pub mutating_requests_in_flight: usize,
    /// How many bytes the bodies of all requests in flight may have; those of one user a quarter of it.
    pub body_memory: usize,
    /// How many bytes the objects that are being written may take; those of one user half of it.
    pub write_memory: usize,
    /// How many bytes the objects of long lists may have that are being read; those of one user half of it.
    pub answer_memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // A watch costs a few kilobytes; the time is that of the real server for a whole request, as are the numbers
        // of requests.
        Self {
            watches: 20_000,
            sessions: 1000,
            body_time: Duration::from_mins(1),
            requests_in_flight: 400,
            mutating_requests_in_flight: 200,
            body_memory: 64 << 20,
            write_memory: 384 << 20,
            answer_memory: 512 << 20,
        }
    }
}

/// The limits of a server and what is left of them.
#[derive(Debug)]
pub(super) struct Guard {
    limits: Limits,
    watches: Arc<Semaphore>,
    /// The watches of each user.
    own_watches: Budget,
    sessions: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    bodies: Budget,
    /// For the bodies of those who have no share.
    masters: Budget,
    writes: Budget,
    answers: Budget,
    pub(super) flow: Flow,
}

/// Permission to have a watch open, for as long as it is held.
#[derive(Debug)]
pub(super) struct Watching {
    _all: OwnedSemaphorePermit,
    _own: Option<Charge>,
}

/// The body of a request, and the memory that it has.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) bytes: Bytes,
    pub(super) charge: Option<Charge>,
}

impl Guard {
    pub(super) fn new(limits: Limits) -> Self {
        let room = |count| Arc::new(Semaphore::new(count));
        let width = |all: usize| Width { all, user: all.div_ceil(4), waiting: all.max(1), timeout: TURN };
        Self {
            limits,
            watches: room(limits.watches),
            own_watches: Budget::new(limits.watches * WATCH, limits.watches.div_ceil(10) * WATCH),
            sessions: room(limits.sessions),
            heavy: aside::room(),
            bodies: Budget::new(limits.body_memory, limits.body_memory / 4),
            masters: Budget::new(limits.body_memory, limits.body_memory),
            writes: Budget::new(limits.write_memory, limits.write_memory / 2),
            answers: Budget::new(limits.answer_memory, limits.answer_memory / 2),
            flow: Flow::new(width(limits.requests_in_flight), width(limits.mutating_requests_in_flight)),
        }
    }

    /// Room for requests that take long.
    pub(super) fn heavy(&self) -> &Arc<Semaphore> {
        &self.heavy
    }

    /// Permission to open a watch, for as long as it is held.
    pub(super) fn watch(&self, who: &Identity, held: bool) -> Result<Watching> {
        let own = if held {
            let (user, limit) = (&who.name, self.limits.watches.div_ceil(10));
            let refused = || {
                too_many(format!(
                    "Too many watches of user \"{user}\", please try again later: at most {limit}"
                ))
            };
            Some(self.own_watches.charge_now(user, WATCH).ok_or_else(refused)?)
        } else {
            None
        };
        Ok(Watching { _all: acquire(&self.watches, "watches", self.limits.watches)?, _own: own })
    }

    /// How many watches are open, and how many sessions.
    pub(super) fn long_running(&self) -> (usize, usize) {
        let watches = self.limits.watches - self.watches.available_permits();
        (watches, self.limits.sessions - self.sessions.available_permits())
    }

    /// Permission to enter a container, for as long as it is held.
    pub(super) fn session(&self) -> Result<OwnedSemaphorePermit> {
        acquire(&self.sessions, "exec and attach sessions", self.limits.sessions)
    }

    /// The whole body of a request. One from the same process is in memory already.
    pub(super) async fn read_body(
        &self,
        parts: &Parts,
        body: &mut Incoming<'_>,
        who: &Identity,
        in_process: bool,
    ) -> Result<Read> {
        let encoding = parts.headers.get(header::CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            // A small compressed body can be a huge one; no client of the API sends any.
            let message =
                format!("the request body has the content encoding {encoding:?}: send it without one");
            return Err(Error::unsupported_media_type(message));
        }
        let expected = body.size_hint();
        if expected.lower() > BODY_LIMIT as u64 {
            return Err(too_large());
        }
        let most = expected.upper().map_or(BODY_LIMIT, |most| BODY_LIMIT.min(most as usize));
        let mut charge = match (in_process || most == 0, who.is_master()) {
            (true, _) => None,
            (false, true) => Some(self.masters.charge(MASTERS, most).await?),
            (false, false) => Some(self.bodies.charge(&who.name, most).await?),
        };
        let bytes = self.collect(body, most).await?;
        if let Some(charge) = &mut charge {
            charge.shrink(bytes.len());
        }
        Ok(Read { bytes, charge })
    }

    /// Memory for what becomes of a body while it is worked on.
    pub(super) async fn work_memory(&self, who: &Identity, bytes: usize) -> Result<Charge> {
        self.writes.charge(&who.name, bytes * WEIGHT).await
    }

    /// Permission to hold on to objects until they are read: other versions may have taken their place by then.
    pub(super) async fn answer_memory(&self, who: &Identity, bytes: usize) -> Result<Charge> {
        self.answers.charge(&who.name, bytes).await
    }

    async fn collect(&self, body: &mut Incoming<'_>, most: usize) -> Result<Bytes> {
        let began = Instant::now();
        let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
        loop {
            let received = first.len() + rest.len();
            // Whoever trickles runs out of time; whoever sends steadily has it, on any line.
            let allowed = HEAD_START + Duration::from_millis((received * 1000 / RATE) as u64);
            let deadline = began + allowed.min(self.limits.body_time);
            let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    return Err(Error::bad_request(format!("failed to read the request body: {error}")));
                }
                Ok(None) => break,
                Err(_) => {
                    return Err(Error::new(Reason::Timeout, "the request body did not arrive in time"));
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if received + data.len() > BODY_LIMIT {
                return Err(too_large());
            }
            if received == 0 {
                first = data;
                continue;
            }
            if rest.is_empty() {
                rest.reserve(most.max(received + data.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
        Ok(if rest.is_empty() { first } else { rest.freeze() })
    }
}

/// One watch, in the units of a budget.
const WATCH: usize = 1024;

fn too_large() -> Error {
    let message = format!("Request entity too large: limit is {BODY_LIMIT}");
    Error::new(Reason::RequestEntityTooLarge, message)
}

/// Takes what comes of a body that nobody wants: the connection of a client that is still sending is reset when it is
/// closed, and takes the answer with it. On HTTP/2 a stream ends without its connection.
pub(super) async fn discard(parts: &Parts, body: &mut Incoming<'_>) {
    let waits_to_continue = parts.headers.contains_key(header::EXPECT);
    if parts.version >= Version::HTTP_2 || waits_to_continue || body.is_end_stream() {
        return;
    }
    let taking = async {
        let mut taken = 0;
        while taken < UNWANTED
            && let Some(Ok(frame)) = body.frame().await
        {
            taken += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    let _ = tokio::time::timeout(UNWANTED_TIME, taking).await;
}

fn acquire(room: &Arc<Semaphore>, what: &str, limit: usize) -> Result<OwnedSemaphorePermit> {
    Arc::clone(room)
        .try_acquire_owned()
        .map_err(|_| too_many(format!("Too many {what}, please try again later: at most {limit}")))
}

/// The refusal that asks to come again in a second.
pub(super) fn too_many(message: String) -> Error {
    let mut error = Error::new(Reason::TooManyRequests, message);
    error.details = Some(Box::new(Details { retry_after_seconds: 1, ..Details::default() }));
    error
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
