//! The way between the operator and the API server: every request is counted, recorded, and perhaps disturbed.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};
use windlass::{
    kube::{Client, client::Body},
    serde_json::json,
};

use crate::{fault::Fault, plan::Plan, story::Story};

/// One request of the operator and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Duration,
    /// Which life of the operator made it.
    pub(crate) life: u64,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    /// The status of the answer; 0 if none was heard.
    pub(crate) status: u16,
    pub(crate) fault: Option<Fault>,
}

impl Entry {
    /// Whether it changed, or would have changed, anything but events and leases: how many of those there are depends on
    /// what else goes on.
    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET && !self.path.contains("/events") && !self.path.contains("/leases")
    }

    pub(crate) fn is_watch(&self) -> bool {
        is_watch(&self.query)
    }
}

fn is_watch(query: &str) -> bool {
    query.split('&').any(|one| one == "watch=true" || one == "watch=1")
}

/// The network of one day. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    story: Story,
    plan: Arc<Plan>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Entry>,
    hits: BTreeMap<u64, Fault>,
    /// The disturbed part of the day, and when it began.
    part: Option<(usize, Duration)>,
    /// How many requests were made at the moment of the last.
    at_once: usize,
}

/// How many requests may be made at one moment of the paused clock.
const MOST_AT_ONCE: usize = 1000;

impl Network {
    pub(crate) fn new(story: Story, plan: Arc<Plan>) -> Self {
        Self { story, plan, state: Arc::default() }
    }

    /// From now on requests may fail, as the plan says for this part of the day; never with `None`.
    pub(crate) fn disturb(&self, part: Option<usize>) {
        let now = self.story.now();
        self.lock().part = part.map(|part| (part, now));
    }

    /// All requests so far.
    pub(crate) fn log(&self) -> Vec<Entry> {
        self.lock().log.clone()
    }

    /// How many requests there have been.
    pub(crate) fn count(&self) -> usize {
        self.lock().log.len()
    }

    /// The faults that came to pass, by the number of the request.
    pub(crate) fn hits(&self) -> BTreeMap<u64, Fault> {
        self.lock().hits.clone()
    }

    /// The client of one life of the operator, which ends with `dead`.
    pub(crate) fn client(&self, inner: &Client, life: u64, dead: &CancellationToken) -> Client {
        let (network, inner, dead) = (self.clone(), inner.clone(), dead.clone());
        let namespace = inner.default_namespace().to_owned();
        let service = service_fn(move |request: Request<Body>| {
            let (network, inner, dead) = (network.clone(), inner.clone(), dead.clone());
            async move { network.send(inner, life, dead, request).await }
        });
        Client::new(service, namespace)
    }

    async fn send(
        self,
        inner: Client,
        life: u64,
        dead: CancellationToken,
        request: Request<Body>,
    ) -> Result<Response<Altered>, BoxError> {
        if dead.is_cancelled() {
            return std::future::pending().await;
        }
        let (number, fault) = self.begin(life, &request);
        // The paused clock goes on only when nobody has anything to do: who never stops asking waits a moment.
        if self.lock().at_once > MOST_AT_ONCE {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let told = told(&request);
        if let Some(fault) = fault {
            self.story.tell("network", fault.told(&told));
        }
        let answer = self.carry(&inner, &dead, request, fault).await;
        let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        let entry = {
            let mut state = self.lock();
            let entry = &mut state.log[number as usize];
            entry.status = status;
            entry.clone()
        };
        if entry.is_write() && fault.is_none() {
            self.story.tell("operator", format!("{told} → {status}"));
        }
        answer
    }

    fn begin(&self, life: u64, request: &Request<Body>) -> (u64, Option<Fault>) {
        let at = self.story.now();
        let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default());
        let method = request.method().clone();
        let mut state = self.lock();
        let number = state.log.len() as u64;
        state.at_once =
            if state.log.last().is_some_and(|last| last.at == at) { state.at_once + 1 } else { 0 };
        let watch = is_watch(query);
        let fault = state.part.and_then(|(part, since)| {
            let when = (part, at.saturating_sub(since));
            self.plan.fault(number, when, state.hits.len(), |fault| fault.fits(&method, watch))
        });
        if let Some(fault) = fault {
            state.hits.insert(number, fault);
        }
        let query = query.to_owned();
        state.log.push(Entry { at, life, method, path, query, status: 0, fault });
        (number, fault)
    }

