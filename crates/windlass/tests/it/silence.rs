//! A tower layer that can fall silent: no answer comes any more, and what was streaming stops without an end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use http::{Request, Response};
use tower::{Layer, Service};

#[derive(Clone, Default)]
pub struct Silence(Arc<AtomicBool>);

impl Silence {
    pub fn fall(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    fn has_fallen(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl<S> Layer<S> for Silence {
    type Service = Silenced<S>;

    fn layer(&self, inner: S) -> Silenced<S> {
        Silenced { inner, silence: self.clone() }
    }
}

#[derive(Clone)]
pub struct Silenced<S> {
    inner: S,
    silence: Silence,
}

impl<S, B, R> Service<Request<B>> for Silenced<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let silence = self.silence.clone();
        if silence.has_fallen() {
            return futures::future::pending().boxed();
        }
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await?;
            Ok(answer.map(|body| {
                let chunks = Body::new(body).into_data_stream().then(move |chunk| {
                    let fallen = silence.has_fallen();
                    async move {
                        if fallen {
                            std::future::pending::<()>().await;
                        }
                        chunk
                    }
                });
                Body::from_stream(chunks)
            }))
        }
        .boxed()
    }
}
