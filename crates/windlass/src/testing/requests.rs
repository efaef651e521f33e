//! The record of an operator's requests: a tower layer around its client, and what a test asks it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response};
use tower::{Layer, Service};

/// One request and the status of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The status of the answer; 0 if there was none.
    pub status: u16,
}

impl Seen {
    /// Whether it changed, or would have changed, anything but events.
    ///
    /// How many events are sent depends on what else goes on, so that they are no measure.
    pub fn is_write(&self) -> bool {
        is_write(&self.method, &self.path)
    }
}

pub(super) fn is_write(method: &Method, path: &str) -> bool {
    method != Method::GET && !path.contains("/events")
}

/// A tower layer that records requests. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Mutex<Vec<Seen>>>);

impl Requests {
    /// The service with its requests recorded here.
    pub fn around<S>(&self, service: S) -> Recorded<S> {
        self.layer(service)
    }

    /// All requests so far.
    pub fn all(&self) -> Vec<Seen> {
        self.lock().clone()
    }

    /// The writes so far.
    pub fn writes(&self) -> Vec<Seen> {
        self.lock().iter().filter(|seen| seen.is_write()).cloned().collect()
    }

    /// Takes the writes since the last call, and forgets all requests.
    pub fn take_writes(&self) -> Vec<Seen> {
        let seen = std::mem::take(&mut *self.lock());
        seen.into_iter().filter(Seen::is_write).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Layer<S> for Requests {
    type Service = Recorded<S>;

    fn layer(&self, inner: S) -> Recorded<S> {
        Recorded { inner, requests: self.clone() }
    }
}

/// The service that [`Requests`] makes.
#[derive(Clone, Debug)]
pub struct Recorded<S> {
    inner: S,
    requests: Requests,
}

impl<S, B, R: 'static> Service<Request<B>> for Recorded<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let requests = self.requests.clone();
        let recorded = self.inner.call(request).map(move |answer| {
            let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            requests.lock().push(Seen { method, path, status });
            answer
        });
        recorded.boxed()
    }
}
