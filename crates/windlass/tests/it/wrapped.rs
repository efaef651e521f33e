//! Clients whose requests or answers are changed on their way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::body::{Body, Bytes};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use http::{HeaderValue, Request, Response};
use tower::{ServiceExt, service_fn};
use windlass::kube::{Client, client};

/// Sends the requests of some paths as a user who may do nothing.
pub fn as_nobody(client: Client, path_ends: &'static str) -> Client {
    let service = service_fn(move |mut request: Request<client::Body>| {
        if request.uri().path().ends_with(path_ends) {
            request.headers_mut().insert("Impersonate-User", HeaderValue::from_static("nobody"));
        }
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}

/// Makes the events of a watch unreadable that speak of `word`.
pub fn garbled(client: Client, word: &'static str) -> Client {
    let service = service_fn(move |request: Request<client::Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let client = client.clone();
        let garbled: BoxFuture<'static, _> = async move {
            let answer = client.send(request).await?;
            Ok::<_, windlass::kube::Error>(answer.map(|body| {
                let chunks = Body::new(body)
                    .into_data_stream()
                    .map(move |chunk| chunk.map(|bytes| if is_watch { garble(bytes, word) } else { bytes }));
                Body::from_stream(chunks)
            }))
        }
        .boxed();
        garbled
    });
    Client::new(service, "default")
}

fn garble(bytes: Bytes, word: &str) -> Bytes {
    if String::from_utf8_lossy(&bytes).contains(word) {
        return Bytes::from_static(b"{\"type\":\"MODIFIED\",\"object\":5}\n");
    }
    bytes
}

/// Sends requests to whichever of two services is the present one. When that changes, what is streaming ends.
///
/// An operator that works without end would stop the paused clock: after many requests nothing is answered.
pub fn switched(
    first: windlass_apiserver::AsUser,
    second: windlass_apiserver::AsUser,
    present: tokio::sync::watch::Receiver<bool>,
) -> Client {
    let requests = Arc::new(AtomicUsize::new(0));
    let service = service_fn(move |request: Request<client::Body>| {
        let is_second = *present.borrow();
        let server = if is_second { second.clone() } else { first.clone() };
        let mut present = present.clone();
        let tireless = requests.fetch_add(1, Ordering::SeqCst) > 5000;
        let answer: BoxFuture<'static, _> = async move {
            if tireless {
                std::future::pending::<()>().await;
            }
            let answer: Response<_> = server.oneshot(request).await.map_err(tower::BoxError::from)?;
            Ok::<_, tower::BoxError>(answer.map(|body| {
                let end = async move {
                    // Without a sender it never changes again.
                    if present.wait_for(|now| *now != is_second).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                Body::from_stream(Body::new(body).into_data_stream().take_until(Box::pin(end)))
            }))
        }
        .boxed();
        answer
    });
    Client::new(service, "default")
}
