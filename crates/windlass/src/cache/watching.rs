//! The task that feeds one store: a list, then a watch that is resumed whenever it ends, for as long as it runs.
//!
//! # Guarantees
//!
//! - A watch that has fallen silent is noticed and replaced: the server is heard of at least once a minute
//!   (bookmarks), or else ends the watch after the time that it was given.
//! - A kind that is not served is no error that grows: its objects are gone, and it is asked for every few
//!   seconds until it is served.
//! - What cannot be read, and a server that has gone back in time, lead to a new list, which is believed.
//! - Delays have no jitter, so that runs can be repeated.

use std::{sync::Arc, time::Duration};

use futures::{AsyncBufReadExt, StreamExt};
use http::{HeaderValue, header::ACCEPT_ENCODING};
use kube::{
    Client,
    api::{ListParams, Request, WatchParams},
};
use tokio::time::{Instant, timeout};

use super::{
    Failure, Link,
    listing::{self, Page},
    sink::{Received, Sink},
    splitter::Splitter,
};
use crate::{
    error::chain,
    in_process::LONGEST,
    request::{self, ENDLESS},
};

/// What the server is asked to limit a watch to.
const WATCH: Duration = Duration::from_secs(290);
/// How much longer than that a watch may last if the server sends no bookmarks.
const GRACE: Duration = Duration::from_secs(30);
/// How long a server that sends bookmarks, which it does every minute, may be silent.
const SILENCE: Duration = Duration::from_secs(150);
/// How long a watch may take to begin.
const CONNECT: Duration = Duration::from_secs(30);
/// How long one page of a list may take.
const LIST: Duration = Duration::from_mins(2);
/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How long a kind that is not served is left alone before it is asked for again, at most.
const ABSENT: Duration = Duration::from_secs(5);
/// What lies between two requests that would otherwise follow each other at once.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches until dropped: every namespace of the scope, or all at once.
pub(super) async fn run(store: Arc<dyn Sink>, Link { client, in_process, debugging }: Link) {
    let feeds = store.scope().parts().into_iter().enumerate().map(|(part, namespace)| {
        let path = store.kind().path(namespace.as_deref());
        let (store, client) = (store.clone(), client.clone());
        let feed = Feed {
            store,
            client,
            in_process,
            debugging,
            part,
            path,
            version: None,
            bookmarks: false,
            misses: 0,
            backoff: Backoff::default(),
        };
        feed.run()
    });
    futures::future::join_all(feeds).await;
}

/// Why a list or a watch ended.
#[derive(Debug)]
enum WatchError {
    /// The server does not know the kind.
    Missing(String),
    /// The version to go on from is too old: list again.
    Expired,
    Failed(Failure),
}

impl WatchError {
    fn of(operation: &str, error: &kube::Error) -> Self {
        let text = format!("{operation}: {}", chain(error));
        match error {
            // A kind that the server does not know is answered without a reason.
            kube::Error::Api(status) if status.code == 404 => Self::Missing(text),
            kube::Error::Api(status) if status.code == 410 || is_ahead(status) => Self::Expired,
            kube::Error::Api(status) => Self::Failed(Failure { text, refused: status.code == 403 }),
            _ => Self::failed(text),
        }
    }

    fn failed(text: String) -> Self {
        Self::Failed(Failure { text, refused: false })
    }
}

/// Whether a version is unknown to the server because it lies ahead: its data was restored from a backup.
fn is_ahead(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
}

/// One list and watch.
struct Feed {
    store: Arc<dyn Sink>,
    client: Client,
    in_process: bool,
    debugging: bool,
    part: usize,
    path: String,
    /// Where the watch goes on; `None` before a list.
    version: Option<String>,
    /// Whether this server sends bookmarks.
    bookmarks: bool,
    /// How often in a row the server said that it does not know the kind.
    misses: u32,
    backoff: Backoff,
}

impl Feed {
    async fn run(mut self) {
        loop {
            let ended = match self.version.clone() {
                None => self.list().await,
                Some(version) => self.watch(&version).await,
            };
            match ended {
                Ok(()) => {}
                Err(WatchError::Missing(text)) => self.missing(text).await,
                Err(WatchError::Expired) => {
                    tracing::debug!(kind = %self.store.kind(), "the watch has fallen behind, listing again");
                    self.version = None;
                    self.backoff.wait().await;
                }
                Err(WatchError::Failed(failure)) => {
                    tracing::warn!(kind = %self.store.kind(), error = failure.text, "watch failed, retrying");
                    self.store.health().send_modify(|health| health.failed(self.part, failure));
                    self.backoff.wait().await;
                }
            }
        }
    }

