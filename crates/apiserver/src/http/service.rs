//! The server as a `tower` service, for everybody and for one user.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::{ApiServer, Body, connect::Closing};
use crate::{auth::Identity, error::Result};

/// The connection that a request came by. A request without one is from this process.
pub(crate) trait Remote: Send + Sync {
    /// Notes who has shown itself on the connection by a token. Fails if there are too many connections of that user.
    fn shown(&self, who: &Identity) -> Result<(), String>;

    /// Where the client is.
    fn address(&self) -> Option<std::net::IpAddr>;
}

/// The connection of a request, among its extensions.
#[derive(Clone)]
pub(super) struct Origin(pub(super) Arc<dyn Remote>);

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}

/// An [`ApiServer`] whose requests all come from one user.
#[derive(Debug, Clone)]
pub struct AsUser {
    pub(super) server: ApiServer,
    pub(super) identity: Identity,
    pub(super) closing: Option<Closing>,
    pub(super) origin: Option<Origin>,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Origin")
    }
}

impl AsUser {
    /// The same service for one connection.
    pub(crate) fn over(mut self, connection: Arc<dyn Remote>) -> Self {
        self.origin = Some(Origin(connection));
        self
    }

    /// The same service, whose sessions inside of containers end with `closing`.
    pub(crate) fn until(mut self, closing: CancellationToken) -> Self {
        self.closing = Some(Closing(closing));
        self
    }
}

impl<B> Service<Request<B>> for AsUser
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.identity.clone());
        if let Some(closing) = &self.closing {
            request.extensions_mut().insert(closing.clone());
        }
        if let Some(origin) = &self.origin {
            request.extensions_mut().insert(origin.clone());
        }
        self.server.call(request)
    }
}
