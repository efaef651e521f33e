//! The garbage collector: objects whose owners are gone go too, and owners wait for dependents where they must.
//!
//! It watches the metadata of every kind that discovery lists, custom ones included as they come and go, and
//! keeps who owns whom in a [`graph`]. What becomes of an object is decided and done in [`collect`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;
use windlass::kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};

use crate::resources::{self, Meta, Resource};

mod collect;
mod graph;
mod pending;

use collect::Failure;
use graph::{Graph, Item, Uid};
use pending::Pending;

/// When discovery is asked again after a CustomResourceDefinition changed: a real API server takes its time to
/// serve a new kind.
const LOOK_AGAIN: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10)];

/// How long to wait when discovery fails.
const DISCOVERY_RETRY: Duration = Duration::from_secs(1);

/// What the watches, the workers and discovery share.
struct Shared {
    client: Client,
    /// How every kind is watched.
    watching: watcher::Config,
    graph: Mutex<Graph>,
    pending: Pending,
    resources: Mutex<Vec<Arc<Resource>>>,
    /// Told when a CustomResourceDefinition changes.
    definitions: Notify,
    /// How many first lists are still under way; `None` before discovery has answered.
    listing: watch::Sender<Option<usize>>,
}

impl Shared {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, uids: impl IntoIterator<Item = Uid>) {
        self.pending.add(uids);
    }

    /// The kind that an owner reference means.
    fn resource(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        resources.iter().find(|resource| resource.is(api_version, kind)).cloned()
    }
}

/// Runs the garbage collector until the token is cancelled; every task has ended by then.
pub(crate) async fn run(client: Client, watching: watcher::Config, stop: CancellationToken) {
    let shared = Arc::new(Shared {
        client,
        watching,
        graph: Mutex::default(),
        pending: Pending::default(),
        resources: Mutex::default(),
        definitions: Notify::new(),
        listing: watch::Sender::new(None),
    });
    let mut watches = Watches { shared: shared.clone(), tasks: JoinSet::new(), running: BTreeMap::new() };
    tokio::select! {
        // In this order, so that a run can be repeated.
        biased;
        () = stop.cancelled() => {}
        () = watches.keep() => {}
        () = work(&shared) => {}
    }
    watches.tasks.shutdown().await;
}

/// Handles one object after the other, once every kind has been listed: before that, an owner may only seem absent.
async fn work(shared: &Shared) {
    let mut listing = shared.listing.subscribe();
    if listing.wait_for(|left| *left == Some(0)).await.is_err() {
        return;
    }
    loop {
        let uid = shared.pending.next().await;
        match collect::collect(shared, &uid).await {
            Ok(()) => shared.pending.succeeded(&uid),
            Err(error) => {
                tracing::debug!(%error, %uid, "garbage collection will be tried again");
                if matches!(error, Failure::UnknownKind { .. }) {
                    shared.definitions.notify_one();
                }
                shared.pending.failed(uid);
            }
        }
    }
}

/// One watch for every kind.
struct Watches {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    running: BTreeMap<String, (Arc<Resource>, AbortHandle)>,
}

impl Watches {
    /// Keeps the watches in step with discovery. Never ends.
    async fn keep(&mut self) {
        let shared = self.shared.clone();
        let mut looks = LOOK_AGAIN.iter();
        loop {
            let news = match looks.next() {
                Some(delay) => tokio::time::timeout(*delay, shared.definitions.notified()).await.is_ok(),
                None => {
                    shared.definitions.notified().await;
                    true
                }
            };
            // After news all the looks follow anew: this one may come too early for them.
            if news {
                looks = LOOK_AGAIN[1..].iter();
            }
            self.refresh().await;
        }
    }

    async fn refresh(&mut self) {
        let found = loop {
            match resources::discover(&self.shared.client).await {
                Ok(found) => break found,
                Err(error) => {
                    tracing::warn!(%error, "failed to discover the kinds to collect");
                    tokio::time::sleep(DISCOVERY_RETRY).await;
                }
            }
        };
        let wanted: Vec<Arc<Resource>> =
            found.into_iter().filter(|one| one.watchable && !one.is_event()).map(Arc::new).collect();
        let names: BTreeSet<String> = wanted.iter().map(|one| one.to_string()).collect();
        // A kind that is served in another version than before is watched anew, and its objects stay known.
        let lost = self.running.extract_if(.., |_, (resource, _)| !wanted.contains(resource));
        for (name, (resource, watch)) in lost.collect::<Vec<_>>() {
            watch.abort();
            if !names.contains(&name) {
                let affected = self.shared.graph().forget(&resource);
                self.shared.enqueue(affected);
            }
        }
        self.shared.resources.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&wanted);
        let new: Vec<_> =
            wanted.into_iter().filter(|one| !self.running.contains_key(&one.to_string())).collect();
        self.shared.listing.send_modify(|left| *left = Some(left.unwrap_or(0) + new.len()));
        for resource in new {
            let task = self.tasks.spawn(follow(self.shared.clone(), resource.clone()));
            self.running.insert(resource.to_string(), (resource, task));
        }
    }
}

/// Counts a first list as done, even if its watch is aborted before.
struct Listing<'a>(&'a Shared);

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.0.listing.send_modify(|left| *left = left.map(|left| left.saturating_sub(1)));
    }
}

/// Follows the objects of one kind.
async fn follow(shared: Arc<Shared>, resource: Arc<Resource>) {
    let api: Api<Meta> = Api::all_with(shared.client.clone(), &resource.api);
    let mut events: BoxStream<'_, _> =
        watcher(api, shared.watching.clone()).default_backoff().into_stream().boxed();
    let mut first = Some(Listing(&shared));
    let mut listed = Vec::new();
    let definitions = resource.is("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    while let Some(event) = events.next().await {
        let affected = match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.extend(Item::of(&resource, &object.metadata));
                continue;
            }
            Ok(watcher::Event::InitDone) => {
                let affected = shared.graph().replace(&resource, std::mem::take(&mut listed));
                first = None;
                affected
            }
            Ok(watcher::Event::Apply(object)) => match Item::of(&resource, &object.metadata) {
                Some(item) => shared.graph().put(item),
                None => continue,
            },
            Ok(watcher::Event::Delete(object)) => {
                shared.graph().remove(object.metadata.uid.as_deref().unwrap_or_default())
            }
            Err(error) => {
                tracing::debug!(%error, %resource, "watch failed, retrying");
                continue;
            }
        };
        shared.enqueue(affected);
        if definitions && first.is_none() {
            shared.definitions.notify_one();
        }
    }
}