    async fn list(&mut self) -> Result<(), WatchError> {
        self.store.list_started(self.part);
        let mut next = None;
        let version = loop {
            let page = timeout(self.within(LIST), self.page(next)).await;
            let page =
                page.map_err(|_| WatchError::failed(format!("failed to list: no answer in {LIST:?}")))??;
            match page.next {
                Some(token) => next = Some(token),
                None => break page.version,
            }
        };
        // Repeated lists wait like those after a failure.
        if self.finish_list(version.parse().unwrap_or(0)).await {
            return Err(WatchError::Expired);
        }
        self.version = Some(version);
        Ok(())
    }

    /// Enters the items of a page as they arrive.
    async fn page(&self, next: Option<String>) -> Result<Page, WatchError> {
        let fail = |error: &kube::Error| WatchError::of("failed to list", error);
        let params = ListParams {
            label_selector: self.store.scope().labels.clone(),
            field_selector: self.store.scope().fields.clone(),
            limit: Some(PAGE),
            continue_token: next,
            ..ListParams::default()
        };
        let target = Request::new(&self.path);
        let request =
            if self.store.metadata_only() { target.list_metadata(&params) } else { target.list(&params) };
        let request = request.map_err(|e| fail(&kube::Error::BuildRequest(e)))?;
        let body = self.client.request_stream(request).await.map_err(|e| fail(&e))?;
        let (mut body, mut splitter) = (std::pin::pin!(body), Splitter::default());
        loop {
            let piece = body.fill_buf().await;
            let piece =
                piece.map_err(|error| WatchError::failed(format!("failed to list: {}", chain(&error))))?;
            if piece.is_empty() {
                break;
            }
            let read = splitter.feed(piece, |item| self.store.list_item(self.part, item));
            read.map_err(|e| fail(&kube::Error::SerdeError(e)))?;
            let length = piece.len();
            body.consume_unpin(length);
        }
        listing::page(splitter.frame()).map_err(|e| fail(&kube::Error::SerdeError(e)))
    }

    /// Returns whether the list has to be repeated.
    async fn finish_list(&mut self, at: u64) -> bool {
        let (live, absent) = {
            let health = self.store.health().borrow();
            (health.is_live(self.part), health.was_absent(self.part))
        };
        self.misses = 0;
        let doubtful = self.store.list_finished(self.part, !live, at);
        self.store.health().send_modify(|health| health.listed(self.part));
        if absent {
            tracing::info!(kind = %self.store.kind(), "the kind is served now");
            self.store.served(true);
        }
        // An own write newer than the list is younger than the list, or gone, or from before a restore: ask.
        let mut restored = false;
        for (key, seen) in doubtful {
            // Without an answer it stays: the watch tells of everything that is younger than the list.
            if let Ok(found) = request::metadata(&self.client, self.store.kind(), &key).await {
                restored |= self.store.resolve(&key, seen, found.as_ref());
            }
        }
        if restored {
            self.store.distrust(self.part);
        }
        restored
    }

