//! Running an operator in a test: against any cluster, in the same process, on a paused clock if need be.
//!
//! ```no_run
//! use windlass::{Operator, kube::{Config, client::ClientBuilder}, testing::{Requests, Running}};
//!
//! # async fn example(operator: Operator, config: Config) -> Result<(), Box<dyn std::error::Error>> {
//! let requests = Requests::default();
//! let client = ClientBuilder::try_from(config)?.with_layer(&requests).build();
//! let running = Running::start(operator, client, &requests).await;
//! // … create objects …
//! running.settled().await;
//! running.assert_second_reconcile_writes_nothing().await;
//! running.stop().await;
//! # Ok(()) }
//! ```
//!
//! An API server in this process is a tower service: `Client::new(requests.around(server), "default")`.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response};
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

use crate::{
    error::chain,
    operator::{Handle, Operator, RunError},
};

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
        self.method != Method::GET && !self.path.contains("/events")
    }
}

/// A tower layer that records requests. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Mutex<Vec<Seen>>>);

impl Requests {
    /// The service with its requests recorded here.
    pub fn around<S>(&self, service: S) -> Recorded<S> {
        self.layer(service)
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

/// An operator that runs in the background of a test. Dropping it ends it without a drain.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    requests: Requests,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How often is looked, and how many times in a row nothing must happen.
const LOOK: Duration = Duration::from_millis(100);
const QUIET: u32 = 3;
/// How long that may take.
const LIMIT: Duration = Duration::from_mins(1);

impl Running {
    /// Starts an operator, and waits until its caches are filled. `requests` must be around the client.
    ///
    /// # Panics
    ///
    /// When the operator ends before that.
    pub async fn start(operator: Operator, client: Client, requests: &Requests) -> Self {
        let (handle, stop) = (operator.handle(), CancellationToken::new());
        let mut task = tokio::spawn(operator.run(client, stop.clone().cancelled_owned()));
        tokio::select! {
            () = handle.ready() => {}
            ended = &mut task => match ended {
                Ok(Err(error)) => panic!("the operator has not started: {}", chain(&error)),
                other => panic!("the operator has not started: {other:?}"),
            }
        }
        Self { handle, requests: requests.clone(), stop, task }
    }

    /// A hold on the operator.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits until nothing is reconciled or written any more. What waits for a retry or a requeue does not count.
    ///
    /// # Panics
    ///
    /// When that takes longer than a minute.
    pub async fn settled(&self) {
        let started = tokio::time::Instant::now();
        let (mut quiet, mut writes) = (0, usize::MAX);
        while quiet < QUIET {
            assert!(started.elapsed() < LIMIT, "the operator is still busy after {LIMIT:?}");
            tokio::time::sleep(LOOK).await;
            let now = self.requests.writes().len();
            quiet = if self.handle.is_idle() && now == writes { quiet + 1 } else { 0 };
            writes = now;
        }
    }

    /// Reconciles every object once more, as a restart would, and checks that nothing is written.
    ///
    /// # Panics
    ///
    /// When something is written.
    pub async fn assert_second_reconcile_writes_nothing(&self) {
        self.settled().await;
        self.requests.take_writes();
        self.handle.requeue_all();
        self.settled().await;
        let writes = self.requests.take_writes();
        assert!(writes.is_empty(), "a second reconcile must write nothing, but wrote {writes:#?}");
    }

    /// Stops the operator and waits until it has drained.
    ///
    /// # Panics
    ///
    /// When the operator has failed.
    pub async fn stop(mut self) {
        self.stop.cancel();
        match (&mut self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("the operator has failed: {}", chain(&error)),
            Err(error) => panic!("the operator has failed: {error}"),
        }
    }
}
