//! A tower layer whose server can be away: requests are refused, and streams break off.

use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use http::{Request, Response};
use tokio::sync::watch;
use tower::{BoxError, Layer, Service};

#[derive(Clone)]
pub struct Outage(watch::Sender<bool>);

impl Default for Outage {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Outage {
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    pub fn end(&self) {
        self.0.send_replace(false);
    }
}

impl<S> Layer<S> for Outage {
    type Service = Outaged<S>;

    fn layer(&self, inner: S) -> Outaged<S> {
        Outaged { inner, outage: self.clone() }
    }
}

#[derive(Clone)]
pub struct Outaged<S> {
    inner: S,
    outage: Outage,
}

fn refused() -> BoxError {
    "connection refused".into()
}

impl<S, B, R> Service<Request<B>> for Outaged<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut away = self.outage.0.subscribe();
        if *away.borrow() {
            return futures::future::err(refused()).boxed();
        }
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await.map_err(Into::into)?;
            Ok(answer.map(|body| {
                let begun = async move {
                    let _ = away.wait_for(|away| *away).await;
                };
                let chunks = Body::new(body).into_data_stream().map(|chunk| chunk.map_err(BoxError::from));
                let broken = futures::stream::once(begun).map(|()| Err(refused()));
                let ended = std::sync::atomic::AtomicBool::new(false);
                let both = futures::stream::select(
                    chunks.map(Some).chain(futures::stream::once(async { None })),
                    broken.map(Some),
                );
                let until = both.take_while(move |chunk| {
                    let before = ended.load(std::sync::atomic::Ordering::SeqCst);
                    if !matches!(chunk, Some(Ok(_))) {
                        ended.store(true, std::sync::atomic::Ordering::SeqCst);
                    }
                    let go_on = !before && chunk.is_some();
                    async move { go_on }
                });
                Body::from_stream(until.filter_map(async |chunk| chunk))
            }))
        }
        .boxed()
    }
}
