//! A tower layer that counts the client's requests as client-go does.

use std::task::{Context, Poll};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use tower::{Layer, Service};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RetryLabels {
    pub(super) code: String,
    pub(super) verb: String,
    pub(super) host: String,
}

/// Counts requests by method, host and status; put it around a client with
/// [`ClientBuilder::with_layer`](kube::client::ClientBuilder::with_layer).
#[derive(Clone, Debug, Default)]
pub struct ClientLayer {
    pub(super) requests: Family<RequestLabels, Counter>,
    host: String,
}

impl ClientLayer {
    /// The host that requests are counted for. The layer cannot see it: a client adds it further inside.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }
}

impl<S> Layer<S> for ClientLayer {
    type Service = CountRequests<S>;

    fn layer(&self, inner: S) -> CountRequests<S> {
        CountRequests { inner, layer: self.clone() }
    }
}

/// The service that [`ClientLayer`] makes.
#[derive(Clone, Debug)]
pub struct CountRequests<S> {
    inner: S,
    layer: ClientLayer,
}

impl<S, B, R: 'static> Service<Request<B>> for CountRequests<S>
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
        let method = request.method().to_string();
        let ClientLayer { requests, host } = self.layer.clone();
        let counted = self.inner.call(request).map(move |answer| {
            // client-go writes this for requests without an answer.
            let code =
                answer.as_ref().map_or_else(|_| "<error>".to_owned(), |a| a.status().as_str().to_owned());
            requests.get_or_create(&RequestLabels { code, method, host }).inc();
            answer
        });
        counted.boxed()
    }
}
