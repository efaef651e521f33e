//! A tower layer that ends an operator at one of its writes, as `kill -9` at that moment would.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service};

use super::requests::is_write;

/// What happens to the write at which the operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWrite {
    /// It never reaches the API server.
    Unsent,
    /// It takes effect, and nobody hears the answer.
    Unanswered,
}

/// Lets through all requests before the n-th write, and none after it. Clones share the count.
///
/// Writes are counted as [`Seen::is_write`](super::Seen::is_write) has it: events are none.
#[derive(Clone, Debug)]
pub struct Fuse {
    writes: Arc<AtomicU64>,
    last: u64,
    how: LastWrite,
    blown: CancellationToken,
}

impl Fuse {
    /// A fuse that blows at the `write`-th write, the first of which is 1.
    pub fn new(write: u64, how: LastWrite) -> Self {
        Self { writes: Arc::default(), last: write, how, blown: CancellationToken::new() }
    }

    /// The service behind this fuse.
    pub fn around<S>(&self, service: S) -> Fused<S> {
        self.layer(service)
    }

    /// Whether the write has come.
    pub fn is_blown(&self) -> bool {
        self.blown.is_cancelled()
    }

    /// Resolves when the write has come: it is time to kill the operator.
    pub async fn blown(&self) {
        self.blown.cancelled().await;
    }
}

impl<S> Layer<S> for Fuse {
    type Service = Fused<S>;

    fn layer(&self, inner: S) -> Fused<S> {
        Fused { inner, fuse: self.clone() }
    }
}

/// The service that a [`Fuse`] makes.
#[derive(Clone, Debug)]
pub struct Fused<S> {
    inner: S,
    fuse: Fuse,
}

impl<S, B, R> Service<Request<B>> for Fused<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<R>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let fuse = self.fuse.clone();
        let write = is_write(request.method(), request.uri().path());
        let count = if write { fuse.writes.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        if fuse.is_blown() || count > fuse.last || (count == fuse.last && fuse.how == LastWrite::Unsent) {
            fuse.blown.cancel();
            return Box::pin(async { Err("the operator is dead".into()) });
        }
        let sent = self.inner.call(request);
        Box::pin(async move {
            let answer = sent.await;
            if count == fuse.last && write {
                fuse.blown.cancel();
                return Err("the operator died before the answer".into());
            }
            answer.map_err(Into::into)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn reached(how: LastWrite) -> (Vec<String>, Vec<bool>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = seen.clone();
        let server = service_fn(move |request: Request<()>| {
            record.lock().unwrap().push(request.uri().path().to_owned());
            async { Ok::<_, BoxError>(Response::new(())) }
        });
        let service = Fuse::new(2, how).around(server);
        let mut fine = Vec::new();
        let lines = [("GET", "/a"), ("PATCH", "/b"), ("POST", "/events"), ("POST", "/c"), ("GET", "/d")];
        for (method, path) in lines {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            fine.push(service.clone().oneshot(request).await.is_ok());
        }
        let seen = seen.lock().unwrap().clone();
        (seen, fine)
    }

    #[tokio::test]
    async fn nothing_comes_after_the_last_write() {
        let fine = vec![true, true, true, false, false];
        let before: Vec<String> = ["/a", "/b", "/events"].map(String::from).into();
        assert_eq!(reached(LastWrite::Unsent).await, (before.clone(), fine.clone()));
        let with: Vec<String> = before.into_iter().chain(["/c".to_owned()]).collect();
        assert_eq!(reached(LastWrite::Unanswered).await, (with, fine));
    }
}
