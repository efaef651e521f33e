//! A tower layer around the client that records every request and how it was answered.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response};
use tower::{Layer, Service};

/// One request and the status of its answer.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub path: String,
    pub status: u16,
}

impl Seen {
    fn is_write(&self) -> bool {
        // Events are not counted: they depend on what else goes on.
        self.method != Method::GET && !self.path.contains("/events")
    }
}

/// All requests so far. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Mutex<Vec<Seen>>>);

impl Requests {
    /// Takes the writes since the last call.
    pub fn take_writes(&self) -> Vec<Seen> {
        let seen = std::mem::take(&mut *self.0.lock().unwrap());
        seen.into_iter().filter(Seen::is_write).collect()
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, requests: self.clone() }
    }
}

#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    requests: Requests,
}

impl<S, B, R: 'static> Service<Request<B>> for Counted<S>
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
        self.inner
            .call(request)
            .map(move |answer| {
                let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                requests.0.lock().unwrap().push(Seen { method, path, status });
                answer
            })
            .boxed()
    }
}
