//! An operator in the background of a test, and waiting until it has nothing to do.

use std::time::Duration;

use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Requests, failures::Runs};
use crate::{
    error::chain,
    handle::{Failure, Handle},
    metrics::Metrics,
    operator::{Operator, RunError},
};

/// How often is looked, and how many times in a row nothing must happen.
const LOOK: Duration = Duration::from_millis(100);
const QUIET: u32 = 3;
/// How long that may take.
const LIMIT: Duration = Duration::from_mins(1);

/// An operator that runs in the background of a test.
///
/// It knows how every run of a reconciler ended. One that failed fails the test: [`settled`](Self::settled),
/// [`assert_second_reconcile_writes_nothing`](Self::assert_second_reconcile_writes_nothing) and [`stop`](Self::stop)
/// panic with what went wrong, and so does dropping it, which ends the operator without a drain. A test that wants runs
/// to fail says which with [`allow_failures`](Self::allow_failures), or takes them out and looks at them itself
/// ([`take_failures`](Self::take_failures)).
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    requests: Requests,
    runs: Runs,
    metrics: Metrics,
    stop: CancellationToken,
    /// Whether it serves webhooks.
    serves: bool,
    task: JoinHandle<Result<(), RunError>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
        // Whatever the test panics with already says more.
        if !std::thread::panicking() {
            self.check();
        }
    }
}

impl Running {
    /// Starts an operator, and waits until its caches are filled and the API server knows of the webhooks that it
    /// [serves](Operator::serve_webhooks). `requests` must be around the client.
    ///
    /// # Panics
    ///
    /// When the operator ends before that, or cannot tell the API server of its webhooks.
    pub async fn start(operator: Operator, client: Client, requests: &Requests) -> Self {
        let mut running = Self::spawn(operator, client, requests);
        running.ready().await;
        running
    }

    /// Starts an operator without waiting for anything: for one that may not live until it is [ready](Self::ready).
    pub fn spawn(operator: Operator, client: Client, requests: &Requests) -> Self {
        let (handle, stop, runs) = (operator.handle(), CancellationToken::new(), Runs::default());
        let record = runs.clone();
        handle.observe(move |run| record.record(run));
        let (serves, metrics) = (operator.serves_webhooks(), operator.metrics().clone());
        let task = tokio::spawn(operator.run(client, stop.clone().cancelled_owned()));
        Self { handle, requests: requests.clone(), runs, metrics, stop, serves, task }
    }

    /// Waits until the caches are filled and the webhooks registered.
    ///
    /// # Panics
    ///
    /// When the operator ends before that, or cannot tell the API server of its webhooks.
    pub async fn ready(&mut self) {
        let (handle, serves) = (&self.handle, self.serves);
        let ready = async {
            if serves && let Err(reason) = handle.webhooks_registered().await {
                panic!("the API server could not be told of the webhooks: {reason}");
            }
            handle.ready().await;
        };
        tokio::select! {
            biased;
            () = ready => {}
            ended = &mut self.task => match ended {
                Ok(Err(error)) => panic!("the operator has not started: {}", chain(&error)),
                other => panic!("the operator has not started: {other:?}"),
            }
        }
    }

    /// A hold on the operator.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The operator's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The requests of the operator.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Lets runs fail of which `allowed` says so, such as `|failure| failure.reason == "NameConflict"`.
    ///
    /// It counts for what has failed already, too. They remain among the [failures](Self::failures).
    pub fn allow_failures(&self, allowed: impl Fn(&Failure) -> bool + Send + 'static) {
        self.runs.allow(allowed);
    }

    /// The runs that have failed so far.
    pub fn failures(&self) -> Vec<Failure> {
        self.runs.failures()
    }

    /// Takes the runs that have failed so far: what is left fails the test no more.
    pub fn take_failures(&self) -> Vec<Failure> {
        self.runs.take_failures()
    }

    /// Waits until nothing is reconciled or written any more. What waits for a retry or a requeue does not count.
    ///
    /// # Panics
    ///
    /// When that takes longer than a minute, when the operator has ended, and when a run has failed.
    pub async fn settled(&self) {
        let started = tokio::time::Instant::now();
        let (mut quiet, mut writes) = (0, usize::MAX);
        while quiet < QUIET {
            assert!(started.elapsed() < LIMIT, "the operator is still busy after {LIMIT:?}");
            tokio::time::sleep(LOOK).await;
            assert!(!self.task.is_finished(), "the operator has ended; stop() says why");
            let now = self.requests.writes().len();
            quiet = if self.handle.is_idle() && now == writes { quiet + 1 } else { 0 };
            writes = now;
        }
        self.check();
    }

    /// Reconciles every object once more, as a restart would, and checks that nothing is written.
    ///
    /// # Panics
    ///
    /// When something is written, when a run has failed or has not taken place, and when there is no object at all.
    pub async fn assert_second_reconcile_writes_nothing(&self) {
        self.settled().await;
        self.requests.take_writes();
        self.runs.begin();
        let queued = self.handle.requeue_all();
        assert!(!queued.is_empty(), "there is no object that could be reconciled a second time");
        self.settled().await;
        let missing = self.runs.missing(&queued);
        assert!(missing.is_empty(), "a second reconcile has not taken place: {missing:?}");
        let writes = self.requests.take_writes();
        assert!(writes.is_empty(), "a second reconcile must write nothing, but wrote {writes:#?}");
    }

    /// Stops the operator and waits until it has drained.
    ///
    /// # Panics
    ///
    /// When the operator has ended with an error, and when a run has failed.
    pub async fn stop(mut self) {
        self.stop.cancel();
        match (&mut self.task).await {
            Ok(Ok(())) => self.check(),
            Ok(Err(error)) => panic!("the operator has failed: {}", chain(&error)),
            Err(error) => panic!("the operator has failed: {error}"),
        }
    }

    /// Ends the operator as `kill -9` would: nothing more is done.
    ///
    /// # Panics
    ///
    /// When a run has failed.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    #[track_caller]
    fn check(&self) {
        if let Some(text) = self.runs.unexpected() {
            // Said once: whoever drops this has heard it.
            self.runs.take_failures();
            panic!("{text}");
        }
    }
}
