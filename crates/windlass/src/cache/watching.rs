//! The task that feeds one store: kube's watcher, with a backoff that has no jitter so that runs can be repeated.

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource,
    core::DynamicResourceScope,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event, watcher},
    },
};
use serde::Deserialize;

use super::{Failure, Scope, Store};
use crate::{
    error::chain,
    object::{Kind, Object},
    request,
};

/// Watches until dropped. Errors are reported, and the watch is resumed with backoff.
pub(super) async fn run<K: Object>(store: Arc<Store<K>>, client: Client, scope: Scope) {
    let api: Api<Unscoped<K>> = match &scope.namespace {
        Some(namespace) if crate::object::is_namespaced::<K>() => {
            Api::namespaced_with(client.clone(), namespace, &())
        }
        _ => Api::all(client.clone()),
    };
    let config = watcher::Config {
        label_selector: scope.labels.clone(),
        field_selector: scope.fields.clone(),
        ..watcher::Config::default()
    };
    let kind = Kind::of::<K>();
    let mut events = watcher(api, config).backoff(WatchBackoff::default()).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => receive(&store, &client, event).await,
            Err(error) => {
                let failure = Failure { text: chain(&error), refused: is_refusal(&error) };
                tracing::warn!(%kind, error = failure.text, "watch failed, retrying");
                store.health.send_modify(|health| health.failure = Some(failure));
            }
        }
    }
}

async fn receive<K: Object>(store: &Store<K>, client: &Client, event: Event<Unscoped<K>>) {
    let change = match event {
        Event::Init => {
            store.write().list_started();
            return;
        }
        Event::InitApply(object) => {
            store.write().listed(object.0);
            return;
        }
        Event::InitDone => {
            finish_list(store, client).await;
            None
        }
        Event::Apply(object) => store.write().watch_applied(object.0),
        Event::Delete(object) => store.write().watch_deleted(&object.0),
    };
    if let Some(change) = change {
        store.notify(&change, None);
    }
    store.health.send_if_modified(|health| health.failure.take().is_some());
}

async fn finish_list<K: Object>(store: &Store<K>, client: &Client) {
    let initial = !store.health.borrow().synced;
    let (changes, doubtful) = store.write().list_finished(initial);
    for change in &changes {
        store.notify(change, None);
    }
    store.health.send_modify(|health| {
        health.synced = true;
        health.failure = None;
    });
    // An own write newer than everything in the list is either younger than the list or gone: ask.
    for (key, seen) in doubtful {
        if let Ok(None) = request::get::<K>(client, &key).await {
            let change = store.write().absent(&key, seen);
            if let Some(change) = change {
                store.notify(&change, None);
            }
        }
    }
}

/// Whether the server answered that there is no such kind, or that we may not read it.
fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            // A kind that the server does not know is answered without a reason.
            matches!(status.code, 403 | 404)
        }
        _ => false,
    }
}

/// 800 ms doubling to 30 s; starts over after two quiet minutes.
#[derive(Debug)]
struct WatchBackoff {
    next: Duration,
    last: Option<tokio::time::Instant>,
}

impl WatchBackoff {
    const FIRST: Duration = Duration::from_millis(800);
    const LONGEST: Duration = Duration::from_secs(30);
    const QUIET: Duration = Duration::from_mins(2);
}

impl Default for WatchBackoff {
    fn default() -> Self {
        Self { next: Self::FIRST, last: None }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = tokio::time::Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > Self::QUIET) {
            self.next = Self::FIRST;
        }
        self.last = Some(now);
        let delay = self.next;
        self.next = (delay * 2).min(Self::LONGEST);
        Some(delay)
    }
}

impl Backoff for WatchBackoff {
    /// Does nothing: the watcher calls it when it begins a list, before that can have succeeded, and a list that
    /// fails again and again would then be retried at the first delay for ever.
    fn reset(&mut self) {}
}

/// `K` with its scope decided when the program runs: a namespaced kind may be watched in one namespace or in all.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
#[serde(bound = "K: Object")]
struct Unscoped<K>(K);

impl<K: Object> Resource for Unscoped<K> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn retries_slow_down_until_the_watch_has_been_quiet() {
        let mut backoff = WatchBackoff::default();
        let mut delays = Vec::new();
        for _ in 0..8 {
            backoff.reset();
            let delay = backoff.next().unwrap();
            tokio::time::sleep(delay).await;
            delays.push(delay.as_millis());
        }
        assert_eq!(delays, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert_eq!(backoff.next(), Some(WatchBackoff::FIRST));
    }
}