    async fn carry(
        &self,
        inner: &Client,
        dead: &CancellationToken,
        request: Request<Body>,
        fault: Option<Fault>,
    ) -> Result<Response<Altered>, BoxError> {
        let send = async |request| {
            let sent = inner.send(request).await;
            // A process that is dead hears nothing; it is taken off its thread in a moment.
            if dead.is_cancelled() { std::future::pending().await } else { sent }
        };
        let plain = |answer: Response<Body>| answer.map(|body| Altered::new(body, None));
        match fault {
            None => Ok(plain(send(request).await?)),
            Some(Fault::CrashBefore) => {
                dead.cancel();
                std::future::pending().await
            }
            Some(Fault::CrashAfter) => {
                let _ = inner.send(request).await;
                dead.cancel();
                std::future::pending().await
            }
            Some(Fault::AnswerLost) => {
                send(request).await?;
                Err("connection reset by peer".into())
            }
            Some(Fault::Refused) => Err("connection refused".into()),
            Some(Fault::NoAnswer) => std::future::pending().await,
            Some(Fault::Slow(ms)) => {
                let answer = send(request).await?;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(plain(answer))
            }
            Some(Fault::Conflict) => Ok(refusal(StatusCode::CONFLICT, "Conflict", None)),
            Some(Fault::TooManyRequests(seconds)) => {
                Ok(refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", Some(seconds)))
            }
            Some(Fault::InternalError) => {
                Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", None))
            }
            Some(Fault::Unavailable) => {
                Ok(refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", None))
            }
            Some(Fault::WatchGone) => Ok(refusal(StatusCode::GONE, "Expired", None)),
            Some(fault) => Ok(send(request).await?.map(|body| Altered::new(body, Some(fault)))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in a few words.
fn told(request: &Request<Body>) -> String {
    let path = request.uri().path();
    let watch = is_watch(request.uri().query().unwrap_or_default());
    let verb = if watch { "WATCH" } else { request.method().as_str() };
    // What is before the resource says nothing that the reader does not know.
    let short = path.split_once("/namespaces/default/").map_or(path, |(_, short)| short);
    format!("{verb} {short}")
}

/// An answer that the API server has not given.
fn refusal(code: StatusCode, reason: &str, retry_after: Option<u64>) -> Response<Altered> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code.as_u16(),
        "reason": reason, "message": format!("{reason}: this is a fault of the simulation"),
    });
    let body = Body::from(status.to_string().into_bytes());
    let mut answer = Response::new(Altered::new(body, None));
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(http::header::RETRY_AFTER, seconds.into());
    }
    answer
}

/// The body of an answer, with what is wrong with it. A frame of a watch is an event.
pub(crate) struct Altered {
    body: Body,
    fault: Option<Fault>,
    events: u64,
    /// An event that is late, and until when.
    late: Option<(Frame<Bytes>, Pin<Box<Sleep>>)>,
}

impl Altered {
    fn new(body: Body, fault: Option<Fault>) -> Self {
        Self { body, fault, events: 0, late: None }
    }
}

impl http_body::Body for Altered {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some((_, until)) = &mut self.late {
            std::task::ready!(until.as_mut().poll(cx));
            return Poll::Ready(self.late.take().map(|(frame, _)| Ok(frame)));
        }
        match self.fault {
            Some(Fault::WatchCut(after)) if self.events >= after => {
                return Poll::Ready(Some(Err("connection reset by peer".into())));
            }
            Some(Fault::WatchStalls(after)) if self.events >= after => return Poll::Pending,
            _ => {}
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.events += 1;
        match (self.fault, frame) {
            (Some(Fault::WatchLags(ms)), Some(Ok(frame))) => {
                let until = Instant::now() + Duration::from_millis(ms);
                self.late = Some((frame, Box::pin(tokio::time::sleep_until(until))));
                self.poll_frame(cx)
            }
            (_, frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
        }
    }
}