    async fn watch(&mut self, version: &str) -> Result<(), WatchError> {
        let started = Instant::now();
        let connected =
            timeout(self.within(CONNECT), self.client.request_stream(self.watch_request(version)?)).await;
        let stream = connected
            .map_err(|_| WatchError::failed(format!("failed to start the watch: no answer in {CONNECT:?}")))?
            .map_err(|error| WatchError::of("failed to start the watch", &error))?;
        self.misses = 0;
        self.store.health().send_if_modified(|health| health.recovered(self.part));
        let mut lines = std::pin::pin!(stream.lines());
        loop {
            let limit = match (self.in_process, self.bookmarks) {
                (true, _) => LONGEST + GRACE,
                (_, true) => SILENCE,
                (_, false) => WATCH + GRACE,
            };
            let line = timeout(self.within(limit), lines.next()).await;
            let line = line.map_err(|_| {
                // A server that was restored waits for a version that lies far ahead, and says nothing.
                self.version = None;
                WatchError::failed(format!("the watch was silent for {limit:?}"))
            });
            match line? {
                Some(Ok(line)) => {
                    if !self.receive(&line)? {
                        // Cut off by the end of the connection, once; if it is always cut off, nobody ever reads it.
                        if self.version.as_deref() == Some(version) {
                            self.version = None;
                        }
                        break;
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(kind = %self.store.kind(), %error, "the watch broke off");
                    break;
                }
                None => break,
            }
        }
        // A server that ends every watch at once is not asked again at once.
        if started.elapsed() < PAUSE {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// How long is waited for what should not take longer than this.
    fn within(&self, limit: Duration) -> Duration {
        if self.debugging { ENDLESS } else { limit }
    }

    fn watch_request(&self, version: &str) -> Result<http::Request<Vec<u8>>, WatchError> {
        let params = WatchParams {
            label_selector: self.store.scope().labels.clone(),
            field_selector: self.store.scope().fields.clone(),
            timeout: Some(WATCH.as_secs() as u32),
            ..WatchParams::default()
        };
        let target = Request::new(&self.path);
        let request = if self.store.metadata_only() {
            target.watch_metadata(&params, version)
        } else {
            target.watch(&params, version)
        };
        let mut request = request
            .map_err(|e| WatchError::of("failed to start the watch", &kube::Error::BuildRequest(e)))?;
        // Kubernetes 1.37 compresses every event by itself, which the client's decompression does not read.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(request)
    }

    /// Enters one event. Returns false for a line that was cut off, which ends the watch.
    fn receive(&mut self, line: &str) -> Result<bool, WatchError> {
        match self.store.event(self.part, line) {
            Ok(Received::Version(version)) => self.advance(version),
            Ok(Received::Bookmark(version)) => {
                self.bookmarks = true;
                self.advance(Some(version))
            }
            Ok(Received::Failed(status)) => {
                Err(WatchError::of("the watch failed", &kube::Error::Api(status)))
            }
            Err(error) if error.is_eof() => Ok(false),
            Err(error) => {
                // The same event would come again.
                self.version = None;
                Err(WatchError::of("failed to read an event", &kube::Error::SerdeError(error)))
            }
        }
    }

    /// The watch has come to a version.
    fn advance(&mut self, version: Option<String>) -> Result<bool, WatchError> {
        let number = |version: &Option<String>| version.as_deref().and_then(|text| text.parse::<u64>().ok());
        if let (Some(before), Some(now)) = (number(&self.version), number(&version))
            && now < before
        {
            return Err(WatchError::Expired);
        }
        self.version = version;
        Ok(true)
    }

    /// The server does not know the kind: its definition was removed, or is not installed yet.
    async fn missing(&mut self, text: String) {
        let (synced, absent) = {
            let health = self.store.health().borrow();
            (health.was_synced(self.part), health.was_absent(self.part))
        };
        self.misses = self.misses.saturating_add(1);
        self.version = None;
        // One such answer may come from a server that is just starting: what is cached goes at the second.
        if !absent && (!synced || self.misses > 1) {
            tracing::info!(
                kind = %self.store.kind(), answer = text,
                "the kind is not served; waiting for it (is its CRD installed?)"
            );
            self.store.vanished(self.part, text);
            self.store.served(false);
        }
        tokio::time::sleep(PAUSE.saturating_mul(self.misses).min(ABSENT)).await;
    }
}

/// 800 ms doubling to 5 s; starts over after two quiet minutes.
#[derive(Debug)]
struct Backoff {
    next: Duration,
    last: Option<Instant>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(800);
    /// After an outage of any length an operator is back within this time.
    const LONGEST: Duration = Duration::from_secs(5);
    const QUIET: Duration = Duration::from_mins(2);

    async fn wait(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    fn next_delay(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > Self::QUIET) {
            self.next = Self::FIRST;
        }
        self.last = Some(now);
        let delay = self.next;
        self.next = (delay * 2).min(Self::LONGEST);
        delay
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: Self::FIRST, last: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn retries_slow_down_until_the_watch_has_been_quiet() {
        let mut backoff = Backoff::default();
        let mut delays = Vec::new();
        for _ in 0..8 {
            let started = Instant::now();
            backoff.wait().await;
            delays.push(started.elapsed().as_millis());
        }
        assert_eq!(delays, [800, 1600, 3200, 5000, 5000, 5000, 5000, 5000]);
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert_eq!(backoff.next_delay(), Backoff::FIRST);
    }
}
